"""Tools of MCP servers: servers owned by a session, reaped like every process."""
