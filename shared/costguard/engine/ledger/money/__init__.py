"""Bills, meters, budget periods, freezes and savings."""
