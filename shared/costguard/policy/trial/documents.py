"""Unit tests of a policy as their writers write them. Imported only while tests are read: it needs pydantic."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import Enum
from itertools import pairwise
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from typing_extensions import Self

from costguard.domain.actions import Verb
from costguard.domain.findings import InstanceFact, Verdict
from costguard.domain.money import HourlyRate
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import (
    Accelerator,
    AcceleratorKind,
    Billing,
    Instance,
    InstanceState,
    Inventory,
    Keeper,
    Launch,
    ManagedBy,
)
from costguard.domain.signals import HOUR, SignalHistory, SignalName, SignalReading, floor_hour, reads_back
from costguard.guards.idle.judge import examine
from costguard.policy.documents import fields as f
from costguard.policy.documents.fields import Document
from costguard.policy.syntax import units
from costguard.policy.syntax import values as v
from costguard.policy.syntax.explain import explained
from costguard.policy.syntax.problems import BadValueError, Mark, Problem, in_order, invalid
from costguard.policy.syntax.values import check_account_id, check_region
from costguard.policy.syntax.yaml12 import read_yaml
from costguard.policy.syntax.yaml_nodes import plain

_LADDER = ("warned", "stopped", "warned_again", "snapshotted")


class TrialOutcome(str, Enum):
    """What comes of a machine's next step in the run that is tested."""

    DUE = "due"
    HELD = "held"
    REHEARSED = "rehearsed"
    WAITS = "waits"
    NONE = "none"


def _cards(raw: object) -> tuple[float, ...]:
    """One percentage for every card, or a list with one each."""
    if isinstance(raw, tuple):
        if not raw:
            raise BadValueError("an empty list measures no card", "leave gpu out where nothing is measured")
        return tuple(float(units.parse_percent(each)) for each in raw)
    return (float(units.parse_percent(raw)),)


Duration = Annotated[timedelta, BeforeValidator(units.parse_duration)]
Percent = Annotated[float, BeforeValidator(lambda raw: float(units.parse_percent(raw)))]
Cards = Annotated[tuple[float, ...], BeforeValidator(_cards)]
Rate = Annotated[float, BeforeValidator(lambda raw: float(units.parse_rate(raw)))]
Power = Annotated[float, BeforeValidator(lambda raw: float(units.parse_power(raw)))]
Share = Annotated[float, BeforeValidator(lambda raw: float(units.parse_share(raw)))]
State = Annotated[InstanceState, BeforeValidator(v.choice_of(InstanceState, "a state"))]
Keepers = Annotated[Keeper, BeforeValidator(v.choice_of(Keeper, "a manager"))]
VerdictWord = Annotated[Verdict, BeforeValidator(v.choice_of(Verdict, "a verdict"))]
OutcomeWord = Annotated[TrialOutcome, BeforeValidator(v.choice_of(TrialOutcome, "an outcome"))]
ReasonWord = Annotated[ReasonCode, BeforeValidator(v.choice_of(ReasonCode, "a reason"))]
_STEPS = {each.value: each.value for each in (Verb.WARN, Verb.SNAPSHOT, Verb.STOP, Verb.TERMINATE)} | {"none": ""}
StepWord = Annotated[str, BeforeValidator(v.choice(_STEPS, "a step"))]
Name = Annotated[str, AfterValidator(lambda text: "" if text == "none" else text)]


class InstanceDocument(Document):
    """The machine a test or a question is about."""

    cloud: f.CloudWord
    account: str
    region: f.Text
    type: f.Text
    id: f.Text = "i-0123456789abcdef0"
    name: f.Text = "described"
    tags: dict[str, str] = Field(default_factory=dict)
    billing: f.BillingWord = Billing.ON_DEMAND
    state: State = InstanceState.RUNNING
    gpus: f.Count = 1
    running_for: Duration = timedelta(days=30)
    local_disk: bool = False
    hourly: f.Price | None = None
    managed_by: Keepers | None = None
    protected: bool = False
    one_time_spot: bool = False
    resource_group: str = ""
    launched_by: f.CloudUser | None = None

    @field_validator("account")
    @classmethod
    def _account(cls, text: str, info: ValidationInfo) -> str:
        cloud = info.data.get("cloud")
        return text if cloud is None else check_account_id(cloud, text)

    @field_validator("region")
    @classmethod
    def _region(cls, region: str, info: ValidationInfo) -> str:
        cloud = info.data.get("cloud")
        if cloud is not None:
            check_region(cloud, region)
        return region

    @field_validator("gpus")
    @classmethod
    def _some(cls, gpus: int) -> int:
        if gpus == 0:
            raise BadValueError("a machine without a card is not looked at", "write 1 or more")
        return gpus


