"""Wire formats, sans-I/O: bytes to events, history to request. Nothing here awaits."""
