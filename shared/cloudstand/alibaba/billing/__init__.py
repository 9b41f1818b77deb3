"""Bills, budgets and what is charged."""
