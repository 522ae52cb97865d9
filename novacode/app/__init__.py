"""Wiring: settings, the object graph, the interrupt ladder."""