class MeasuredDocument(Document):
    """What was measured at most, over the whole window of every rule. What is left out was not measured."""

    gpu: Cards | None = None
    cpu: Percent | None = None
    network: Rate | None = None
    power: Power | None = None
    coverage: Share = 1.0


class HappenedDocument(Document):
    """How long ago each step of the ladder was seen complete."""

    warned: Duration | None = None
    stopped: Duration | None = None
    warned_again: Duration | None = None
    snapshotted: Duration | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        given = [(name, getattr(self, name)) for name in _LADDER if getattr(self, name) is not None]
        for (earlier, ago), (later, since) in pairwise(given):
            if since > ago:
                message = f"{later} is longer ago than {earlier}"
                raise BadValueError(message, "each step comes after the one before it", at=(later,))
        if given and self.warned is None:
            raise BadValueError("a notice comes before every other step", "add warned: 48h")
        return self


class ExpectDocument(Document):
    """What is to come of it; `none` where there is to be none."""

    verdict: VerdictWord | None = None
    reason: ReasonWord | None = None
    rule: Name | None = None
    owner: Name | None = None
    next: StepWord | None = None
    outcome: OutcomeWord | None = None
    held_by: ReasonWord | None = None
    next_at: f.Moment | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise BadValueError("a test that expects nothing proves nothing", "add verdict: violation")
        return self


class TestDocument(Document):
    """One test: given this machine and what was measured at this moment, expect this."""

    __test__ = False  # its name is for its writers, not for pytest

    name: f.Text
    at: f.Moment
    instance: InstanceDocument
    signals: MeasuredDocument = MeasuredDocument()
    happened: HappenedDocument = HappenedDocument()
    expect: ExpectDocument


Tests = Annotated[tuple[TestDocument, ...], AfterValidator(v.nonempty("write at least one test"))]


class TestsDocument(Document):
    """A file of tests."""

    __test__ = False

    version: f.Version
    tests: Tests


class DescribedDocument(Document):
    """A machine described for `policy explain`."""

    at: f.Moment | None = None
    instance: InstanceDocument
    signals: MeasuredDocument = MeasuredDocument()


def written_value(value: Any) -> str:
    """An expected value as its writer wrote it."""
    if value == "":
        return "none"
    if isinstance(value, Enum):
        return str(value.value)
    return value.isoformat() if isinstance(value, datetime) else str(value)


_Model = TypeVar("_Model")


def read_tests(path: str, text: str) -> tuple[TestsDocument, tuple[int, ...]]:
    """The tests of one file, and the line that each begins on.

    Raises:
        InvalidInputError: tells every mistake with file, line and column.
    """
    document, places = _read(path, text, TestsDocument)
    names = [test.name for test in document.tests]
    twice = next((name for index, name in enumerate(names) if name in names[:index]), None)
    if twice is not None:
        index = len(names) - 1 - names[::-1].index(twice)
        mark = places.locate(("tests", index, "name"))[0]
        raise invalid((places.problem(mark, f"tests[{index}].name", f"{twice!r} is there twice", "name it otherwise"),))
    return document, tuple(places.locate(("tests", index))[0].line for index in range(len(names)))


def read_described(path: str, text: str) -> DescribedDocument:
    """A machine described in a file.

    Raises:
        InvalidInputError: tells every mistake with file, line and column.
    """
    return _read(path, text, DescribedDocument)[0]


