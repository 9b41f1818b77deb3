"""What a valid policy says that its writer may not have meant."""
