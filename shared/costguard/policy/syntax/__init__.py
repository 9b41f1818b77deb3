"""How a policy is written: strict YAML, values with their units, and errors that name file, line and column."""
