"""What documents that users write are made of: types of fields, each of which reads, checks and explains itself.

Imported only while a policy is loaded: it needs pydantic.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationInfo,
    field_validator,
    model_validator,
)
from typing_extensions import Self

from costguard.domain.money import Money
from costguard.domain.refs import CLOUDS
from costguard.domain.resources import Billing
from costguard.guards.rules.common import Bars, Consent, Limits, Mode, Scarce
from costguard.policy.model.channels import channel
from costguard.policy.syntax import time_values as times
from costguard.policy.syntax import units
from costguard.policy.syntax import values as v
from costguard.policy.syntax.problems import BadValueError
from costguard.policy.syntax.yaml_nodes import YamlDocument as File

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_DEPLOYMENT = re.compile(r"[a-z][a-z0-9-]{1,18}[a-z0-9]")  # as settings/checks.py has it
_NAMESPACE = re.compile(r"[A-Za-z0-9._/#:-]{1,255}")
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_URL = re.compile(
    r"https?://[A-Za-z0-9.\-]+(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~/-]*)?|https?://\[[0-9A-Fa-f:.]+\](?::[0-9]{1,5})?(?:/[A-Za-z0-9._~/-]*)?"
)
_ROLE = re.compile(r"[\w+=,.@:/{}-]{1,600}", re.ASCII)
_EXTERNAL_ID = re.compile(r"[\w+=,.@:/-]{2,1224}", re.ASCII)  # STS AssumeRole's own pattern
_RESOURCE_GROUP = re.compile(r"[A-Za-z0-9*?\[\]!_-]{1,64}")
_SLACK_TEAM = re.compile(r"T[A-Z0-9]{2,20}", re.ASCII)
_CLOUD_USER = re.compile(r"(?=.*[A-Za-z0-9])[\w+=,.@:/*?\[\]!-]{1,200}", re.ASCII)
_INSTANCE_TYPE = re.compile(r"[A-Za-z0-9.*?\[\]!_-]{1,64}")

CLOUD_WORDS = {cloud: cloud for cloud in CLOUDS}

Version = Annotated[int, BeforeValidator(v.version)]
ModeWord = Annotated[Mode, BeforeValidator(v.choice({mode.name.lower(): mode for mode in Mode}, "a mode"))]
BarsWord = Annotated[Bars, BeforeValidator(v.choice_of(Bars, "what it bars"))]
ScarceWord = Annotated[Scarce, BeforeValidator(v.choice_of(Scarce, "what is done"))]
ConsentWord = Annotated[Consent, BeforeValidator(v.choice_of(Consent, "an answer"))]
BillingWord = Annotated[Billing, BeforeValidator(v.choice_of(Billing, "a way of billing"))]
CloudWord = Annotated[str, BeforeValidator(v.choice(CLOUD_WORDS, "a cloud"))]
Name = Annotated[str, AfterValidator(v.matching(_NAME, "a name: letters, digits, . _ -, at most 64"))]
DeploymentName = Annotated[
    str,
    AfterValidator(
        v.matching(
            _DEPLOYMENT,
            "the name of a deployment: 3 to 20 small letters, digits and hyphens",
            "it is its COSTGUARD_NAME",
        )
    ),
]
Text = Annotated[
    str, AfterValidator(v.matching(re.compile(r"(?=.*\S)[^\n]{1,300}"), "a line of text of 1 to 300 characters"))
]
TagName = Annotated[str, AfterValidator(v.matching(re.compile(r"(?=.*[^\W_])[^\n]{1,128}"), "the name of a tag"))]
Observed = Annotated[timedelta, BeforeValidator(times.observed)]
LongestException = Annotated[timedelta, BeforeValidator(times.longest_exception)]
Count = Annotated[int, BeforeValidator(v.count)]
MessagesADay = Annotated[int, BeforeValidator(v.at_least(2, "messages a day: one of them is the digest of the rest"))]
Stops = Annotated[int, BeforeValidator(v.at_least(1, "stops"))]
RolloutAccount = Annotated[
    str, AfterValidator(v.matching(re.compile(r"[0-9]{4,20}", re.ASCII), "an account id: digits, in quotes"))
]
Share = Annotated[Decimal, BeforeValidator(units.parse_share)]
DiscountShare = Annotated[Decimal, BeforeValidator(v.discount)]
Caps = Annotated[tuple[Annotated[Money, BeforeValidator(units.parse_money)], ...], AfterValidator(v.one_per_currency)]
Price = Annotated[Money, BeforeValidator(v.price)]
Moment = Annotated[datetime, BeforeValidator(times.moment)]
Day = Annotated[date, BeforeValidator(times.day)]
Hours = Annotated[tuple[time, time], BeforeValidator(times.hours)]
Weekdays = Annotated[frozenset[int], BeforeValidator(times.weekdays)]
Holidays = Annotated[times.Holidays, BeforeValidator(times.holidays)]
NO_HOLIDAYS = times.Holidays()
Years = Annotated[tuple[int, int], BeforeValidator(times.years)]
SomeYears = Annotated[tuple[int, ...], BeforeValidator(times.some_years)]
DayList = Annotated[tuple[date, ...], BeforeValidator(times.day_list)]
Zone = Annotated[str, AfterValidator(times.zone)]
Regions = Annotated[tuple[str, ...] | None, BeforeValidator(v.regions)]
Role = Annotated[str, AfterValidator(v.matching(_ROLE, "a role: its name or ARN, without spaces"))]
ExternalId = Annotated[
    str, AfterValidator(v.matching(_EXTERNAL_ID, "an external id: 2 to 1224 of letters, digits and +=,.@:/-"))
]
Namespace = Annotated[
    str, AfterValidator(v.matching(_NAMESPACE, "a CloudWatch namespace", "the agent's own is CWAgent"))
]
Label = Annotated[str, AfterValidator(v.matching(_LABEL, "a Prometheus label"))]
Matchers = Annotated[str, AfterValidator(v.matchers)]
Url = Annotated[
    str,
    AfterValidator(v.matching(_URL, "an http or https address without user, password or query", v.A_SERVER)),
    AfterValidator(v.server),
]
Channel = Annotated[str, AfterValidator(channel)]
ResourceId = Annotated[str, AfterValidator(v.resource_id)]
SlackTeam = Annotated[
    str,
    AfterValidator(
        v.matching(
            _SLACK_TEAM, "the id of a Slack workspace", "it begins with T and stands in the address of Slack on the web"
        )
    ),
]
SlackUser = Annotated[str, AfterValidator(v.slack_user)]
SlackUsers = Annotated[tuple[SlackUser, ...], AfterValidator(v.some("leave the key out where nobody is"))]
CloudUser = Annotated[
    str,
    AfterValidator(
        v.matching(
            _CLOUD_USER, "who launched something, or a pattern", "write for example alice, user/alice or role/train/*"
        )
    ),
]
CloudUsers = Annotated[tuple[CloudUser, ...], AfterValidator(v.some("leave the key out where nobody is"))]

CloudPattern = Annotated[str, BeforeValidator(v.choice(CLOUD_WORDS, "a cloud"))]
AccountPattern = Annotated[str, AfterValidator(v.account_pattern)]
RegionPattern = Annotated[str, AfterValidator(v.matching(re.compile(r"[a-z0-9*?\[\]!-]{1,40}"), "a region or pattern"))]
TypePattern = Annotated[
    str, AfterValidator(v.matching(_INSTANCE_TYPE, "an instance type or pattern", "write for example p4d.* or GN10Xp*"))
]
GroupPattern = Annotated[
    str,
    AfterValidator(
        v.matching(
            _RESOURCE_GROUP,
            "the id of a resource group or project, or a pattern",
            'write for example rg-acfmxexample or, on Tencent Cloud, "1004321"',
        )
    ),
]
TagPatterns = Annotated[dict[str, str], AfterValidator(v.tag_patterns)]
CloudPatterns = Annotated[tuple[CloudPattern, ...], AfterValidator(v.some(v.ALL))]
AccountPatterns = Annotated[tuple[AccountPattern, ...], AfterValidator(v.some(v.ALL))]
RegionPatterns = Annotated[tuple[RegionPattern, ...], AfterValidator(v.some(v.ALL))]
TypePatterns = Annotated[tuple[TypePattern, ...], AfterValidator(v.some(v.ALL))]
GroupPatterns = Annotated[tuple[GroupPattern, ...], AfterValidator(v.some(v.ALL))]
BillingWords = Annotated[tuple[BillingWord, ...], AfterValidator(v.some(v.ALL))]
ResourceIds = Annotated[tuple[ResourceId, ...], AfterValidator(v.some(v.ALL))]
TagNames = Annotated[tuple[TagName, ...], AfterValidator(v.some("leave the key out to keep the tags Costguard knows"))]
AccountIds = Annotated[
    tuple[AccountPattern, ...],
    AfterValidator(v.account_ids),
    AfterValidator(v.some("leave the key out to protect no account")),
]
Wait = Annotated[timedelta, BeforeValidator(times.remediation_wait)]
Days = Annotated[tuple[Day, ...], AfterValidator(v.some("leave the key out"))]


class Document(BaseModel):
    """Strict and frozen; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def unless_none(raw: object) -> object:
    """`none`, said aloud, is as if the key were left out."""
    if isinstance(raw, str) and raw != "none":
        message = f"expected keys and values, found {raw!r}"
        raise BadValueError(message, "write zone and hours below it, or calendar: none to count every hour")
    return None if raw == "none" else raw


