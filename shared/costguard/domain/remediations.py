"""One change to one setting, and how it is taken back. A mend ends nobody's work, but may end a way in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from costguard.domain.refs import ResourceRef


class RemediationKind(str, Enum):
    """What can be mended; the lower half only takes back what the upper half did."""

    SET_ROTATION = "set_rotation"
    ROTATE_KEY = "rotate_key"
    CREATE_SUCCESSOR = "create_successor"
    MOVE_ALIAS = "move_alias"
    RELEASE_ADDRESS = "release_address"
    DETACH_ADDRESS = "detach_address"
    REVOKE_RULE = "revoke_rule"
    NARROW_RULE = "narrow_rule"
    ENABLE_FLOW_LOGS = "enable_flow_logs"
    REQUIRE_IMDSV2 = "require_imdsv2"
    # inverses
    RESTORE_ALIAS = "restore_alias"
    ATTACH_ADDRESS = "attach_address"
    RESTORE_RULE = "restore_rule"
    REMOVE_FLOW_LOGS = "remove_flow_logs"
    ALLOW_IMDSV1 = "allow_imdsv1"


FINAL = frozenset(
    {
        RemediationKind.RELEASE_ADDRESS,
        RemediationKind.ROTATE_KEY,
        RemediationKind.SET_ROTATION,
        RemediationKind.CREATE_SUCCESSOR,
    },
)
"""What has no way back: an address released is gone, a rotation adds material, an old period is not kept by us, and
nothing here can delete a key that was made."""

SUCCESSION = frozenset({RemediationKind.CREATE_SUCCESSOR, RemediationKind.MOVE_ALIAS})
"""What brings another key in a key's place: it is about two keys, so one alone does not tell whether it may be done."""

GRANTED_BY: Mapping[RemediationKind, str] = {
    **dict.fromkeys(RemediationKind, "fix_network"),
    **dict.fromkeys((RemediationKind.SET_ROTATION, RemediationKind.ROTATE_KEY), "rotate"),
    **dict.fromkeys(
        (RemediationKind.CREATE_SUCCESSOR, RemediationKind.MOVE_ALIAS, RemediationKind.RESTORE_ALIAS), "succeed"
    ),
}
"""The purpose for which `costguard permissions` prints what a kind of mend needs."""


@dataclass(frozen=True, slots=True)
class Remediation:
    """A change to make, with `parameters` by its kind.

    `SET_ROTATION`: `days`, and as `ROTATE_KEY` a `note` on what its vendor says it costs or takes, where it says so.
    `CREATE_SUCCESSOR`, `REQUIRE_IMDSV2`, `ALLOW_IMDSV1`: none.
    `MOVE_ALIAS`, `RESTORE_ALIAS`: `alias`, without its prefix, and `successor`, the id of the other key; the subject is
    the old one. `RELEASE_ADDRESS`: `ip`.
    `DETACH_ADDRESS`, `ATTACH_ADDRESS`: `ip`, `bound_to` (a ref), `private_ip`. `REVOKE_RULE`: `rule_id`, `direction`,
    `version`, and `what` the rule says in short words, which tells it from another that takes its place in the list.
    `NARROW_RULE`: the same and `peers`, networks with commas between. `RESTORE_RULE`: `rule`, the before-image as
    canonical JSON (`NetworkRule`), and for a narrowed one `instead_of`, ids of the rules that stand in its place, and
    their `peers`, with commas between. `ENABLE_FLOW_LOGS`: `destination`, `role`. `REMOVE_FLOW_LOGS`: `flow_log`.
    """

    kind: RemediationKind
    subject: ResourceRef
    parameters: Mapping[str, str] = field(default_factory=dict)
