"""Unit tests of a policy, as their writers write them."""
