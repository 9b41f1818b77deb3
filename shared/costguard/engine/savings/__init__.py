"""What was saved, by the ledger and by bills."""
