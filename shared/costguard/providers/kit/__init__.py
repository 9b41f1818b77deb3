"""What clouds share, in the folders that each of them has."""
