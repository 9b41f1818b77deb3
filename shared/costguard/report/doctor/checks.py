"""What the doctor found: checks, each a stable code with its facts. Nothing here asks anybody anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from types import MappingProxyType

from costguard.domain.reasons import FactValue, Reason
from costguard.domain.resources import Gap
from costguard.policy.sections import RunWait
from costguard.report.waste.day_one import CallRow


class Health(str, Enum):
    """What a check means for enforcing, the gravest last."""

    OK = "ok"
    WARNING = "warning"
    COULD_NOT_TELL = "could_not_tell"
    BARS = "bars_enforcing"


class DoctorQuestion(str, Enum):
    """What is asked. The first ten are asked of every target, the rest once.

    Of one team, asked for by its name, only the last is asked. Of these the bill, keys and networks only where the
    policy has rules for them. That of launch freezes and that of robots is asked of each of them, that of secrets
    of each that stands in plain text where functions run, and that of runs where others can reach the ledger, or a
    function ran with it.
    """

    CALLER = "caller"
    CLOCK = "clock"
    REGIONS = "regions"
    PERMISSIONS = "permissions"
    MEASURED = "measured"
    RECLAIM = "reclaim"
    OTHER_DEPLOYMENT = "other_deployment"
    BILL = "bill"
    KEYS = "keys"
    NETWORKS = "networks"
    FREEZE = "freeze"
    LEDGER = "ledger"
    POLICY = "policy"
    CHANNEL = "channel"
    ROBOT = "robot"
    PLAIN_TEXT = "plain_text"
    KILL_SWITCH = "kill_switch"
    RUNS = "runs"
    TEAM = "team"


class Code(str, Enum):
    """Every answer. `VERDICTS` says which question it answers and how grave it is."""

    CALLER_KNOWN = "caller_known"
    CALLER_REFUSED = "caller_refused"
    CALLER_UNTOLD = "caller_untold"
    CLOCK_RIGHT = "clock_right"
    CLOCK_OFF = "clock_off"
    CLOCK_WRONG = "clock_wrong"
    CLOCK_UNTOLD = "clock_untold"
    REGIONS_ANSWER = "regions_answer"
    REGIONS_NONE = "regions_none"
    REGIONS_CLOSED = "regions_closed"
    REGIONS_UNREAD = "regions_unread"
    REGIONS_DENIED = "regions_denied"
    PERMISSIONS_GRANTED = "permissions_granted"
    PERMISSIONS_UNTOLD = "permissions_untold"
    PERMISSIONS_WANTED = "permissions_wanted"
    PERMISSIONS_UNREAD = "permissions_unread"
    PERMISSIONS_MISSING = "permissions_missing"
    PERMISSIONS_UNSAFE = "permissions_unsafe"
    MEASURED_ALL = "measured_all"
    MEASURED_NOTHING_RUNS = "measured_nothing_runs"
    MEASURED_PARTLY = "measured_partly"
    MEASURED_UNREAD = "measured_unread"
    MEASURED_NONE = "measured_none"
    RECLAIM_NOTHING = "reclaim_nothing"
    RECLAIM_KNOWN = "reclaim_known"
    OTHER_NOT_SEEN = "other_not_seen"
    OTHER_UNREAD = "other_unread"
    OTHER_SEEN = "other_seen"
    OTHER_LOG_UNREAD = "other_log_unread"
    OTHER_LED = "other_led"
    OTHER_WORKS = "other_works"
    BILL_READ = "bill_read"
    BILL_SAYS_NOTHING = "bill_says_nothing"
    BILL_UNTOLD = "bill_untold"
    BILL_DENIED = "bill_denied"
    KEYS_READ = "keys_read"
    KEYS_UNTOLD = "keys_untold"
    KEYS_DENIED = "keys_denied"
    NETWORKS_READ = "networks_read"
    NETWORKS_UNTOLD = "networks_untold"
    NETWORKS_DENIED = "networks_denied"
    FREEZE_READY = "freeze_ready"
    FREEZE_IN_FORCE = "freeze_in_force"
    FREEZE_FOREIGN = "freeze_foreign"
    FREEZE_UNTOLD = "freeze_untold"
    FREEZE_DENIED = "freeze_denied"
    LEDGER_READY = "ledger_ready"
    LEDGER_NEW = "ledger_new"
    LEDGER_FORGETFUL = "ledger_forgetful"
    LEDGER_NEWER = "ledger_newer"
    LEDGER_UNUSABLE = "ledger_unusable"
    POLICY_ENFORCES = "policy_enforces"
    POLICY_GENTLE = "policy_gentle"
    POLICY_REMARKED = "policy_remarked"
    POLICY_NO_CALENDAR = "policy_no_calendar"
    POLICY_INVALID = "policy_invalid"
    CHANNEL_PROVES = "channel_proves"
    CHANNEL_PARTLY = "channel_partly"
    CHANNEL_MISSING = "channel_missing"
    ROBOT_READY = "robot_ready"
    ROBOT_UNSIGNED = "robot_unsigned"
    ROBOT_WRONG = "robot_wrong"
    PLAIN_TEXT_NONE = "plain_text_none"
    PLAIN_TEXT_FOUND = "plain_text_found"
    SWITCH_OPEN = "switch_open"
    SWITCH_PAUSED = "switch_paused"
    SWITCH_UNREADABLE = "switch_unreadable"
    RUNS_RECENT = "runs_recent"
    RUNS_NONE = "runs_none"
    RUNS_MISSED = "runs_missed"
    RUNS_UNENDED = "runs_unended"
    RUNS_OTHER_POLICY = "runs_other_policy"
    RUNS_STRETCH_WAITS = "runs_stretch_waits"
    TEAM_MACHINES = "team_machines"
    TEAM_NONE = "team_none"
    TEAM_UNKNOWN = "team_unknown"
    TEAM_UNREAD = "team_unread"
    TEAM_CHANNEL = "team_channel"
    TEAM_NO_CHANNEL = "team_no_channel"
    TEAM_MODE = "team_mode"
    TEAM_SPARED = "team_spared"
    TEAM_TOLD = "team_told"
    TEAM_TOLD_NOTHING = "team_told_nothing"


_OK, _WARNING, _UNTOLD, _BARS = Health
VERDICTS: Mapping[Code, tuple[DoctorQuestion, Health]] = MappingProxyType(
    {
        Code.CALLER_KNOWN: (DoctorQuestion.CALLER, _OK),
        Code.CALLER_REFUSED: (DoctorQuestion.CALLER, _BARS),
        Code.CALLER_UNTOLD: (DoctorQuestion.CALLER, _UNTOLD),
        Code.CLOCK_RIGHT: (DoctorQuestion.CLOCK, _OK),
        Code.CLOCK_OFF: (DoctorQuestion.CLOCK, _WARNING),
        Code.CLOCK_WRONG: (DoctorQuestion.CLOCK, _BARS),
        Code.CLOCK_UNTOLD: (DoctorQuestion.CLOCK, _UNTOLD),
        Code.REGIONS_ANSWER: (DoctorQuestion.REGIONS, _OK),
        Code.REGIONS_NONE: (DoctorQuestion.REGIONS, _WARNING),
        Code.REGIONS_CLOSED: (DoctorQuestion.REGIONS, _WARNING),
        Code.REGIONS_UNREAD: (DoctorQuestion.REGIONS, _UNTOLD),
        Code.REGIONS_DENIED: (DoctorQuestion.REGIONS, _BARS),
        Code.PERMISSIONS_GRANTED: (DoctorQuestion.PERMISSIONS, _OK),
        Code.PERMISSIONS_UNTOLD: (DoctorQuestion.PERMISSIONS, _WARNING),
        Code.PERMISSIONS_WANTED: (DoctorQuestion.PERMISSIONS, _WARNING),
        Code.PERMISSIONS_UNREAD: (DoctorQuestion.PERMISSIONS, _UNTOLD),
        Code.PERMISSIONS_MISSING: (DoctorQuestion.PERMISSIONS, _BARS),
        Code.PERMISSIONS_UNSAFE: (DoctorQuestion.PERMISSIONS, _BARS),
        Code.MEASURED_ALL: (DoctorQuestion.MEASURED, _OK),
        Code.MEASURED_NOTHING_RUNS: (DoctorQuestion.MEASURED, _OK),
        Code.MEASURED_PARTLY: (DoctorQuestion.MEASURED, _WARNING),
        Code.MEASURED_UNREAD: (DoctorQuestion.MEASURED, _UNTOLD),
        Code.MEASURED_NONE: (DoctorQuestion.MEASURED, _BARS),
        Code.RECLAIM_NOTHING: (DoctorQuestion.RECLAIM, _OK),
        Code.RECLAIM_KNOWN: (DoctorQuestion.RECLAIM, _OK),
        Code.OTHER_NOT_SEEN: (DoctorQuestion.OTHER_DEPLOYMENT, _OK),
        Code.OTHER_UNREAD: (DoctorQuestion.OTHER_DEPLOYMENT, _UNTOLD),
        Code.OTHER_SEEN: (DoctorQuestion.OTHER_DEPLOYMENT, _BARS),
        Code.OTHER_LOG_UNREAD: (DoctorQuestion.OTHER_DEPLOYMENT, _WARNING),
        Code.OTHER_LED: (DoctorQuestion.OTHER_DEPLOYMENT, _WARNING),
        Code.OTHER_WORKS: (DoctorQuestion.OTHER_DEPLOYMENT, _BARS),
        Code.BILL_READ: (DoctorQuestion.BILL, _OK),
        Code.BILL_SAYS_NOTHING: (DoctorQuestion.BILL, _WARNING),
        Code.BILL_UNTOLD: (DoctorQuestion.BILL, _WARNING),
        Code.BILL_DENIED: (DoctorQuestion.BILL, _WARNING),
        Code.KEYS_READ: (DoctorQuestion.KEYS, _OK),
        Code.KEYS_UNTOLD: (DoctorQuestion.KEYS, _WARNING),
        Code.KEYS_DENIED: (DoctorQuestion.KEYS, _WARNING),
        Code.NETWORKS_READ: (DoctorQuestion.NETWORKS, _OK),
        Code.NETWORKS_UNTOLD: (DoctorQuestion.NETWORKS, _WARNING),
        Code.NETWORKS_DENIED: (DoctorQuestion.NETWORKS, _WARNING),
        Code.FREEZE_READY: (DoctorQuestion.FREEZE, _OK),
        Code.FREEZE_IN_FORCE: (DoctorQuestion.FREEZE, _OK),
        Code.FREEZE_FOREIGN: (DoctorQuestion.FREEZE, _WARNING),
        Code.FREEZE_UNTOLD: (DoctorQuestion.FREEZE, _WARNING),
        Code.FREEZE_DENIED: (DoctorQuestion.FREEZE, _WARNING),
        Code.LEDGER_READY: (DoctorQuestion.LEDGER, _OK),
        Code.LEDGER_NEW: (DoctorQuestion.LEDGER, _WARNING),
        Code.LEDGER_FORGETFUL: (DoctorQuestion.LEDGER, _BARS),
        Code.LEDGER_NEWER: (DoctorQuestion.LEDGER, _BARS),
        Code.LEDGER_UNUSABLE: (DoctorQuestion.LEDGER, _BARS),
        Code.POLICY_ENFORCES: (DoctorQuestion.POLICY, _OK),
        Code.POLICY_GENTLE: (DoctorQuestion.POLICY, _OK),
        Code.POLICY_REMARKED: (DoctorQuestion.POLICY, _WARNING),
        Code.POLICY_NO_CALENDAR: (DoctorQuestion.POLICY, _BARS),
        Code.POLICY_INVALID: (DoctorQuestion.POLICY, _BARS),
        Code.CHANNEL_PROVES: (DoctorQuestion.CHANNEL, _OK),
        Code.CHANNEL_PARTLY: (DoctorQuestion.CHANNEL, _WARNING),
        Code.CHANNEL_MISSING: (DoctorQuestion.CHANNEL, _BARS),
        Code.ROBOT_READY: (DoctorQuestion.ROBOT, _OK),
        Code.ROBOT_UNSIGNED: (DoctorQuestion.ROBOT, _WARNING),
        Code.ROBOT_WRONG: (DoctorQuestion.ROBOT, _BARS),
        Code.PLAIN_TEXT_NONE: (DoctorQuestion.PLAIN_TEXT, _OK),
        Code.PLAIN_TEXT_FOUND: (DoctorQuestion.PLAIN_TEXT, _WARNING),
        Code.SWITCH_OPEN: (DoctorQuestion.KILL_SWITCH, _OK),
        Code.SWITCH_PAUSED: (DoctorQuestion.KILL_SWITCH, _WARNING),
        Code.SWITCH_UNREADABLE: (DoctorQuestion.KILL_SWITCH, _BARS),
        Code.RUNS_RECENT: (DoctorQuestion.RUNS, _OK),
        Code.RUNS_NONE: (DoctorQuestion.RUNS, _WARNING),
        Code.RUNS_MISSED: (DoctorQuestion.RUNS, _WARNING),
        Code.RUNS_UNENDED: (DoctorQuestion.RUNS, _WARNING),
        Code.RUNS_OTHER_POLICY: (DoctorQuestion.RUNS, _WARNING),
        Code.RUNS_STRETCH_WAITS: (DoctorQuestion.RUNS, _WARNING),
        Code.TEAM_MACHINES: (DoctorQuestion.TEAM, _OK),
        Code.TEAM_NONE: (DoctorQuestion.TEAM, _WARNING),
        Code.TEAM_UNKNOWN: (DoctorQuestion.TEAM, _BARS),
        Code.TEAM_UNREAD: (DoctorQuestion.TEAM, _UNTOLD),
        Code.TEAM_CHANNEL: (DoctorQuestion.TEAM, _OK),
        Code.TEAM_NO_CHANNEL: (DoctorQuestion.TEAM, _BARS),
        Code.TEAM_MODE: (DoctorQuestion.TEAM, _OK),
        Code.TEAM_SPARED: (DoctorQuestion.TEAM, _OK),
        Code.TEAM_TOLD: (DoctorQuestion.TEAM, _OK),
        Code.TEAM_TOLD_NOTHING: (DoctorQuestion.TEAM, _OK),
    }
)


class RunFault(str, Enum):
    """What may be wrong with the runs of a function."""

    NEVER_RAN = "never_ran"
    NOT_LATELY = "not_lately"
    DID_NOT_END = "did_not_end"
    OTHER_POLICY = "other_policy"
    STRETCHES_WAIT = "stretches_wait"


@dataclass(frozen=True, slots=True)
class RunTold:
    """What is wrong with a function's latest run: which it is, by when it began, or by what policy it decided.

    `wait` is one that becomes longer than the policy says, as runs come.
    """

    fault: RunFault
    began: datetime | None = None
    policy: str = ""
    wait: RunWait | None = None


@dataclass(frozen=True, slots=True)
class Detail:
    """One thing behind a check: a machine and why it is unmeasured, a gap, an operation and what the cloud said.

    A `Reason` or `Gap` brings its own words and its own fix, a `RunTold` its words. Text is what others wrote.
    """

    where: str
    said: Reason | Gap | RunTold | str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One question answered. `target` is empty for what is asked once."""

    code: Code
    target: str = ""
    facts: Mapping[str, FactValue] = field(default_factory=dict)
    details: tuple[Detail, ...] = ()

    @property
    def question(self) -> DoctorQuestion:
        """What was asked."""
        return VERDICTS[self.code][0]

    @property
    def health(self) -> Health:
        """What the answer means for enforcing."""
        return VERDICTS[self.code][1]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All checks, in the order they are told, and every call that was sent for them."""

    at: datetime
    checks: tuple[DoctorCheck, ...]
    calls: tuple[CallRow, ...] = ()

    @property
    def verdict(self) -> Health:
        """The gravest of all checks; enforcing is safe up to a warning."""
        return gravest(check.health for check in self.checks)

    @property
    def safe(self) -> bool:
        """Whether it is safe to enforce."""
        return self.verdict in {Health.OK, Health.WARNING}


_GRAVITY = tuple(Health)


def gravest(healths: Iterable[Health]) -> Health:
    """The one that decides; of nothing asked nothing is known."""
    return max(healths, key=_GRAVITY.index, default=Health.COULD_NOT_TELL)
