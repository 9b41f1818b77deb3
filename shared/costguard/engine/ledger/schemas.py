"""How bodies written by an older Costguard become today's: one registry for every kind of record.

To change the shape of a kind, add `(kind, n): upcaster` where n is its newest schema so far; the
upcaster takes a body of schema n and returns one of n + 1. Never edit one that was released.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from costguard.domain.errors import LedgerError, NewerSchemaError
from costguard.ports import Record

Body = Mapping[str, Any]
Upcasters = Mapping[tuple[str, int], Callable[[Body], Body]]

SAVING = "saving"


def _saving_with_changes(body: Body) -> Body:
    """Schema 1 knew one end, and no reason for it."""
    kept = {name: value for name, value in body.items() if name != "ended_at"}
    ended = body.get("ended_at")
    changes = [{"standing": "restarted", "at": ended}] if ended is not None else []
    return {**kept, "changes": changes}


def _approval_by_votes(body: Body) -> Body:
    """Schema 1 knew one person's word only."""
    vote = {"by": body.get("by"), "at": body.get("granted_at"), "expires_at": body.get("expires_at"), "asked": False}
    kept = {name: body[name] for name in ("decision_id", "used_at") if name in body}
    return {**kept, "votes": [vote], "needed": 1}


UPCASTERS: Upcasters = {(SAVING, 1): _saving_with_changes, ("approval", 1): _approval_by_votes}


def newest_schema(kind: str, upcasters: Upcasters = UPCASTERS) -> int:
    """The schema this program writes for `kind`."""
    return 1 + max((schema for known, schema in upcasters if known == kind), default=0)


def upcast(record: Record, upcasters: Upcasters = UPCASTERS) -> Body:
    """The body of `record` in today's shape.

    Raises:
        NewerSchemaError: a newer Costguard wrote it.
        LedgerError: its schema is no number that was ever written.
    """
    newest = newest_schema(record.kind, upcasters)
    if record.schema > newest:
        message = (
            f"record {record.kind}/{record.key} has schema {record.schema}, this Costguard understands up to {newest}; "
            "upgrade this Costguard"
        )
        raise NewerSchemaError(message)
    if record.schema < 1:
        message = f"record {record.kind}/{record.key} is damaged: {record.schema} is no schema number"
        raise LedgerError(message)
    body: Body = record.body
    for schema in range(record.schema, newest):
        body = upcasters[record.kind, schema](body)
    return body
