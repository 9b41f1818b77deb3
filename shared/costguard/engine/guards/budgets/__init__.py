"""Where budgets stand, who is told, and the rules for machines that they make."""
