"""The journal on disk: writing it, reading it back, finding it again."""
