"""Where budgets and launch freezes stand, and what people are told of them."""
