"""Which Costguard it was: what a deployment is called, and the mark that it leaves in a cloud's audit log. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_MARK = re.compile(
    r"(?<![A-Za-z0-9-])costguard-(?P<name>[a-z][a-z0-9-]{1,18}[a-z0-9])-(?P<ledger>[0-9a-f]{8})(?![A-Za-z0-9-])"
)


@dataclass(frozen=True, slots=True, order=True)
class Deployment:
    """One deployment. `ledger` is what its ledger is called, 8 hexadecimal digits: two of one name have two ledgers.

    Its text is the name of its role sessions, and stands in its user agent: at most 38 characters of letters, digits
    and hyphens. AWS, Alibaba Cloud and Tencent Cloud take 2 to 64 of them (AssumeRole: RoleSessionName).
    """

    name: str
    ledger: str

    def __str__(self) -> str:
        return f"costguard-{self.name}-{self.ledger}"


def deployments_in(text: str) -> Iterator[Deployment]:
    """Every mark in a text."""
    for found in _MARK.finditer(text):
        yield Deployment(found["name"], found["ledger"])
