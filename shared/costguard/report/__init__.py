"""Words, tables and numbers for people. Pure."""
