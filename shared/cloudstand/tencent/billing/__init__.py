"""Bills, prices and what is charged."""
