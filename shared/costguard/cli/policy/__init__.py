"""Commands about a policy: check, test, compare, publish."""