def _read(path: str, text: str, model: type[_Model]) -> tuple[_Model, Any]:
    document = read_yaml(path, text)
    problems: list[Problem] = list(document.problems)
    if document.root is None:
        raise invalid(in_order(problems or [Problem(path, Mark(), "", "the file is empty")]))
    try:
        found = TypeAdapter(model).validate_python(plain(document.root), strict=True)
    except ValidationError as err:
        problems += [each for each in explained(document, err, model) if each.mark not in document.damaged]
        raise invalid(in_order(problems)) from err
    if problems:
        raise invalid(in_order(problems))
    return found, document


_PER_HOUR = 60
_DELAY = timedelta(minutes=5)
_SOURCE = "described"


def described_instance(said: InstanceDocument, at: datetime, state: InstanceState | None = None) -> Instance:
    """The machine at that moment; `state` stands in for the one described."""
    return Instance(
        ref=ResourceRef(said.cloud, said.account, said.region, "instance", said.id),
        instance_type=said.type,
        accelerator=Accelerator(AcceleratorKind.NVIDIA_GPU, "GPU", said.gpus),
        state=said.state if state is None else state,
        billing=said.billing,
        run_epoch="described",
        launched_at=at - said.running_for,
        created_at=at - said.running_for,
        name=said.name,
        tags=dict(said.tags),
        managed_by=None if said.managed_by is None else ManagedBy(said.managed_by, said.managed_by.value),
        cannot_stop="one_time_spot" if said.one_time_spot else "",
        local_disk_gib=None if said.local_disk else 0.0,
        protected_by=("termination_protection",) if said.protected else (),
        resource_group=said.resource_group,
    )


def described_launch(said: InstanceDocument, at: datetime) -> Launch | None:
    """Who launched it, where that is described."""
    return None if said.launched_by is None else Launch(said.launched_by, at - said.running_for, _SOURCE)


def described_fact(
    said: InstanceDocument,
    measured: MeasuredDocument,
    windows: Iterable[timedelta],
    at: datetime,
    state: InstanceState | None = None,
) -> InstanceFact:
    """The machine examined over each window, as the scan examines what a cloud tells."""
    instance = described_instance(said, at, state)
    windows = tuple(windows)
    hours = reads_back(windows) // HOUR + 2
    histories = tuple(_histories(said, measured, at, hours))
    rate = None if said.hourly is None else HourlyRate(said.hourly, _SOURCE, at.date().isoformat())
    facts = examine(
        Inventory(instance.ref.shard, (instance,)),
        {instance.ref: SignalReading(histories, _DELAY)},
        {instance.ref: rate} if rate is not None else {},
        (),
        windows,
        at,
    )
    return facts.instances[0]


def _histories(said: InstanceDocument, measured: MeasuredDocument, at: datetime, hours: int) -> Iterable[SignalHistory]:
    cards = measured.gpu or ()
    for index in range(said.gpus if len(cards) == 1 else len(cards)):
        yield _history(SignalName.GPU, str(index), cards[index % len(cards)], measured.coverage, at, hours)
    whole = ((SignalName.CPU, measured.cpu), (SignalName.NETWORK, measured.network))
    for name, value in whole:
        if value is not None:
            yield _history(name, "", value, measured.coverage, at, hours)
    for index in range(said.gpus if measured.power is not None else 0):
        yield _history(SignalName.POWER, str(index), measured.power or 0.0, measured.coverage, at, hours)


def _history(name: SignalName, device: str, value: float, coverage: float, at: datetime, hours: int) -> SignalHistory:
    """That value at every minute; the first hour is complete, so that gaps are known for what they are."""
    minutes = int((at - floor_hour(at)) / HOUR * _PER_HOUR)
    samples = [_PER_HOUR, *(round(_PER_HOUR * coverage) for _ in range(hours - 1)), minutes]
    start = floor_hour(at) - hours * HOUR
    maxima = [value if count else float("nan") for count in samples]
    return SignalHistory(name, device, start, array("d", maxima), array("I", samples), _SOURCE)