Place = tuple[str | int, ...]
"""Where something stands in a document: keys and numbers of items."""
T = TypeVar("T")


def made(kind: type[T], document: Document, **more: Any) -> T:
    """`kind` with all that the document says under the names of its fields, and `more`."""
    named = {each.name for each in fields(kind)} & type(document).model_fields.keys()  # type: ignore[arg-type]
    return kind(**{name: getattr(document, name) for name in named} | more)


@dataclass(frozen=True, slots=True)
class Whole:
    """What a rule takes over from the policy that it stands in; `zone` is that of its calendar."""

    mode: Mode
    zone: str | None
    termination_protection_bars: Bars


class Entry(Document):
    """An entry of a section: what every guard's rules say."""

    name: Name

    @abstractmethod
    def rule(self, whole: Whole) -> Any:
        """What it compiles to, without its digest."""

    def waits(self, written: File, place: Place) -> Iterator[tuple[Place, timedelta]]:
        """Every wait that working hours stretch, with its place in the file; the entry itself stands at `place`."""
        del written
        yield (*place, "wait") if "wait" in self.model_fields_set else place, getattr(self, "wait")  # noqa: B009


class ListsDocument(Document):
    """Every key but `tags` holds a list."""

    @field_validator("*", mode="before")
    @classmethod
    def _a_list(cls, raw: Any, info: ValidationInfo) -> Any:
        if info.field_name != "tags" and isinstance(raw, str):
            raise BadValueError("expected a list", f'write ["{raw}"]')
        return raw


