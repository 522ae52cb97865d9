"""What the model may call. A tool decides nothing about permission; it can only run with a `Permit`."""
