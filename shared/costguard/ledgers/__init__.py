"""Durable memory: `RecordStore` on SQLite, PostgreSQL and DynamoDB."""

from costguard.ledgers.open import open_ledger

__all__ = ["open_ledger"]
