"""What every guard's rules share: modes, which subjects a rule applies to, its ladder and its limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from fnmatch import fnmatchcase
from typing import Any, Protocol, TypeVar, cast

from costguard.domain.actions import DESTRUCTIVE, Verb
from costguard.domain.money import Money
from costguard.domain.resources import Billing, Instance, InstanceDetail
from costguard.guards.rules.spelling import any_glob, tags_match, tags_spare

TERMINATION, STOP = "termination_protection", "stop_protection"


class Bars(str, Enum):
    """How a policy reads termination protection: it keeps everything from being done, or `terminate` alone."""

    EVERYTHING = "everything"
    TERMINATE = "terminate"


_BARRED: Mapping[str, frozenset[Verb]] = {
    TERMINATION: frozenset({Verb.TERMINATE}),
    # EC2 User Guide, "Enable stop protection for your EC2 instances": it protects from termination as well
    STOP: frozenset({Verb.STOP, Verb.TERMINATE}),
}
"""What each means at its cloud: `DisableApiTermination` and `DisableApiStop` of EC2, `DeletionProtection` of ECS (which
refuses DeleteInstance alone), `DisableApiTermination` of CVM (TerminateInstances alone). Whatever else is told, such as
a lock for security, bars everything in every reading."""


def protections_of(instance: Instance | None, detail: InstanceDetail | None) -> tuple[str, ...]:
    """All that was told of a machine, by its listing and by the closer look, each once."""
    listed = instance.protected_by if instance is not None else ()
    return tuple(sorted({*listed, *(detail.protected_by if detail is not None else ())}))


def barring(protections: Iterable[str], verb: Verb, reading: Bars) -> tuple[str, ...]:
    """Those that keep `verb` from being done."""
    if reading is Bars.EVERYTHING:
        return tuple(protections)
    return tuple(each for each in protections if each not in _BARRED or verb in _BARRED[each])


def needed(protections: Iterable[str], verbs: Iterable[Verb], reading: Bars) -> tuple[str, ...]:
    """Those of `protections` that would keep one of `verbs` from being done if they were set: what is read before."""
    meant = tuple(verbs)
    return tuple(each for each in protections if any(barring((each,), verb, reading) for verb in meant))


def leads_to(verbs: Sequence[Verb]) -> Verb:
    """What the first of these steps is for: a notice or a copy serves the next stop or end that follows it.

    Where that is barred, so is all that would only announce or prepare it.
    """
    return next((verb for verb in verbs if verb in DESTRUCTIVE), verbs[0])


class Mode(IntEnum):
    """How far a rule may go; a rule may be gentler than the policy, never harsher."""

    OBSERVE = 0
    WARN = 1
    ENFORCE = 2


class Consent(str, Enum):
    """Whether losing something that cannot be restored is acceptable."""

    KEEP = "keep"
    ASK = "ask"
    LOSE = "lose"


@dataclass(frozen=True, slots=True)
class Selector:
    """Which instances a rule applies to. None does not restrict; an empty tuple or mapping matches nothing.

    Patterns are shell globs (`p4d.*`), matched with case; a tag must be present and its value match. A machine without
    a resource group, as every one on AWS, is in none of `resource_groups`. Harming is exact: `matches` brings a machine
    under a rule. Sparing is generous: `spares` takes it out, and compares tags in any spelling.
    """

    clouds: tuple[str, ...] | None = None
    accounts: tuple[str, ...] | None = None
    regions: tuple[str, ...] | None = None
    instance_types: tuple[str, ...] | None = None
    billing: tuple[Billing, ...] | None = None
    tags: Mapping[str, str] | None = None
    resources: tuple[str, ...] | None = None
    resource_groups: tuple[str, ...] | None = None

    def matches(self, instance: Instance) -> bool:
        """Whether every given restriction holds."""
        return tags_match(instance.tags, self.tags) and self._rest_matches(instance)

    def spares(self, instance: Instance) -> bool:
        """Whether every given restriction holds, tags without regard to case and separators."""
        return (self.tags is None or tags_spare(instance.tags, self.tags)) and self._rest_matches(instance)

    def _rest_matches(self, instance: Instance) -> bool:
        ref = instance.ref
        return (
            any_glob(self.clouds, ref.cloud)
            and any_glob(self.accounts, ref.account)
            and any_glob(self.regions, ref.region)
            and any_glob(self.instance_types, instance.instance_type)
            and (self.resources is None or ref.native_id in self.resources or str(ref) in self.resources)
            and (self.billing is None or instance.billing in self.billing)
            and any_glob(self.resource_groups, *filter(None, (instance.resource_group,)))
        )


@dataclass(frozen=True, slots=True)
class Step:
    """One step as the policy writes it; `wait` starts when the step before is confirmed."""

    verb: Verb
    wait: timedelta


@dataclass(frozen=True, slots=True)
class Rung:
    """One rung as the engine climbs it: what is done, and how long after the rung before was confirmed."""

    verb: Verb
    after: timedelta


UNSAID = "unsaid at its default"
"""In the metadata of a field that came later: policies that do not name it keep their digest."""


class Scarce(str, Enum):
    """What a rule does with a type that may not start again: never stop it, ask its owner, or stop it as any other."""

    HOLD = "hold"
    ASK = "ask"
    STOP = "stop"


SCARCE_AS_OF = "2026-11-23"
SHIPPED = "shipped"
"""In a list of scarce types: those that Costguard names, as of that day."""

SCARCE_MODELS = ("A100", "A800", "H100", "H200", "H800", "H20", "B200", "B300", "GB200", "V100", "L20", "Trainium")
"""Accelerators of which a stopped machine may not start again for days.

