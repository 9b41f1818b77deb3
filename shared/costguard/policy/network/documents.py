"""Rules for networks as users write them, and what they compile to. Needs pydantic."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, model_validator
from typing_extensions import Self

from costguard.domain.remediations import RemediationKind
from costguard.guards.network.rules import AuditRule, NetworkCheck, NetworkSelector
from costguard.guards.rules.common import Mode
from costguard.policy.documents import fields as f
from costguard.policy.documents.fields import EXCEPTED, Entry, MatchDocument, Whole, made
from costguard.policy.network import values as n
from costguard.policy.syntax import values as v
from costguard.policy.syntax.problems import BadValueError

MENDS: dict[RemediationKind, frozenset[NetworkCheck]] = {
    RemediationKind.RELEASE_ADDRESS: frozenset({NetworkCheck.UNATTACHED_ADDRESS}),
    RemediationKind.DETACH_ADDRESS: frozenset({NetworkCheck.PUBLIC_IP}),
    RemediationKind.REVOKE_RULE: frozenset({NetworkCheck.OPEN_ADMIN_PORT, NetworkCheck.WIDE_RULE}),
    RemediationKind.NARROW_RULE: frozenset({NetworkCheck.OPEN_ADMIN_PORT, NetworkCheck.WIDE_RULE}),
    RemediationKind.ENABLE_FLOW_LOGS: frozenset({NetworkCheck.FLOW_LOGS_OFF}),
    RemediationKind.REQUIRE_IMDSV2: frozenset({NetworkCheck.IMDS_V1}),
}
"""What `mend` may name, and which checks each is about."""

_SHIPPED = AuditRule("", Mode.OBSERVE, frozenset())
_is_pattern = v.matching(re.compile(r"(?=.*\S)[^\n]{1,128}"), "a name or pattern", "write for example private-*")
_MENDS = {kind.value: kind for kind in MENDS}

CheckWord = Annotated[NetworkCheck, BeforeValidator(v.choice_of(NetworkCheck, "a check"))]
RemediationWord = Annotated[RemediationKind, BeforeValidator(v.choice(_MENDS, "a mend"))]
Network = Annotated[str, AfterValidator(n.network)]
Port = Annotated[int, BeforeValidator(n.port)]


Checks = Annotated[tuple[CheckWord, ...], AfterValidator(v.some("name at least one check, such as public_ip"))]
MendWords = Annotated[tuple[RemediationWord, ...], AfterValidator(v.some("leave the key out to mend nothing"))]
Trusted = Annotated[
    tuple[Network, ...],
    AfterValidator(v.some("leave the key out to trust no network")),
    AfterValidator(n.not_the_world),
]
Narrowed = Annotated[
    tuple[Network, ...],
    AfterValidator(v.some("leave the key out where narrow_rule is not in mend")),
    AfterValidator(n.not_the_world),
]
Peered = Annotated[
    tuple[Network, ...],
    AfterValidator(v.some("name what may be routed to a peer, at least one network")),
    AfterValidator(n.not_the_world),
]
Ports = Annotated[tuple[Port, ...], AfterValidator(v.some("leave the key out to watch the usual ports"))]
AllowedPorts = Annotated[tuple[Port, ...], AfterValidator(v.some("leave the key out to allow no port"))]
SubnetNames = Annotated[
    tuple[Annotated[str, AfterValidator(_is_pattern)], ...],
    AfterValidator(v.some("name at least one subnet, or a pattern such as private-*")),
]
AllowedRegions = Annotated[tuple[f.RegionPattern, ...], AfterValidator(v.some("name at least one region"))]
Kept = Annotated[
    tuple[Annotated[str, AfterValidator(n.kept)], ...], AfterValidator(v.some("leave the key out to keep nothing"))
]


class NetworkSelectorDocument(MatchDocument):
    """Which resources: every key given must match."""

    clouds: f.CloudPatterns | None = None
    accounts: f.AccountPatterns | None = None
    regions: f.RegionPatterns | None = None
    tags: f.TagPatterns | None = None
    resources: f.ResourceIds | None = None


class AuditRuleDocument(Entry):
    """One entry of `network_audit`. What is left out of `mode` is observed, whatever the policy's mode is."""

    mode: f.ModeWord = Mode.OBSERVE
    shadow: bool = False
    forbid: Checks
    applies_when_all: NetworkSelectorDocument | None = None
    except_when_any: Annotated[tuple[NetworkSelectorDocument, ...], EXCEPTED] = ()
    ports: Ports = _SHIPPED.ports
    allowed_ports: AllowedPorts = ()
    trusted: Trusted = ()
    widest_v4: Annotated[int, BeforeValidator(n.prefix(32))] = _SHIPPED.widest_v4
    widest_v6: Annotated[int, BeforeValidator(n.prefix(128))] = _SHIPPED.widest_v6
    allowed_regions: AllowedRegions | None = None
    private_subnets: SubnetNames = ()
    peering_cidrs: Peered | None = None
    keep: Kept = ()
    unattached_for: Annotated[timedelta, BeforeValidator(n.unattached)] = _SHIPPED.unattached_for
    mend: MendWords = ()
    narrow_to: Narrowed = ()
    flow_log_destination: Annotated[str, AfterValidator(n.destination)] = ""
    flow_log_role: f.Role = ""
    wait: f.Wait = _SHIPPED.wait
    actions_per_day: f.Count = _SHIPPED.actions_per_day

    def rule(self, whole: Whole) -> AuditRule:
        """What it compiles to, without its digest."""
        del whole
        chosen = self.applies_when_all
        return made(
            AuditRule,
            self,
            forbid=frozenset(self.forbid),
            mend=frozenset(self.mend),
            applies_to=NetworkSelector() if chosen is None else made(NetworkSelector, chosen),
            except_for=tuple(made(NetworkSelector, each) for each in self.except_when_any),
        )

    @model_validator(mode="after")
    def _together(self) -> Self:
        for refused in (*self._missing(), *self._aimless(), *self._contradictory()):
            raise refused
        return self

    def _missing(self) -> Iterator[BadValueError]:
        """What a check or a mend cannot do without."""
        needs: Sequence[tuple[NetworkCheck, str, object, str]] = (
            (NetworkCheck.REGION, "allowed_regions", self.allowed_regions, "allowed_regions: [eu-*]"),
            (NetworkCheck.WIDE_PEERING, "peering_cidrs", self.peering_cidrs, "peering_cidrs: [10.20.0.0/16]"),
            (
                NetworkCheck.PRIVATE_SUBNET_EXPOSED,
                "private_subnets",
                self.private_subnets,
                'private_subnets: ["private-*"]',
            ),
        )
        for check, key, given, example in needs:
            if check in self.forbid and not given:
                at = ("forbid", self.forbid.index(check))
                yield BadValueError(f"{check.value} needs {key}, which is missing", f"add {example}", at=at)
        if RemediationKind.NARROW_RULE in self.mend and not self.narrow_to:
            at = ("mend", self.mend.index(RemediationKind.NARROW_RULE))
            yield BadValueError(
                "narrow_rule needs narrow_to, which is missing", "add narrow_to: [203.0.113.0/24]", at=at
            )
        if RemediationKind.ENABLE_FLOW_LOGS in self.mend and not self.flow_log_destination:
            at = ("mend", self.mend.index(RemediationKind.ENABLE_FLOW_LOGS))
            message = "enable_flow_logs needs flow_log_destination, which is missing"
            yield BadValueError(message, "add flow_log_destination: arn:aws:s3:::flow-logs", at=at)
        if n.is_log_group(self.flow_log_destination) and not self.flow_log_role:
            message = "flow logs of AWS reach a log group only by a role, and flow_log_role is missing"
            yield BadValueError(message, "add flow_log_role, or name a bucket", at=("flow_log_destination",))

    def _aimless(self) -> Iterator[BadValueError]:
        """What is written and would never be used, which its writer cannot have meant."""
        for index, kind in enumerate(self.mend):
            if not MENDS[kind] & set(self.forbid):
                about = " or ".join(sorted(check.value for check in MENDS[kind]))
                message = f"{kind.value} mends {about}, which this rule does not forbid"
                yield BadValueError(message, "add it to forbid, or take the mend out", at=("mend", index))
        used: Sequence[tuple[str, bool, str]] = (
            ("allowed_regions", NetworkCheck.REGION in self.forbid, "region_not_allowed is not in forbid"),
            ("peering_cidrs", NetworkCheck.WIDE_PEERING in self.forbid, "wide_peering is not in forbid"),
            (
                "private_subnets",
                NetworkCheck.PRIVATE_SUBNET_EXPOSED in self.forbid,
                "private_subnet_exposed is not in forbid",
            ),
            (
                "unattached_for",
                not {NetworkCheck.UNATTACHED_ADDRESS, NetworkCheck.IDLE_ADDRESS}.isdisjoint(self.forbid),
                "neither unattached_public_address nor idle_public_address is in forbid",
            ),
            ("narrow_to", RemediationKind.NARROW_RULE in self.mend, "narrow_rule is not in mend"),
            ("flow_log_destination", RemediationKind.ENABLE_FLOW_LOGS in self.mend, "enable_flow_logs is not in mend"),
            ("flow_log_role", RemediationKind.ENABLE_FLOW_LOGS in self.mend, "enable_flow_logs is not in mend"),
        )
        for key, needed, why in used:
            if key in self.model_fields_set and not needed:
                message = f"{key} is never used: {why}"
                yield BadValueError(message, "add that, or take the key out", at=(key,), key=True)

    def _contradictory(self) -> Iterator[BadValueError]:
        given = None if self.applies_when_all is None else self.applies_when_all.clouds
        takers = n.clouds_writing_to(self.flow_log_destination)
        if RemediationKind.ENABLE_FLOW_LOGS in self.mend and (given is None or not set(given) <= set(takers)):
            message = f"only flow logs of {' and '.join(takers)} can go there, and the rule speaks of other clouds"
            fix = f"add applies_when_all: {{clouds: [{', '.join(takers)}]}}, and a rule for each other cloud"
            yield BadValueError(message, fix, at=("flow_log_destination",))
        if n.is_log_group(self.flow_log_destination) and not self.flow_log_role.startswith(f"arn:{takers[0]}:iam::"):
            message = f"{self.flow_log_role} is not the ARN of a role of {takers[0]}"
            yield BadValueError(message, f"its ARN begins with arn:{takers[0]}:iam::", at=("flow_log_role",))
        for index, port in enumerate(self.allowed_ports):
            if "ports" in self.model_fields_set and port in self.ports:
                message = f"{port} is watched by ports and allowed to be open"
                yield BadValueError(message, "keep it in one of the two", at=("allowed_ports", index))
        for index, text in enumerate(self.narrow_to):
            if n.is_wide(text, self.trusted, self.widest_v4, self.widest_v6):
                message = f"{text} is wider than the rule allows, so what is narrowed to it would be found again"
                yield BadValueError(message, "write smaller networks, or add it to trusted", at=("narrow_to", index))
