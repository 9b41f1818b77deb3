"""AWS: what was billed, budgets of the console, and prices."""
