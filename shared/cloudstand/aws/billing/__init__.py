"""Cost Explorer, Budgets and the price list, over what the world charges."""
