"""What a policy would have done to recorded use."""
