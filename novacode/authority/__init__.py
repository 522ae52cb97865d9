"""Decisions only: rules, modes, hooks, approvals. Nothing here runs a tool."""
