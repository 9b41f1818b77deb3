"""What charts show, as plain values."""
