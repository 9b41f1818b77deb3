"""Slack: what is posted, what people answer, and what its errors mean."""
