"""The command line: each command subscribes to events and answers questions."""
