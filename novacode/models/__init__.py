"""A reply as a stream: over HTTP, or from a script, decoded by a codec."""
