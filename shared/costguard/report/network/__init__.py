"""What was found of networks."""
