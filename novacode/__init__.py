"""NovaCode: a coding agent for the command line, on trio."""
