"""The world tools change: paths, processes, snapshots."""
