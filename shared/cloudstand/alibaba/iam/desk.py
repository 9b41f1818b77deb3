"""What is attached where in one organisation and its groups: a test sets it up, and reads what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from cloudstand.alibaba.core.errors import NOT_FOUND, ApiError

FULL_ACCESS = "FullAliyunAccess"
"""The vendor's own control policy, attached to everything while control policies are enabled; it cannot be detached."""


@dataclass(slots=True)
class PolicyDesk:
    """What a test sets up, and what came of it.

    `control` are control policies that people wrote, by id; `targets` what is attached to each folder and member,
    `groups` the same of RAM groups (account and name), as type and name. `written` are the names of an account's own
    policies. `enabled` False: the organisation has no control policies.
    """

    enabled: bool = True
    control: set[str] = field(default_factory=set)
    targets: dict[str, list[str]] = field(default_factory=dict)
    written: set[tuple[str, str]] = field(default_factory=set)
    groups: dict[tuple[str, str], list[tuple[str, str]]] = field(default_factory=dict)

    def of_target(self, target: str) -> list[str]:
        """What is attached to a folder or member.

        Raises:
            ApiError: there is no such target.
        """
        found = self.targets.get(target)
        if found is None:
            raise ApiError("EntityNotExists.Target", "The target does not exist.", NOT_FOUND)
        return found

    def of_group(self, account: str, name: str) -> list[tuple[str, str]]:
        """What is attached to a group.

        Raises:
            ApiError: there is no such group.
        """
        found = self.groups.get((account, name))
        if found is None:
            raise ApiError("EntityNotExist.Group", "The group does not exist.", NOT_FOUND)
        return found
