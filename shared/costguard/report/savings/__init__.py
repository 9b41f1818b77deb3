"""What was saved, and what each figure is made of."""
