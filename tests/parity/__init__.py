"""What each provider says to each row of docs/parity.md."""
