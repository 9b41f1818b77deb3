"""The compiled policy: what the engine reads, after every check has passed; and the one where nobody wrote any."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal

from costguard.domain.actions import LaunchFreeze, Verb
from costguard.domain.money import Discount, ExchangeRate, Money
from costguard.guards.budget.rules import BudgetRule, PriorityClass
from costguard.guards.keys.rules import KeyRule, KeySelector
from costguard.guards.network.rules import AuditRule, NetworkCheck
from costguard.guards.rules.common import UNSAID, Limits, Mode, Protection, Selector, Step
from costguard.guards.rules.idle import SHIPPED_BOUNDS, IdleRule
from costguard.policy.model.terms import digest_of, with_digest
from costguard.policy.model.working_time import WorkingCalendar


@dataclass(frozen=True, slots=True)
class Account:
    """An account the policy guards; `regions` None means all that are opted in.

    `role` is an ARN, a name, or either with `{account}` in it; `organisation` adds the accounts listed by it.
    """

    cloud: str
    id: str
    regions: tuple[str, ...] | None
    owner: str = ""
    role: str = ""
    external_id: str = ""
    organisation: bool = False
    protected: bool = False


@dataclass(frozen=True, slots=True)
class Owner:
    """Who is told about instances that match. `channel` is an address the notifiers know (`#gpu-research`).

    `people` are ids of Slack users who may answer for this owner. `cloud_users` are globs of who launched what is
    this owner's too, as the cloud's audit trail names them.
    """

    name: str
    owns: Selector
    channel: str = ""
    people: tuple[str, ...] = ()
    cloud_users: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerTerms:
    """Whose answers count. Empty means nobody's: then notices offer no buttons that need it.

    `slack_team` is the workspace that clicks must come from. `approvers` may approve and stop now, whoever owns the
    machine. What costs more an hour than its currency's amount in `two_above`, or has no known price, takes two people.
    """

    slack_team: str = ""
    approvers: tuple[str, ...] = ()
    two_above: tuple[Money, ...] = ()


IN_LEDGER = "ledger"
"""The place of an exception that stands in no file."""


@dataclass(frozen=True, slots=True)
class Exemption:
    """An agreed exception: matching instances are shown and never touched until `expires_at`.

    `where` is its place in the policy, or the ledger, for messages; it is no part of what the policy says.
    """

    owns: Selector
    owner: str
    reason: str
    approver: str
    expires_at: datetime
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class PriceOverride:
    """A negotiated hourly price for instance types that match one of the globs."""

    cloud: str
    instance_types: tuple[str, ...]
    hourly: Money


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A Prometheus server with DCGM exporter metrics; `instance_label` holds the instance id or private DNS name.

    `where` is its place in the policy, for messages; it is no part of what the policy says.
    """

    url: str
    instance_label: str = "instance_id"
    extra_matchers: str = ""
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class SignalSettings:
    """Where signals come from."""

    cloudwatch_namespace: str = "CWAgent"
    prometheus: tuple[Prometheus, ...] = ()


@dataclass(frozen=True, slots=True)
class Shadows:
    """Rules that decide nothing: each is followed beside the rules in force, to show where they would differ."""

    idle_gpu: tuple[IdleRule, ...] = ()
    kms_rotation: tuple[KeyRule, ...] = ()
    network_audit: tuple[AuditRule, ...] = ()


@dataclass(frozen=True, slots=True)
class RolloutStep:
    """From `since` on (a day begins in the calendar's zone) this mode is allowed, if its condition holds.

    `regret_below` is the share of the stops of the rule `in_shadow` after which a machine was in use again within a
    day, counted once there are `of_at_least`; None asks for nothing.
    """

    mode: Mode
    since: date
    regret_below: Decimal | None = None
    in_shadow: str = ""
    of_at_least: int = 10


@dataclass(frozen=True, slots=True)
class RolloutEntry:
    """The steps of one team, one account, or of one team in one account; the team `*`: what no other entry covers."""

    team: str = ""
    account: str = ""
    steps: tuple[RolloutStep, ...] = ()

    @property
    def scope(self) -> str:
        """As people call it: `nlp`, `111122223333`, `nlp 111122223333`."""
        return " ".join(filter(None, (self.team, self.account)))


MESSAGES_PER_DAY = 12
"""Of one address in any 24 hours: 60 machines shown whole in Slack, or some 190 in digests."""

