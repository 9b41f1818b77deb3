"""Checks of `infra/`, run by `python -m tests.infra`: they start Terraform, which takes minutes."""
