"""A launch freeze: one named policy that denies new GPU machines, attached to one place."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class FreezeVia(str, Enum):
    """Where the denying policy is attached: to an account or unit of the organisation, or to a group of people.

    `ORGANISATION`: AWS service control policy, Alibaba Cloud control policy, Tencent Cloud organisation policy.
    `GROUP`: an IAM, RAM or CAM group.
    """

    ORGANISATION = "organisation"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class LaunchFreeze:
    """One freeze the policy may ask for, by name.

    `policy` is the vendor's id of the denying policy (an ARN for an IAM group), which Costguard never writes;
    `target` the account, unit or group it is attached to; `account` the account whose credentials do it, empty for the
    caller's own. `role` is assumed there for nothing else than this; empty: the role that the account is read with.
    """

    name: str
    cloud: str
    via: FreezeVia
    policy: str
    target: str
    account: str = ""
    role: str = ""
