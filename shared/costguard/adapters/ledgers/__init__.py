"""Durable memory: `RecordStore` on SQLite and PostgreSQL; DynamoDB is `providers/aws/core/store.py`."""

from costguard.adapters.ledgers.open import open_ledger

__all__ = ["open_ledger"]
