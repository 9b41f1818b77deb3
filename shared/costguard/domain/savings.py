"""What stops, terminations and released addresses saved: predicted when done, realised as far as seen since."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum

from costguard.domain.actions import Action, Verb
from costguard.domain.money import HourlyRate, Money, SpendScope
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Billing, InstanceState


class SavingStanding(str, Enum):
    """Why a saving counts as far as it does, and whether it goes on.

    It goes on while `STOPPED`, `TERMINATED` or `RELEASED`. It ended where the machine was `RESTARTED`, was started by
    `costguard undo` (`UNDONE`), was `REPLACED` by another, is `GONE` by another hand, is `BILLED_ON` though stopped, or
    where a later action has its hours (`HANDED_OVER`) or an earlier one has them already (`SHARED`). `UNSEEN`: nobody
    could look since, so it counts up to the last look. `OVER`: it was counted for as long as any is.
    """

    STOPPED = "stopped"
    TERMINATED = "terminated"
    RELEASED = "released"
    RESTARTED = "restarted"
    UNDONE = "undone"
    REPLACED = "replaced"
    GONE = "gone"
    BILLED_ON = "billed_on"
    HANDED_OVER = "handed_over"
    SHARED = "shared"
    UNSEEN = "unseen"
    OVER = "over"


class SavingCause(str, Enum):
    """Whose doing a saving is. Savings of several causes are never added up.

    `COSTGUARD`: its own call took effect. `PERSON`: somebody else stopped the machine soon after a notice of it was
    delivered. `UNATTRIBUTED`: nothing recorded proves either.
    """

    COSTGUARD = "costguard"
    PERSON = "person_after_notice"
    UNATTRIBUTED = "unattributed"


GOING_ON = frozenset({SavingStanding.STOPPED, SavingStanding.TERMINATED, SavingStanding.RELEASED})
"""What saves at this moment."""

FINAL = frozenset(
    {
        SavingStanding.RESTARTED,
        SavingStanding.UNDONE,
        SavingStanding.REPLACED,
        SavingStanding.GONE,
        SavingStanding.BILLED_ON,
    }
)
"""What ends a saving for good."""


class Worth(str, Enum):
    """What the hourly figure of a saving rests on.

    `PRICED`: a price is known and no commitment is. `PARTLY_COVERED` and `COVERED`: a reservation or a savings plan
    pays for some or all hours of such machines and is paid all the same. `BILLED_ON`: the cloud said at once that the
    stop did not end the billing. `UNPRICED`: nobody knows the price, which counts as nothing.
    """

    PRICED = "priced"
    PARTLY_COVERED = "partly_covered"
    COVERED = "covered"
    BILLED_ON = "billed_on"
    UNPRICED = "unpriced"


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of what such machines cost is in no commitment, 0 to 1, by which bill and up to when."""

    uncovered: Decimal
    source: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Sighting:
    """What one run saw of one machine, as far as savings ask for it.

    `group` names what launched it, if anything did (`autoscaling:trainers`); `alike` is the same for machines with the
    same tags, their names aside, and empty for one without tags; `launched_by` is who started it, where the audit trail
    was asked. The others are as in `Instance`.
    """

    ref: ResourceRef
    state: InstanceState
    run_epoch: str
    launched_at: datetime | None
    billing: Billing
    instance_type: str
    name: str = ""
    owner: str = ""
    group: str = ""
    alike: str = ""
    launched_by: str = ""
    stopped_by: str = ""
    billed_while_stopped: bool = False


@dataclass(frozen=True, slots=True)
class SavingChange:
    """From when on another standing holds. `other` is the machine that replaced this one, and `how` that is known."""

    standing: SavingStanding
    at: datetime
    other: ResourceRef | None = None
    how: str = ""


@dataclass(frozen=True, slots=True)
class RecordedSaving:
    """One stop, termination or release that was seen complete at `confirmed_at`, and what was seen to change since.

    `action` holds what it was expected to save. `machine` is how its machine looked then: None for an address, and for
    what an older Costguard wrote. `stop_request` is the cloud's own id of the stop, where it names one. `cause` None:
    what came of the call was not sure then, or an older Costguard wrote it; the intent tells.
    """

    action: Action
    confirmed_at: datetime
    guard: str = ""
    machine: Sighting | None = None
    name: str = ""
    owner: str = ""
    coverage: Coverage | None = None
    billed_on: bool = False
    stop_request: str = ""
    changes: tuple[SavingChange, ...] = ()
    cause: SavingCause | None = None

    @property
    def last(self) -> SavingChange | None:
        """What was seen to change last."""
        return self.changes[-1] if self.changes else None

    @property
    def ended_at(self) -> datetime | None:
        """Until when it counts; None means it goes on, as far as anybody has looked."""
        last = self.last
        return last.at if last is not None and last.standing in FINAL else None


