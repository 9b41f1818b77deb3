"""What a rule of the `network_audit` guard says, and rules of groups as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from enum import Enum
from typing import Any

from costguard.domain.errors import InvalidInputError
from costguard.domain.network import Direction, NetworkRule, Permission
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import RemediationKind
from costguard.guards.rules.common import Mode
from costguard.guards.rules.spelling import any_glob, tags_match, tags_spare


class NetworkCheck(str, Enum):
    """What a rule may forbid; the value is the word that policies use."""

    PUBLIC_IP = "public_ip"
    OPEN_ADMIN_PORT = "open_admin_port"
    WIDE_RULE = "wide_rule"
    UNATTACHED_ADDRESS = "unattached_public_address"
    IDLE_NAT_GATEWAY = "idle_nat_gateway"
    DEFAULT_VPC = "default_vpc"
    FLOW_LOGS_OFF = "flow_logs_off"
    PRIVATE_SUBNET_EXPOSED = "private_subnet_exposed"
    IMDS_V1 = "imds_v1"
    WIDE_PEERING = "wide_peering"
    REGION = "region_not_allowed"
    UNUSED_GROUP = "unused_security_group"
    IDLE_ADDRESS = "idle_public_address"


ADMIN_PORTS = (22, 3389)
"""Through which people get in; the last way in is never closed."""
WATCHED_PORTS = (22, 2375, 2376, 3389, 5000, 6006, 6379, 8000, 8080, 8265, 8786, 8787, 8888, 9090, 9100, 9400, 10250)
"""SSH, Docker, RDP, MLflow, TensorBoard, Redis, web consoles, Ray, Dask, Jupyter, Prometheus, node and DCGM exporters,
kubelet: what lets in or tells more than anybody should know."""


@dataclass(frozen=True, slots=True)
class NetworkSelector:
    """Which resources: every restriction given must hold, of a list any one. An empty list matches nothing.

    Patterns are globs; `tags` are the resource's own. `resources` are native ids or whole refs.
    """

    clouds: tuple[str, ...] | None = None
    accounts: tuple[str, ...] | None = None
    regions: tuple[str, ...] | None = None
    tags: Mapping[str, str] | None = None
    resources: tuple[str, ...] | None = None

    def matches(self, ref: ResourceRef, tags: Mapping[str, str]) -> bool:
        """Whether every given restriction holds."""
        return tags_match(tags, self.tags) and self._rest_matches(ref)

    def spares(self, ref: ResourceRef, tags: Mapping[str, str]) -> bool:
        """Whether every given restriction holds, tags without regard to case and separators."""
        return (self.tags is None or tags_spare(tags, self.tags)) and self._rest_matches(ref)

    def _rest_matches(self, ref: ResourceRef) -> bool:
        return (
            any_glob(self.clouds, ref.cloud)
            and any_glob(self.accounts, ref.account)
            and any_glob(self.regions, ref.region)
            and (self.resources is None or ref.native_id in self.resources or str(ref) in self.resources)
        )


@dataclass(frozen=True, slots=True)
class AuditRule:
    """One entry of `network_audit:` in the policy. `digest` is a hash of everything else here.

    `ports` are watched; `allowed_ports` may be open to anybody (a public API) and are never a finding. `trusted`:
    networks that are not the world, however wide. A rule is wide where it lets in more than a network of
    `widest_v4` / `widest_v6` bits that is not trusted, on whatever port. `allowed_regions` None: any.
    `private_subnets`: globs of names of subnets that are meant to be private. `peering_cidrs` None: any peering; else
    what may be routed to a peer. `keep` names addresses, rules and groups (id, IP or whole ref) that are never touched.
    `unattached_for`: how long an address may be without use; where its age is not told, how long Costguard has seen it,
    and of one bound to a stopped machine how long that has been stopped, where the cloud tells.
    `mend`: what may be done about findings, none by default; `narrow_to`: networks that take the place of the world
    for `narrow_rule`. `flow_log_destination` and `flow_log_role` in the vendor's own form. `wait`: how long after its
    delivered notice a mend is made. `actions_per_day` caps a rolling 24 hours; 0 allows nothing.
    """

    name: str
    mode: Mode
    forbid: frozenset[NetworkCheck]
    applies_to: NetworkSelector = NetworkSelector()
    except_for: tuple[NetworkSelector, ...] = ()
    ports: tuple[int, ...] = WATCHED_PORTS
    allowed_ports: tuple[int, ...] = ()
    trusted: tuple[str, ...] = ()
    widest_v4: int = 16
    widest_v6: int = 48
    allowed_regions: tuple[str, ...] | None = None
    private_subnets: tuple[str, ...] = ()
    peering_cidrs: tuple[str, ...] | None = None
    keep: tuple[str, ...] = ()
    unattached_for: timedelta = timedelta(days=7)
    mend: frozenset[RemediationKind] = frozenset()
    narrow_to: tuple[str, ...] = ()
    flow_log_destination: str = ""
    flow_log_role: str = ""
    wait: timedelta = timedelta(days=3)
    actions_per_day: int = 5
    digest: str = ""

    def covers(self, ref: ResourceRef, tags: Mapping[str, str]) -> bool:
        """Whether the rule speaks of this resource."""
        return self.applies_to.matches(ref, tags) and not any(each.spares(ref, tags) for each in self.except_for)

    def keeps(self, ref: ResourceRef, *names: str) -> bool:
        """Whether the policy names it (by id, whole ref, or any of `names`) as never to be touched."""
        return any(kept in {ref.native_id, str(ref), *names} for kept in self.keep)


_LATER = ("peer_list", "cannot_return")
"""What images of earlier versions lack: left out where it is empty, so that they stay whole."""


def rule_text(rule: NetworkRule) -> str:
    """A rule as canonical JSON."""
    told = {name: value for name, value in asdict(rule).items() if value or name not in _LATER}
    return json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def read_rule(text: str) -> NetworkRule:
    """The rule that `rule_text` wrote.

    Raises:
        InvalidInputError: not such a text; nothing is guessed of what would open or close a network.
    """
    try:
        told: dict[str, Any] = json.loads(text)
        rule = NetworkRule(
            rule_id=_word(told["rule_id"]),
            direction=Direction(told["direction"]),
            permission=Permission(told["permission"]),
            protocol=_word(told["protocol"]),
            ports=tuple((_number(first), _number(last)) for first, last in told["ports"]),
            peers=tuple(_word(peer) for peer in told["peers"]),
            peer_groups=tuple(_word(group) for group in told["peer_groups"]),
            unresolved=tuple(_word(name) for name in told["unresolved"]),
            priority=_number(told["priority"]),
            description=_word(told["description"]),
            **{name: _word(told.get(name, "")) for name in _LATER},
        )
    except (ValueError, KeyError, TypeError) as err:
        message = f"not the text of a rule: {text[:200]!r}"
        raise InvalidInputError(message) from err
    if rule_text(rule) != text:
        message = f"not the whole text of one rule: {text[:200]!r}"
        raise InvalidInputError(message)
    return rule


def _word(told: object) -> str:
    if not isinstance(told, str):
        raise TypeError("not a text")
    return told


def _number(told: object) -> int:
    if not isinstance(told, int) or isinstance(told, bool):
        raise TypeError("not a whole number")
    return told
