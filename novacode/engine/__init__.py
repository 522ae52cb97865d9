"""One turn, one run: the ledger, the pipeline and the commit."""
