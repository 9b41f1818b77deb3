"""The documents users write, key by key. Imported only while a policy is loaded: it needs pydantic."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from itertools import pairwise
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, ValidationInfo, field_validator, model_validator
from typing_extensions import Self

from costguard.guards.rules.common import Bars, Mode
from costguard.policy.budget.documents import (
    BillDay,
    BudgetDocument,
    ExchangeRateDocument,
    LaunchFreezeDocument,
    PriorityClassDocument,
)
from costguard.policy.documents import fields as f
from costguard.policy.documents.fields import Document, SelectorDocument
from costguard.policy.idle.documents import RuleDocument
from costguard.policy.keys.documents import KeyRuleDocument
from costguard.policy.model.holidays import HolidayDates, dates_of, exceptions
from costguard.policy.model.policy import LONGEST_EXCEPTION, MESSAGES_PER_DAY
from costguard.policy.model.working_time import WorkingCalendar
from costguard.policy.network.documents import AuditRuleDocument
from costguard.policy.sections import SECTIONS
from costguard.policy.syntax.problems import BadValueError
from costguard.policy.syntax.values import check_account_id, check_region, check_role, nonempty

_TWO = 2


class CalendarDocument(Document):
    """`calendar`."""

    zone: f.Zone
    days: f.Weekdays = frozenset(range(5))
    hours: f.Hours
    holidays: f.Holidays = f.NO_HOLIDAYS
    workdays: f.Days = ()

    @field_validator("workdays")
    @classmethod
    def _not_both(cls, workdays: tuple[date, ...], info: ValidationInfo) -> tuple[date, ...]:
        holidays = info.data.get("holidays", f.NO_HOLIDAYS)
        for index, day in enumerate(workdays):
            if day in holidays.days:
                message = f"{day} is a holiday and a workday"
                raise BadValueError(message, "keep one of them", at=(index,))
        return workdays

    @model_validator(mode="after")
    def _has_first_stops(self) -> Self:
        if not WorkingCalendar(self.zone, self.days, *self.hours).has_first_stops():
            message = (
                "nothing could ever be stopped for the first time: that is done before noon on the last working day"
            )
            raise BadValueError(message, "begin before 12:00, or name two days in a row", at=("hours",))
        return self

    def compiled(self, written: Mapping[str, HolidayDates]) -> WorkingCalendar:
        """Dates that came with the policy count; else those of the package, which no function has."""
        opens, closes = self.hours
        listed, named = self.holidays.days, self.holidays.countries
        dates = [found for name in named if (found := written.get(name) or dates_of(name)) is not None]
        until = [each.known_until for each in dates] + [date.min] * (len(named) - len(dates))
        moved = {**exceptions(dates), **dict.fromkeys(listed, False), **dict.fromkeys(self.workdays, True)}
        return WorkingCalendar(
            zone=self.zone,
            weekdays=self.days,
            opens=opens,
            closes=closes,
            exceptions=moved,
            known_until=min(until, default=None),
            computed=frozenset(year for each in dates for year in each.computed),
            source=", ".join(sorted({each.source for each in dates})),
        )


class HolidaysOfDocument(Document):
    """One entry of `calendars` in `holidays.yaml`."""

    name: f.Text
    source: f.Text
    years: f.Years
    computed: f.SomeYears = ()
    closed: f.DayList = ()
    worked: f.DayList = ()

    def dates(self) -> HolidayDates:
        """What it compiles to."""
        first, last = self.years
        return HolidayDates(
            name=self.name,
            first=first,
            last=last,
            closed=frozenset(self.closed),
            worked=frozenset(self.worked),
            computed=frozenset(self.computed),
            source=self.source,
        )


class HolidaysDocument(Document):
    """`holidays.yaml`: the dates behind `calendar.holidays`, as a publication writes them."""

    calendars: tuple[HolidaysOfDocument, ...] = ()


class AccountDocument(Document):
    """One entry of `accounts`."""

    cloud: f.CloudWord
    id: str
    regions: f.Regions
    owner: f.Text | None = None
    role: f.Role | None = None
    external_id: f.ExternalId | None = None
    organisation: bool = False
    protected: bool = False

    @field_validator("id")
    @classmethod
    def _id(cls, text: str, info: ValidationInfo) -> str:
        cloud = info.data.get("cloud")
        return text if cloud is None else check_account_id(cloud, text)

    @field_validator("regions")
    @classmethod
    def _regions(cls, regions: tuple[str, ...] | None, info: ValidationInfo) -> tuple[str, ...] | None:
        cloud = info.data.get("cloud")
        for index, region in enumerate(regions or ()):
            if cloud is not None:
                check_region(cloud, region, at=(index,))
        return regions

    @field_validator("role")
    @classmethod
    def _role(cls, role: str | None, info: ValidationInfo) -> str | None:
        cloud = info.data.get("cloud")
        return role if cloud is None or role is None else check_role(cloud, role)


AccountDocuments = Annotated[
    tuple[AccountDocument, ...],
    AfterValidator(nonempty("leave the key out to guard the account the credentials belong to")),
]


class ProtectDocument(Document):
    """`protect`: added to what is protected anyway."""

    tags: f.TagNames = ()
    expiry_tags: f.TagNames = ()
    controller_tags: f.TagNames = ()
    accounts: f.AccountIds = ()
    termination_protection_bars: f.BarsWord = Bars.EVERYTHING


class PriceDocument(Document):
    """One entry of `prices`: the price of an hour, or what is off the list price."""

    cloud: f.CloudWord
    instance_types: f.TypePatterns | None = None
    hourly: f.Price | None = None
    discount: f.DiscountShare | None = None
    account: str | None = None
    since: BillDay | None = None

    @field_validator("account")
    @classmethod
    def _account(cls, text: str | None, info: ValidationInfo) -> str | None:
        cloud = info.data.get("cloud")
        return text if cloud is None or text is None else check_account_id(cloud, text)

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if self.hourly is None and self.discount is None:
            raise BadValueError(
                "neither hourly nor discount: it says no price", "add discount: 30%, or hourly: 12.5 USD"
            )
        if self.hourly is not None and self.discount is not None:
            message = "both hourly and discount: a price an hour has its discount in it already"
            raise BadValueError(message, "keep one of the two", at=("discount",), key=True)
        if self.hourly is not None and self.instance_types is None:
            raise BadValueError("a price an hour is of a type", 'add instance_types: ["p5.48xlarge"]')
        for key in ("account", "since"):
            if self.hourly is not None and getattr(self, key) is not None:
                raise BadValueError(
                    "goes with a discount, not with a price an hour", "leave it out", at=(key,), key=True
                )
        return self


class PrometheusDocument(Document):
    """One entry of `signals.prometheus`."""

    url: f.Url
    instance_label: f.Label = "instance_id"
    extra_matchers: f.Matchers = ""


class SignalsDocument(Document):
    """`signals`."""

    cloudwatch_namespace: f.Namespace = "CWAgent"
    prometheus: tuple[PrometheusDocument, ...] = ()


class AnswersDocument(Document):
    """`notify.answers`: whose answers to notices count."""

    slack_team: f.SlackTeam
    approvers: f.SlackUsers = ()
    two_approvers_above: f.Caps = ()

    @model_validator(mode="after")
    def _two_of_them(self) -> Self:
        if self.two_approvers_above and len(self.approvers) < _TWO:
            message = "two people have to agree above these amounts, and fewer than two approvers are named"
            raise BadValueError(message, "name two approvers or more", at=("two_approvers_above",), key=True)
        return self


class NotifyDocument(Document):
    """`notify`."""

    default: f.Channel
    messages_per_day: f.MessagesADay = MESSAGES_PER_DAY
    answers: AnswersDocument | None = None


class OwnerDocument(Document):
    """One entry of `owners`: what they own, by what it is or by who launched it."""

    name: f.Text
    owns: SelectorDocument | None = None
    channel: f.Channel | None = None
    people: f.SlackUsers = ()
    cloud_users: f.CloudUsers = ()

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.owns is None and not self.cloud_users:
            raise BadValueError("neither owns nor cloud_users: this owner has nothing", "add owns: {tags: {team: nlp}}")
        return self


class ExceptionDocument(Document):
    """One entry of `exceptions`: a resource, or a selector, and who agreed to what until when."""

    resource: f.ResourceId | None = None
    applies_when_all: SelectorDocument | None = None
    owner: f.Text
    reason: f.Text
    approver: f.Text
    expires: f.Moment


class NewAccountsDocument(Document):
    """`new_accounts`: what is done in an account that was never seen before."""

    observe_for: f.Observed


class RolloutConditionDocument(Document):
    """`when`: what must hold for a step, and go on to hold."""

    regret_below: f.Share
    in_shadow: f.Name
    of_at_least: f.Stops = 10


class RolloutStepDocument(Document):
    """One step of a rollout: from which day on which mode is allowed."""

    mode: f.ModeWord
    since: f.Day
    when: RolloutConditionDocument | None = None

    @field_validator("mode")
    @classmethod
    def _a_step(cls, mode: Mode) -> Mode:
        if mode is Mode.OBSERVE:
            raise BadValueError("everybody begins in observe, so it is no step", "begin with {mode: warn, since: …}")
        return mode


class RolloutDocument(Document):
    """One entry of `rollout`: the steps of a team, of an account, or of a team in an account."""

    team: f.Text | None = None
    account: f.RolloutAccount | None = None
    steps: Annotated[tuple[RolloutStepDocument, ...], AfterValidator(nonempty("write [{mode: warn, since: …}]"))]

    @field_validator("steps")
    @classmethod
    def _in_order(cls, steps: tuple[RolloutStepDocument, ...]) -> tuple[RolloutStepDocument, ...]:
        if steps and steps[0].mode is Mode.ENFORCE:
            message = "warn is skipped: nobody would have been told of anything before the first stop"
            raise BadValueError(message, "begin with {mode: warn, since: …}", at=(0, "mode"))
        for index, (before, after) in enumerate(pairwise(steps), start=1):
            if after.mode <= before.mode:
                words = f"{after.mode.name.lower()} after {before.mode.name.lower()} is a step back or none"
                fix = "to take a step back, remove the later step: a tightening is in force at once"
                raise BadValueError(words, fix, at=(index, "mode"))
            if after.since <= before.since:
                message = f"{after.since} is not after {before.since}, where the step before begins"
                raise BadValueError(message, "write the steps in the order of their days", at=(index, "since"))
        return steps

    @model_validator(mode="after")
    def _somebody(self) -> Self:
        if self.team is None and self.account is None:
            raise BadValueError("neither team nor account", 'add team: nlp, or team: "*" for all that no other covers')
        if self.team == "*" and self.account is not None:
            raise BadValueError('the team "*" is whatever no other entry covers', "leave team or account out")
        return self


class RulesDocument(Document):
    """A file under `policies/`."""

    version: f.Version = 1
    idle_gpu: tuple[RuleDocument, ...] = ()
    budgets: tuple[BudgetDocument, ...] = ()
    kms_rotation: tuple[KeyRuleDocument, ...] = ()
    network_audit: tuple[AuditRuleDocument, ...] = ()

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not {section.key for section in SECTIONS.values()} & self.model_fields_set:
            message = "none of idle_gpu, budgets, kms_rotation and network_audit is in this file"
            raise BadValueError(message, "add idle_gpu: with a list of rules")
        return self


class MainDocument(Document):
    """`costguard.yaml`, or a single file that is the whole policy."""

    version: f.Version
    mode: f.ModeWord = Mode.OBSERVE
    calendar: Annotated[CalendarDocument | None, BeforeValidator(f.unless_none)] = None
    accounts: AccountDocuments = ()
    new_accounts: NewAccountsDocument | None = None
    leading_deployment: f.DeploymentName = ""
    idle_gpu: tuple[RuleDocument, ...] = ()
    protect: ProtectDocument = ProtectDocument()
    budgets: tuple[BudgetDocument, ...] = ()
    kms_rotation: tuple[KeyRuleDocument, ...] = ()
    network_audit: tuple[AuditRuleDocument, ...] = ()
    exchange_rates: tuple[ExchangeRateDocument, ...] = ()
    priority_classes: tuple[PriorityClassDocument, ...] = ()
    launch_freezes: tuple[LaunchFreezeDocument, ...] = ()
    prices: tuple[PriceDocument, ...] = ()
    signals: SignalsDocument = SignalsDocument()
    notify: NotifyDocument | None = None
    keep_as_tag: bool = False
    rollout: Annotated[
        tuple[RolloutDocument, ...], AfterValidator(nonempty("leave the key out where nothing is rolled out"))
    ] = ()
    start_again: bool = False
    longest_exception: f.LongestException = LONGEST_EXCEPTION
    owners: tuple[OwnerDocument, ...] = ()
    exceptions: tuple[ExceptionDocument, ...] = ()
