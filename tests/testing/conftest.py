"""What is not to be collected here."""

collect_ignore = ["sample_project"]
