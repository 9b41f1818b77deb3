"""What each guard is to the engine: one runner a guard, and the one table of them."""
