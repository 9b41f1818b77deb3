"""The policies of stories about settings: rules for keys and for networks, in plain terms and as YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

from tests.simulation.rule_spec import MODES
from tests.simulation.rules import CHANNEL, Agreed

from costguard.domain.errors import InvalidInputError
from costguard.policy.documents.loader import load_policy
from costguard.policy.model.policy import Policy
from costguard.ports import PolicyText

KEYS, NETWORKS = "kms_rotation", "network_audit"
LATE_BY = timedelta(days=3)
"""How long after its date a rotation still counts as in time."""
OFFERED = {"aws": (90, 2560), "alibaba": (7, 365), "tencent": (7, 365)}
"""The shortest and the longest period, in days, that each vendor offers for the keys of these stories."""


@dataclass(frozen=True, slots=True)
class KeyRuleSpec:
    """One rule for keys. Days and hours; without a `team` it speaks of every key."""

    name: str = "ninety-days"
    team: str = ""
    mode: str = "enforce"
    every: int = 90
    automatic: bool = True
    on_demand: bool = True
    wait: int = 24
    actions: int = 10

    def covers(self, tags: Mapping[str, str]) -> bool:
        """Whether it speaks of a key with these tags."""
        return not self.team or tags.get("team") == self.team

    def days(self, provider: str) -> int:
        """The period asked for, within what the vendor offers."""
        shortest, longest = OFFERED[provider]
        return max(shortest, min(longest, self.every))

    def yaml(self) -> str:
        """The entry of `kms_rotation`."""
        means = [word for word, used in (("automatic", self.automatic), ("on_demand", self.on_demand)) if used]
        applies = f"    applies_when_all: {{tags: {{team: {self.team}}}}}\n" if self.team else ""
        return (
            f"  - name: {self.name}\n    mode: {self.mode}\n{applies}"
            f"    rotate_every: {self.every}d\n    means: [{', '.join(means)}]\n"
            f"    wait: {self.wait}h\n    actions_per_day: {self.actions}\n"
        )


@dataclass(frozen=True, slots=True)
class NetRuleSpec:
    """One rule for networks. Hours; `ports` are those that may not be open to the world, `trusted` has the office."""

    name: str = "hosts"
    mode: str = "enforce"
    forbid: tuple[str, ...] = ("open_admin_port",)
    mend: tuple[str, ...] = ("revoke_rule",)
    ports: tuple[int, ...] = (8888,)
    trusted: tuple[str, ...] = ("198.51.100.0/24",)
    narrow_to: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    unattached: int = 48
    wait: int = 24
    actions: int = 5
    logs_to: str = ""

    def yaml(self) -> str:
        """The entry of `network_audit`."""
        lines = [f"  - name: {self.name}", f"    mode: {self.mode}", f"    forbid: [{', '.join(self.forbid)}]"]
        if self.mend:
            lines.append(f"    mend: [{', '.join(self.mend)}]")
        if "open_admin_port" in self.forbid:
            lines.append(f"    ports: [{', '.join(map(str, self.ports))}]")
        if self.trusted:
            lines.append(f"    trusted: [{', '.join(self.trusted)}]")
        if "narrow_rule" in self.mend:
            lines.append(f"    narrow_to: [{', '.join(self.narrow_to)}]")
        if self.keep:
            quoted = ", ".join(f'"{each}"' for each in self.keep)
            lines.append(f"    keep: [{quoted}]")
        if "unattached_public_address" in self.forbid:
            lines.append(f"    unattached_for: {self.unattached}h")
        if "enable_flow_logs" in self.mend:
            lines.append(f'    flow_log_destination: "{self.logs_to}"')
        lines.append(f"    wait: {self.wait}h")
        lines.append(f"    actions_per_day: {self.actions}")
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class SettingsVersion:
    """One state of the config repo. `broken` is a document that cannot be a policy."""

    keys: tuple[KeyRuleSpec, ...] = ()
    networks: tuple[NetRuleSpec, ...] = ()
    exceptions: tuple[Agreed, ...] = ()
    protected_accounts: tuple[str, ...] = ()
    broken: bool = False

    def key_rule(self, tags: Mapping[str, str]) -> KeyRuleSpec | None:
        """Of the rules that speak of a key, the one that asks the least."""
        covering = [rule for rule in self.keys if rule.covers(tags)]
        return min(covering, key=lambda rule: (MODES.index(rule.mode), -rule.every, rule.name), default=None)

    def net_rule(self, check: str) -> NetRuleSpec | None:
        """The rule that forbids this; no two of a story forbid the same."""
        return next((rule for rule in self.networks if check in rule.forbid), None)

    def named(self, name: str) -> KeyRuleSpec | NetRuleSpec | None:
        """The rule of this name."""
        every: tuple[KeyRuleSpec | NetRuleSpec, ...] = (*self.keys, *self.networks)
        return next((rule for rule in every if rule.name == name), None)

    @property
    def kept(self) -> frozenset[str]:
        """Whatever any rule names as never to be touched."""
        return frozenset(each for rule in self.networks for each in rule.keep)

    def text(self) -> PolicyText:
        """The file as the config repo holds it."""
        return _text(self)


@lru_cache(maxsize=4096)
def _text(version: SettingsVersion) -> PolicyText:
    lines = ["version: 1\nmode: enforce\n", f'notify: {{default: "{CHANNEL}"}}\n']
    if version.protected_accounts:
        accounts = ", ".join(f'"{account}"' for account in version.protected_accounts)
        lines.append(f"protect: {{accounts: [{accounts}]}}\n")
    if version.keys:
        lines.append("kms_rotation:\n")
        lines.extend(rule.yaml() for rule in version.keys)
    if version.networks:
        lines.append("network_audit:\n")
        lines.extend(rule.yaml() for rule in version.networks)
    if version.exceptions:
        lines.append("exceptions:\n")
        lines.extend(
            f'  - {{resource: "{one.resource}", owner: vision, reason: agreed, approver: platform,'
            f' expires: "{one.expires.isoformat()}"}}\n'
            for one in version.exceptions
        )
    if version.broken:
        lines.append("no_such_key: 1\n")
    whole = "".join(lines)
    return PolicyText({"costguard.yaml": whole}, f"revision-{len(whole)}")


def load(text: PolicyText) -> Policy:
    """`load_policy`, each text compiled once per process.

    Raises:
        InvalidInputError: as `load_policy`.
    """
    found = _loaded(text.files["costguard.yaml"])
    if isinstance(found, str):
        raise InvalidInputError(found)
    return found


@lru_cache(maxsize=4096)
def _loaded(whole: str) -> Policy | str:
    try:
        return load_policy(PolicyText({"costguard.yaml": whole}, "revision"))
    except InvalidInputError as err:
        return str(err)
