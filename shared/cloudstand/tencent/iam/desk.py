"""What is attached where in one organisation and its groups: a test sets it up, and reads what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field

FULL_ACCESS = 1
"""The vendor's own policy, FullQcloudAccess, attached to everything while service control policies are enabled."""


@dataclass(slots=True)
class PolicyDesk:
    """What a test sets up, and what came of it.

    `written` are the policies that people wrote. `targets` is what is attached to each part of the organisation, by its
    kind and number (`("member", 100000000001)`), `inherited` what its list names besides, with the node it comes from.
    `groups` is what is attached to CAM groups. `enabled` False: the organisation has no service control policies.
    """

    enabled: bool = True
    written: set[int] = field(default_factory=set)
    targets: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    inherited: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    groups: dict[int, list[int]] = field(default_factory=dict)