No vendor publishes which types are scarce. These are what AWS sells ahead as Capacity Blocks for ML (EC2 API,
CapacityBlock: "Reserve powerful GPU instances on a future date"), and by Costguard's own judgement what is sold out
first elsewhere.
"""

SCARCE_FAMILIES = ("ecs.*gn7e*", "ecs.*gn8*")
"""Of types whose card the cloud tells by another name (ECS API, DescribeInstanceTypes: `GPU H`)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a rule may do in any rolling 24 hours, and what it may not lose.

    A cap of 0 allows nothing. `hourly_cost_stopped_per_day` has one amount per currency; a currency
    without one is held. `share` is of the accelerator instances the rule applies to, 0 to 1.
    Terminations have caps of their own, so that they never use up what stops need: `terminations_per_day`, which
    is as many as `actions_per_day` where it is None, and the same share.
    What costs more an hour than its currency's amount in `local_disk_approver_above` loses its local disk only if an
    approver agrees; None: its owner's word is enough.
    `scarce_types` are types or models of accelerators, with `*`, for `scarce`; None: those that Costguard names.
    """

    actions_per_day: int = 10
    fleet_share_per_day: Decimal = Decimal("0.10")
    hourly_cost_stopped_per_day: tuple[Money, ...] = (
        Money(Decimal(200), "USD"),
        Money(Decimal(1400), "CNY"),
    )
    local_disk: Consent = Consent.ASK
    unstoppable_may_terminate: bool = False
    terminations_per_day: int | None = None
    local_disk_approver_above: tuple[Money, ...] | None = field(default=None, metadata={UNSAID: True})
    scarce: Scarce = field(default=Scarce.ASK, metadata={UNSAID: True})
    scarce_types: tuple[str, ...] | None = field(default=None, metadata={UNSAID: True})

    @property
    def terminations(self) -> int:
        """The most terminations in any rolling 24 hours."""
        return self.actions_per_day if self.terminations_per_day is None else self.terminations_per_day

    @property
    def scarce_names(self) -> tuple[str, ...]:
        """The types and models meant, in small letters, with those that Costguard names where they are."""
        said = (SHIPPED,) if self.scarce_types is None else self.scarce_types
        named = ((*SCARCE_MODELS, *SCARCE_FAMILIES) if each == SHIPPED else (each,) for each in said)
        return tuple(dict.fromkeys(name.lower() for names in named for name in names))

    def is_scarce(self, instance: Instance) -> bool:
        """Whether a machine of this type may not start again: by its type, or by a word of its accelerator's model."""
        of, model = instance.instance_type.lower(), instance.accelerator.model.lower()
        return any(fnmatchcase(of, name) or ("*" not in name and name in model) for name in self.scarce_names)


class RemediationRule(Protocol):
    """What the rules have in common whose violations are mended by changing a setting, and not by stopping a machine.

    `wait` runs from the delivered notice to the mend; `actions_per_day` caps a rolling 24 hours, 0 allows nothing.
    """

    @property
    def name(self) -> str:
        """What the policy calls it."""

    @property
    def digest(self) -> str:
        """A hash of everything it says."""

    @property
    def mode(self) -> Mode:
        """How far it may go."""

    @property
    def wait(self) -> timedelta:
        """From the delivered notice to the mend."""

    @property
    def actions_per_day(self) -> int:
        """The most mends in any rolling 24 hours."""


class HasMode(Protocol):
    """Any rule."""

    @property
    def mode(self) -> Mode:
        """How far it may go."""


RuleT = TypeVar("RuleT", bound=HasMode)


def at_most(rule: RuleT, mode: Mode) -> RuleT:
    """The same rule, its digest included, going no further than `mode`."""
    return rule if rule.mode <= mode else cast("RuleT", replace(cast("Any", rule), mode=mode))


TAGS_DENIED_BY_ROLE = ("costguard-protect", "do-not-stop", "do-not-delete", "keep")
"""Those that the roles' own denials name as well. A managed policy of IAM holds 6,144 characters, and each name takes
up to six spellings there, so that the others are left to what compares every spelling: the rails."""

_NOT_TO_BE = tuple(
    f"{never}-{done}"
    for never in ("do-not", "dont", "no", "never")
    for done in ("stop", "shutdown", "terminate", "delete", "touch")
)
KNOWN_TAGS = tuple(dict.fromkeys((*TAGS_DENIED_BY_ROLE, *_NOT_TO_BE, "keep-running", "protect", "protected")))
"""What asks in plain words to be left alone. Words that tell what something is (`persistent`, `production`, `critical`)
ask for nothing: where they mean it, `protect.tags` says so."""

KEEP_TAG = "costguard:keep-until"
"""What a Keep is called where it is written on the machine; every deployment heeds it, in any spelling.

Its value is a moment in UTC, as `2026-12-01T09:00:00Z`.
"""


@dataclass(frozen=True, slots=True)
class Protection:
    """Who may never be touched, by rule of the house. Tag names match in any case and spelling variant.

    `controller_tags`, whatever they say, give away what a controller of the house runs; one that ends in `*` stands for
    every tag that begins so.
    Policies from before `termination_protection_bars` keep the stricter reading: a default that loosens is no default.
    """

    tag_names: tuple[str, ...] = KNOWN_TAGS
    expiry_tag_names: tuple[str, ...] = ("costguard-keep-until", "keep-until", "protect-until")
    controller_tags: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    termination_protection_bars: Bars = Bars.EVERYTHING
