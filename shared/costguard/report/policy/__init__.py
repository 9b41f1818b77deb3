"""What a policy says, what a change of it means, and how published ones stand."""
