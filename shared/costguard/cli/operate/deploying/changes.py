"""What a Terraform plan would change, and what of it would lose what Costguard remembers. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from costguard.domain.errors import InvalidInputError

MEMORY = frozenset(
    {
        "aws_dynamodb_table",
        "aws_s3_bucket",
        "alicloud_db_instance",
        "alicloud_db_database",
        "alicloud_oss_bucket",
        "tencentcloud_postgresql_instance",
        "tencentcloud_cos_bucket",
    }
)
"""What holds the ledger, and the policies that were published: without them every wait begins anew."""


class Change(str, Enum):
    """What becomes of one resource."""

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Changed:
    """One resource that the plan changes."""

    address: str
    type: str
    change: Change

    @property
    def loses_memory(self) -> bool:
        """Whether something that Costguard remembers goes with it."""
        return self.type in MEMORY and self.change in {Change.REPLACE, Change.DELETE}


def changes_in(plan: Mapping[str, Any]) -> tuple[Changed, ...]:
    """The changes of a plan as `terraform show -json` tells it, those that lose most first.

    Raises:
        InvalidInputError: it is of another form than documented, so that nobody knows what it does.
    """
    found = [changed for each in _listed(plan) if (changed := _changed(each)) is not None]
    order = tuple(Change)
    return tuple(sorted(found, key=lambda one: (-order.index(one.change), one.address)))


def _listed(plan: Mapping[str, Any]) -> Sequence[Any]:
    version, listed = plan.get("format_version"), plan.get("resource_changes", [])
    if not isinstance(version, str) or not version.startswith("1.") or not isinstance(listed, list):
        raise _unknown()
    return listed


def _changed(each: Any) -> Changed | None:
    try:
        address, kind, actions = str(each["address"]), str(each["type"]), tuple(each["change"]["actions"])
        mode = each.get("mode", "managed")
    except (KeyError, TypeError) as err:
        raise _unknown() from err
    if mode == "data" or actions in {("no-op",), ("read",)}:
        return None
    known = {
        ("create",): Change.CREATE,
        ("update",): Change.UPDATE,
        ("delete",): Change.DELETE,
        ("delete", "create"): Change.REPLACE,
        ("create", "delete"): Change.REPLACE,
        ("forget",): Change.DELETE,
    }
    if actions not in known:
        raise _unknown()
    return Changed(address, kind, known[actions])


def _unknown() -> InvalidInputError:
    return InvalidInputError("this plan is of a form that is not known, so nobody can say what it would do; upgrade")
