"""What rules say that more than one guard reads."""
