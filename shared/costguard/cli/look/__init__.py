"""Commands that look, and change nothing: what is found, spent, saved and blocked."""