LONGEST_EXCEPTION = timedelta(days=180)
"""What lasts longer is a rule's matter: `except_when_any`, or a tag that protects."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything a run decides by.

    `accounts` is empty only where the key was left out: then the account of the credentials is guarded.
    Of `owners`, `prices` and `discounts` the first that matches counts. `digest` is a hash of everything else here:
    comments, spaces and the order of rules do not change it. `priority_classes` are from the least important on.
    In an account seen for the first time less than `observe_new_accounts_for` ago, every rule only observes.
    `leading_deployment` is the one that acts in an account where several work.
    `every_hour_counts` is `calendar: none` said aloud; the calendar is None then, as where nothing is said.
    With `keep_as_tag` a Keep is written on its machine too, for other deployments to see.
    Where there is a `rollout`, no machine is treated harsher than it allows, and what it does not cover is observed.
    `messages_per_day` is how many messages about machines one address gets in 24 hours before the rest waits.
    With `start_again` the owner of a machine may have it started again that Costguard stopped.
    `longest_exception` is how long one may last that is asked for; what stands in the policy lasts as it says.
    """

    mode: Mode
    idle_gpu: tuple[IdleRule, ...]
    accounts: tuple[Account, ...]
    owners: tuple[Owner, ...]
    exemptions: tuple[Exemption, ...]
    protection: Protection
    calendar: WorkingCalendar | None
    signals: SignalSettings
    prices: tuple[PriceOverride, ...]
    default_channel: str
    digest: str
    budgets: tuple[BudgetRule, ...] = ()
    exchange_rates: tuple[ExchangeRate, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    launch_freezes: tuple[LaunchFreeze, ...] = ()
    kms_rotation: tuple[KeyRule, ...] = ()
    network_audit: tuple[AuditRule, ...] = ()
    answers: AnswerTerms = AnswerTerms()
    shadows: Shadows = Shadows()
    observe_new_accounts_for: timedelta = timedelta(0)
    leading_deployment: str = field(default="", metadata={UNSAID: True})
    keep_as_tag: bool = field(default=False, metadata={UNSAID: True})
    discounts: tuple[Discount, ...] = field(default=(), metadata={UNSAID: True})
    rollout: tuple[RolloutEntry, ...] = field(default=(), metadata={UNSAID: True})
    messages_per_day: int = field(default=MESSAGES_PER_DAY, metadata={UNSAID: True})
    every_hour_counts: bool = field(default=False, metadata={UNSAID: True})
    start_again: bool = field(default=False, metadata={UNSAID: True})
    longest_exception: timedelta = field(default=LONGEST_EXCEPTION, metadata={UNSAID: True})

    @property
    def enforces(self) -> bool:
        """Whether anything at all may be changed under it."""
        modes = {*(rule.mode for rule in self.idle_gpu), *(budget.mode for budget in self.budgets)}
        modes |= {*(rule.mode for rule in self.kms_rotation), *(rule.mode for rule in self.network_audit)}
        return Mode.ENFORCE in modes

    def active_exemptions(self, now: datetime) -> tuple[Exemption, ...]:
        """The exceptions that have not expired."""
        return tuple(each for each in self.exemptions if each.expires_at > now)

    def rule(self, name: str) -> IdleRule | None:
        """The rule of this name, if the policy still has it."""
        return next((rule for rule in self.idle_gpu if rule.name == name), None)

    def budget(self, name: str) -> BudgetRule | None:
        """The budget of this name, if the policy still has it."""
        return next((rule for rule in self.budgets if rule.name == name), None)


def with_policy_digest(policy: Policy) -> Policy:
    """The same policy with its digest."""
    said = replace(policy, digest="", exemptions=tuple(sorted(policy.exemptions, key=digest_of)))
    return replace(policy, digest=digest_of(said))


DEFAULT_RULE = "default"
ASKS_FOR_MORE = frozenset({NetworkCheck.REGION, NetworkCheck.WIDE_PEERING, NetworkCheck.PRIVATE_SUBNET_EXPOSED})
"""The checks of networks that cannot be made before a policy says what is allowed."""


def default_policy() -> Policy:
    """Observe; one rule for everything: running longer than 24 h and idle over that time, warn, then stop.

    Idle is GPU, CPU and network together: by the GPU alone, machines that load data, simulate or serve are idle.

    And one for every key: rotated by itself every 90 days; and one for every network, which mends nothing.
    """
    rule = IdleRule(
        name=DEFAULT_RULE,
        mode=Mode.OBSERVE,
        applies_to=Selector(),
        idle=SHIPPED_BOUNDS,
        ladder=(Step(Verb.WARN, timedelta(0)), Step(Verb.STOP, timedelta(hours=24))),
        limits=Limits(),
        digest="",
    )
    policy = Policy(
        mode=Mode.OBSERVE,
        idle_gpu=(with_digest(rule),),
        accounts=(),
        owners=(),
        exemptions=(),
        protection=Protection(),
        calendar=None,
        signals=SignalSettings(),
        prices=(),
        default_channel="",
        digest="",
        kms_rotation=(with_digest(KeyRule(DEFAULT_RULE, Mode.OBSERVE, KeySelector())),),
        network_audit=(with_digest(AuditRule(DEFAULT_RULE, Mode.OBSERVE, frozenset(NetworkCheck) - ASKS_FOR_MORE)),),
    )
    return with_policy_digest(policy)
