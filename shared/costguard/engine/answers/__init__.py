"""What people answer, and what they take back."""