@dataclass(frozen=True, slots=True)
class MachineCharge:
    """What a bill has for one machine in one charge period; `committed`: under a commitment."""

    start: datetime
    end: datetime
    billed: Money
    effective: Money
    committed: bool = False


@dataclass(frozen=True, slots=True)
class MachineBill:
    """The bill of one machine that was stopped or terminated, as the report of one scope has it; in order of time.

    Every charge for it before `complete_until` is there.
    """

    subject: ResourceRef
    scope: SpendScope
    charges: tuple[MachineCharge, ...]
    complete_until: datetime
    source: str


@dataclass(frozen=True, slots=True)
class SavingEntry:
    """What one action saved within the time of a report, and everything that it rests on.

    `predicted` is what was expected when it was done, had nothing happened since; `realised` what is seen to have been
    saved, net of `still_billed`. They are over the time of the report, one sum per currency. `since` is when it was
    seen complete, `counted_until` how far it counts. `hourly` is what stops billing, by `price`, less what commitments
    cover; `kept` what goes on, None where its price is unknown. `billed_anyway` is what the bill shows for the machine
    in days that it should have saved, and is taken off `realised`; `billed_until` how far the bill was compared, None
    where none tells of single machines. `shared_with` is the action that has its hours. `realised` is by list price,
    or the policy's; `realised_net` after discounts, empty where nobody knew them.
    """

    action_id: str
    case_id: str
    guard: str
    rule: str
    verb: Verb
    subject: ResourceRef
    name: str
    instance_type: str
    owner: str
    since: datetime
    counted_until: datetime
    standing: SavingStanding
    worth: Worth
    predicted: tuple[Money, ...]
    realised: tuple[Money, ...]
    still_billed: tuple[Money, ...]
    hourly: Money | None = None
    price: HourlyRate | None = None
    coverage: Coverage | None = None
    kept: tuple[tuple[str, Money | None], ...] = ()
    standing_since: datetime | None = None
    replaced_by: ResourceRef | None = None
    replaced_how: str = ""
    billed_anyway: Money | None = None
    billed_until: datetime | None = None
    shared_with: str = ""
    cause: SavingCause = SavingCause.UNATTRIBUTED
    realised_net: tuple[Money, ...] = ()

    @property
    def goes_on(self) -> bool:
        """Whether it saves at this moment."""
        return self.standing in GOING_ON

    @property
    def unpriced(self) -> tuple[str, ...]:
        """What goes on being billed at a price that nobody knows, so that the net may be less."""
        return tuple(dict.fromkeys(what for what, cost in self.kept if cost is None))


@dataclass(frozen=True, slots=True)
class SavingsTotal:
    """The sums of some actions of one cause in one currency.

    `name` is an owner, a month (`2026-11`), a guard or a cloud. `realised_net` is after discounts, of the
    `net_actions` whose discount was known; None where that is none of them.
    """

    name: str
    predicted: Money
    realised: Money
    still_billed: Money
    actions: int
    cause: SavingCause = SavingCause.COSTGUARD
    realised_net: Money | None = None
    net_actions: int = 0

    @property
    def currency(self) -> str:
        """The one currency of all three sums."""
        return self.realised.currency


@dataclass(frozen=True, slots=True)
class DaySaved:
    """What was realised on one day of UTC, in one currency."""

    day: date
    realised: Money


@dataclass(frozen=True, slots=True)
class SavingsReport:
    """What was saved from `since` to `until`, as far as was seen at `at`; all days and months are of UTC.

    `totals` has one line a currency, the others one for each name and currency, in order of names and largest first for
    owners; all of what Costguard caused. `others` has the sums of other causes, one for each cause and currency.
    `daily` has every day of the time for every currency that anything was saved in, in order, also those of nothing.
    `entries` are the actions that any of it comes from, most realised first in each currency. The daily amounts, the
    lines' and those of the entries that Costguard caused add up to the totals exactly.
    """

    since: datetime
    until: datetime
    at: datetime
    totals: tuple[SavingsTotal, ...] = ()
    by_month: tuple[SavingsTotal, ...] = ()
    by_owner: tuple[SavingsTotal, ...] = ()
    by_guard: tuple[SavingsTotal, ...] = ()
    by_cloud: tuple[SavingsTotal, ...] = ()
    daily: tuple[DaySaved, ...] = ()
    entries: tuple[SavingEntry, ...] = ()
    others: tuple[SavingsTotal, ...] = ()

    @property
    def currencies(self) -> tuple[str, ...]:
        """The currencies of the totals, that with most realised first."""
        return tuple(total.currency for total in self.totals)
