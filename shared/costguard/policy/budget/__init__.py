"""Budgets, exchange rates and launch freezes: what people write, and what it compiles to."""
