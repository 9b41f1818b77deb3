"""The policies of a simulation: what they say in truth, and the YAML that says it to the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import lru_cache
from random import Random

from tests.simulation.budgets import BudgetSpec, budgets_yaml
from tests.simulation.rule_spec import RuleSpec

from costguard.domain.errors import InvalidInputError
from costguard.policy.documents.loader import load_policy
from costguard.policy.model.policy import Policy, with_policy_digest
from costguard.ports import PolicyText

CHANNEL = "slack:#gpu"
TEAM, OWNED, OWNER, APPROVERS = "T0CAFE01", "research", "U0OWNER1", ("U0BOSS01", "U0BOSS02")
"""The workspace whose clicks count, whose machines they are, who may answer for them, and who for any."""

ANY_TEAM = "'*'"  # as YAML wants it: a bare star is an alias there


SPARED_IN = (
    ("purpose", "customer-demo"),
    ("Purpose", "Customer-Demo"),
    ("PURPOSE", "customer_demo"),
    ("pur/pose", "CustomerDemo"),
)
"""The tag that policies spare by, as they write it and as people write it on machines."""


def spared_by_tag(tags: Mapping[str, str]) -> bool:
    """Whether the tag is there in one of the spellings of these stories."""
    return any(tags.get(key) == value for key, value in SPARED_IN)


@dataclass(frozen=True, slots=True)
class Agreed:
    """An exception until a moment, for one machine; without one for whatever has the tag that is spared by."""

    resource: str
    expires: datetime


@dataclass(frozen=True, slots=True)
class PolicyVersion:
    """One state of the config repo. `broken` is a document that cannot be a policy.

    `terminate_alone`: termination protection bars terminate, and nothing else.
    `clicks`: answers in the chat count; `two`: stopping now and approving take two people, as every machine is dear;
    `apart`: no local disk is lost without an approver, for the same reason.
    `holidays` are free; `undated`: those of a country besides, of which nobody knows the days of this year.
    `rolled_out`: before this day, of UTC, every team is warned at most, and for all but two days not even that.
    """

    rules: tuple[RuleSpec, ...]
    exceptions: tuple[Agreed, ...] = ()
    protected_accounts: tuple[str, ...] = ()
    working_hours: bool = False
    broken: bool = False
    budgets: tuple[BudgetSpec, ...] = ()
    rates: bool = True
    rates_since: date = date(2025, 12, 1)
    clicks: bool = False
    two: bool = False
    apart: bool = False
    terminate_alone: bool = False
    holidays: tuple[date, ...] = ()
    undated: bool = False
    rolled_out: date | None = None

    def budget(self, name: str) -> BudgetSpec | None:
        """The budget of this name."""
        return next((budget for budget in self.budgets if budget.name == name), None)

    def gentlest(self, tags: Mapping[str, str]) -> RuleSpec | None:
        """The least destructive of the rules that apply to a machine with these tags."""
        team = tags.get("team")
        left = [rule for rule in self.rules if not (rule.spares and spared_by_tag(tags))]
        applying = [rule for rule in left if team is not None and rule.team in (team, ANY_TEAM)]
        return min(applying, key=lambda rule: rule.harshness, default=None)

    def text(self) -> PolicyText:
        """The file as the config repo holds it."""
        return _text(self)


_LONG_AGO = "calendars: [{name: jp, source: the story, years: [2018, 2019], closed: 2019-05-01}]\n"


@lru_cache(maxsize=4096)
def _text(version: PolicyVersion) -> PolicyText:
    lines = ["version: 1\nmode: enforce\n", f'notify: {{default: "{CHANNEL}"{_answers(version)}}}\n']
    if version.clicks:
        lines.append(f"owners: [{{name: {OWNED}, owns: {{tags: {{team: {OWNED}}}}}, people: [{OWNER}]}}]\n")
    if version.working_hours:
        free = ", ".join((*(("jp",) if version.undated else ()), *map(str, version.holidays)))
        named = f", holidays: [{free}]" if free else ""
        lines.append(f'calendar: {{zone: UTC, days: mon-fri, hours: "08:00-18:00"{named}}}\n')
    lines.append(_rollout(version))
    protect = ["termination_protection_bars: terminate"] if version.terminate_alone else []
    if version.protected_accounts:
        accounts = ", ".join(f'"{account}"' for account in version.protected_accounts)
        protect.append(f"accounts: [{accounts}]")
    if protect:
        lines.append(f"protect: {{{', '.join(protect)}}}\n")
    if version.rules:
        lines.append("idle_gpu:\n")
        lines.extend(rule.yaml(apart=version.apart) for rule in version.rules)
    if version.budgets:
        since = version.rates_since if version.rates else None
        lines.append(budgets_yaml(version.budgets, rates_since=since, apart=version.apart))
    if version.exceptions:
        lines.append("exceptions:\n")
        lines.extend(
            f"  - {{{_meant(one)}, owner: vision, reason: agreed, approver: platform,"
            f' expires: "{one.expires.isoformat()}"}}\n'
            for one in version.exceptions
        )
    if version.broken:
        lines.append("no_such_key: 1\n")
    whole = "".join(lines)
    text = PolicyText({"costguard.yaml": whole, "holidays.yaml": _LONG_AGO}, f"revision-{len(whole)}")
    if not version.broken:
        _WRITTEN[whole] = version
    return text


def _rollout(version: PolicyVersion) -> str:
    if version.rolled_out is None:
        return ""
    warned = version.rolled_out - timedelta(days=2)
    steps = f"{{mode: warn, since: {warned}}}, {{mode: enforce, since: {version.rolled_out}}}"
    return f"rollout: [{{team: {ANY_TEAM}, steps: [{steps}]}}]\n"


def _meant(agreed: Agreed) -> str:
    if agreed.resource:
        return f'resource: "{agreed.resource}"'
    key, value = SPARED_IN[0]
    return f"applies_when_all: {{tags: {{{key}: {value}}}}}"


def _answers(version: PolicyVersion) -> str:
    above = ", two_approvers_above: [1 USD, 1 CNY]" if version.two else ""
    return f", answers: {{slack_team: {TEAM}, approvers: [{', '.join(APPROVERS)}]{above}}}" if version.clicks else ""


_WRITTEN: dict[str, PolicyVersion] = {}
"""What each text says, so that its rules need not be compiled again in every seed."""


def load(text: PolicyText) -> Policy:
    """`load_policy`, with every rule compiled once per process: rules of one policy do not bear on each other.

    Raises:
        InvalidInputError: as `load_policy`.
    """
    whole = text.files["costguard.yaml"]
    version = _WRITTEN.get(whole)
    if version is None:
        error = _refused(whole)
        if error is not None:
            raise InvalidInputError(error)
        return _compiled(whole)
    return _compiled(whole) if len(version.rules) <= 1 else _composed(version)


@lru_cache(maxsize=8192)
def _composed(version: PolicyVersion) -> Policy:
    frame = _compiled(_text(replace(version, rules=version.rules[:1])).files["costguard.yaml"])
    rules = sorted(version.rules, key=lambda rule: rule.name)
    alone = (PolicyVersion((rule,), terminate_alone=version.terminate_alone, apart=version.apart) for rule in rules)
    single = (_compiled(_text(each).files["costguard.yaml"]).idle_gpu[0] for each in alone)
    return with_policy_digest(replace(frame, idle_gpu=tuple(single)))


@lru_cache(maxsize=8192)
def _compiled(whole: str) -> Policy:
    return load_policy(PolicyText({"costguard.yaml": whole, "holidays.yaml": _LONG_AGO}, "revision"))


@lru_cache(maxsize=4096)
def _refused(whole: str) -> str | None:
    try:
        _compiled(whole)
    except InvalidInputError as err:
        return str(err)
    return None


def loosened(rule: RuleSpec) -> RuleSpec:
    """The same, sooner."""
    return replace(rule, stop=None if rule.stop is None else max(1, rule.stop // 2))


def tightened(rule: RuleSpec) -> RuleSpec:
    """The same, later."""
    return replace(
        rule,
        stop=None if rule.stop is None else rule.stop * 2,
        terminate=None if rule.terminate is None else rule.terminate * 2,
    )


def with_days_off(random: Random, version: PolicyVersion, start: datetime) -> PolicyVersion:
    """In most stories with working hours a day or two are free; in some nobody knows the holidays of the year."""
    if not version.working_hours:
        return version
    free = sorted({start.date() + timedelta(days=random.randrange(1, 25)) for _ in range(random.choice((0, 1, 2)))})
    return replace(version, holidays=tuple(free), undated=random.random() < 0.15)


def works(day: date, version: PolicyVersion) -> bool:
    """Whether people work on this day."""
    return day.weekday() < 5 and day not in version.holidays


def nobody_looks(at: datetime, version: PolicyVersion) -> str:
    """Why no machine may be stopped for the first time at this hour; empty where it may."""
    if not version.working_hours:
        return ""
    day = at.date()
    if not works(day, version):
        return f"on {at:%A %m-%d}, when nobody works"
    if not 8 <= at.hour < 18:
        return f"at {at:%H:%M}, when nobody works"
    off: list[date] = []
    while not works(day + timedelta(days=len(off) + 1), version):
        off.append(day + timedelta(days=len(off) + 1))
    if set(off) & set(version.holidays):
        return f"on {at:%A %m-%d}, the last day before a holiday"
    return f"at {at:%A %H:%M}, just before {len(off)} days off" if off and at.hour >= 12 else ""


def working_time_after(start: datetime, hours: int, version: PolicyVersion) -> datetime:
    """When a wait is over: by the wall, or Monday to Friday from 8 to 18 UTC; counted hour by hour."""
    if not version.working_hours:
        return start + timedelta(hours=hours)
    left = timedelta(hours=hours)
    if version.undated:
        left += left + 2 * 5 * timedelta(hours=10)
    at = start
    while True:
        opens = at.replace(hour=8, minute=0, second=0, microsecond=0)
        closes = opens + timedelta(hours=10)
        begin = max(at, opens)
        if works(at.date(), version) and begin < closes:
            if begin + left <= closes:
                return begin + left
            left -= closes - begin
        at = opens.replace(hour=0) + timedelta(days=1)
