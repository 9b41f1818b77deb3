"""What the doctor found."""
