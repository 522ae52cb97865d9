"""The remote: watch, steer and approve a run from a browser or a script."""
