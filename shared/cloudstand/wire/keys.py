"""Credentials as a cloud hands them out."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Keys:
    """An access key: its id, its secret, and the token that goes with it when it is temporary."""

    key_id: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)
