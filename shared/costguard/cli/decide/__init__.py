"""Commands that decide: a plan, and doing just that."""
