"""One change to one setting, and how it is taken back. A mend ends nobody's work, but may end a way in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from costguard.domain.refs import ResourceRef


class MendKind(str, Enum):
    """What can be mended; the lower half only takes back what the upper half did."""

    SET_ROTATION = "set_rotation"
    ROTATE_KEY = "rotate_key"
    RELEASE_ADDRESS = "release_address"
    DETACH_ADDRESS = "detach_address"
    REVOKE_RULE = "revoke_rule"
    NARROW_RULE = "narrow_rule"
    ENABLE_FLOW_LOGS = "enable_flow_logs"
    REQUIRE_IMDSV2 = "require_imdsv2"
    # inverses
    ATTACH_ADDRESS = "attach_address"
    RESTORE_RULE = "restore_rule"
    REMOVE_FLOW_LOGS = "remove_flow_logs"
    ALLOW_IMDSV1 = "allow_imdsv1"


FINAL = frozenset({MendKind.RELEASE_ADDRESS, MendKind.ROTATE_KEY, MendKind.SET_ROTATION})
"""What has no way back: an address released is gone, a rotation adds material, an old period is not kept by us."""


@dataclass(frozen=True, slots=True)
class Mend:
    """A change to make, with `parameters` by its kind.

    `SET_ROTATION`: `days`. `ROTATE_KEY`: none. `RELEASE_ADDRESS`: `ip`. `DETACH_ADDRESS`: `ip`, `bound_to` (a ref),
    `private_ip`. `REVOKE_RULE`: `rule_id`, `direction`, `version`. `NARROW_RULE`: the same and `peers`, networks with
    commas between. `ENABLE_FLOW_LOGS`: `destination`, `role`. `REQUIRE_IMDSV2`: none. `RESTORE_RULE`: `rule`, the
    before-image of the rule as canonical JSON (`NetworkRule`), and for a narrowed one `instead_of`, ids of the rules
    that stand in its place, with commas between. `REMOVE_FLOW_LOGS`: `flow_log`. `ATTACH_ADDRESS`: as `DETACH_ADDRESS`.
    """

    kind: MendKind
    subject: ResourceRef
    parameters: Mapping[str, str] = field(default_factory=dict)
