"""How KMS stands in one emulator, beyond its keys: a test sets it up."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class KeyDesk:
    """What the keys of a world do not say.

    `regions` None: KMS is offered wherever anything is. `unopened` are accounts that never opened the service,
    `cut_off` those whose debts ended it: their lists are refused. `keeps_period`: EnableKeyRotation is answered as
    usual for a key whose rotation is on, and changes nothing. `null_lists`: an empty list of keys is told as null.
    `secrets` are kept texts, or bytes, by account, region, name and version.
    """

    regions: frozenset[str] | None = None
    unopened: set[str] = field(default_factory=set)
    cut_off: set[str] = field(default_factory=set)
    keeps_period: bool = False
    null_lists: bool = False
    secrets: dict[tuple[str, str, str, str], str | bytes] = field(default_factory=dict)