class MatchDocument(ListsDocument):
    """What something must match: of every key but `tags` a list of which one does. It may not be empty."""

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise BadValueError("an empty mapping matches nothing", v.ALL)
        return self


class SelectorDocument(MatchDocument):
    """Which instances: every key given must match."""

    clouds: CloudPatterns | None = None
    accounts: AccountPatterns | None = None
    regions: RegionPatterns | None = None
    instance_types: TypePatterns | None = None
    billing: BillingWords | None = None
    tags: TagPatterns | None = None
    resources: ResourceIds | None = None
    resource_groups: GroupPatterns | None = None


EXCEPTED = AfterValidator(v.nonempty("leave the key out to except nothing"))
SelectorDocuments = Annotated[tuple[SelectorDocument, ...], EXCEPTED]


ScarceTypes = Annotated[tuple[TypePattern, ...], AfterValidator(v.some("write scarce: stop where no type is scarce"))]

_LIMITS = Limits()


class LimitsDocument(Document):
    """`safety` of what stops at most."""

    actions_per_day: Count = _LIMITS.actions_per_day
    fleet_share_per_day: Share = _LIMITS.fleet_share_per_day
    hourly_cost_stopped_per_day: Caps = _LIMITS.hourly_cost_stopped_per_day
    local_disk: ConsentWord = _LIMITS.local_disk
    local_disk_approver_above: Caps | None = None
    scarce: ScarceWord = _LIMITS.scarce
    scarce_types: ScarceTypes | None = None
