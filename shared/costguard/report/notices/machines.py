"""What owners are told, before and after, as neutral text; channels add only their own markup.

A notice says what the machine is, why it is meant, what happens when, how to keep it, what is risked,
what was done and how to undo it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum
from zoneinfo import ZoneInfo

from typing_extensions import assert_never

from costguard.domain.actions import DESTRUCTIVE, Saving, Verb
from costguard.domain.findings import Evidence
from costguard.domain.money import HourlyRate
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.report.plan.evidence import evidence_words
from costguard.report.words.sentences import (
    Language,
    clean,
    explain,
    hourly,
    label,
    listed,
    local_disk,
    net_source,
    phrase,
    price,
    risk,
    saving_lines,
    sentence,
    verb,
)

_HOURS_A_DAY = 24
_DESTROYING_PHRASES = {Verb.SNAPSHOT: "will_snapshot", Verb.STOP: "will_stop", Verb.TERMINATE: "will_terminate"}


class NoticeKind(str, Enum):
    """`WARNED` comes before a step, `STOPPED` to `TERMINATED` after one; `CLOSED` ends a case, `HELD` keeps it.

    `STARTED`: it was started again because somebody asked for that; `NOT_STARTED`: nobody tries any more.
    """

    WARNED = "warned"
    STOPPED = "stopped"
    SNAPSHOTTED = "snapshotted"
    TERMINATED = "terminated"
    CLOSED = "closed"
    HELD = "held"
    STARTED = "started"
    NOT_STARTED = "not_started"


@dataclass(frozen=True, slots=True)
class Upcoming:
    """One step still to come. `not_before` None means right after the step before it.

    `moved`: its wait is over before, at a time at which no machine is stopped for the first time.
    """

    verb: Verb
    not_before: datetime | None
    moved: bool = False


@dataclass(frozen=True, slots=True)
class BarredStep:
    """A step that will not come while these protections are set at the cloud."""

    verb: Verb
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoticeFacts:
    """All a notice is made of; what is unknown stays empty and is left out.

    `reason` is why: the verdict for a warning, the end of a closed case, the rail of a held one.
    `saving` belongs to the next step before it and to the step itself after it. `snapshots` are ids.
    `zone` is where the reader lives. `approve` is the resource whose next step waits for approval, and `by_approver`
    says that its owner's word alone is not enough. `asks`: a stop will wait for leave to lose the local disk.
    `clickable`: the channel shows buttons, so that no command need be said. `barred` is the first step that a
    protection at the cloud keeps from being done: it and what follows are not in `upcoming`. `by` is who asked for a
    start, which was sent `tries` times. `scarce` is the type that a stop will wait for leave to give up.
    """

    kind: NoticeKind
    resource: ResourceRef
    reason: Reason | None = None
    instance_type: str = ""
    name: str = ""
    owner: str = ""
    rule: str = ""
    evidence: Evidence | None = None
    rate: HourlyRate | None = None
    saving: Saving | None = None
    upcoming: tuple[Upcoming, ...] = ()
    snapshots: tuple[str, ...] = ()
    keep_tag: str = "costguard-keep-until"
    approve: str = ""
    by_approver: bool = False
    asks: bool = False
    zone: str = "UTC"
    clickable: bool = False
    barred: BarredStep | None = None
    by: str = ""
    tries: int = 0
    scarce: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice in one language: `fields` are label and value, `lines` the closing sentences."""

    title: str
    fields: tuple[tuple[str, str], ...]
    lines: tuple[str, ...] = ()
    colon: str = ": "

    @property
    def text(self) -> str:
        """The whole notice as plain lines."""
        return "\n".join((self.title, *(f"{name}{self.colon}{value}" for name, value in self.fields), *self.lines))


def notice(facts: NoticeFacts, language: Language = Language.EN) -> Notice:
    """The notice that these facts make."""
    fields = [
        *_identity(facts, language),
        *_grounds(facts, language),
        *_steps(facts, language),
        *_keeping(facts, language),
        *_approving(facts, language),
        *_worth(facts, language),
        *_undoing(facts, language),
    ]
    colon = ": " if language is Language.EN else "："
    return Notice(
        _title(facts, language), tuple((n, v) for n, v in fields if v), _closing_lines(facts, language), colon
    )


def local_time(value: datetime, zone: str, language: Language = Language.EN) -> str:
    """`2026-01-12 18:00 Asia/Shanghai (10:00 UTC)`: the reader's clock first, the date of UTC where it differs."""
    utc = value.astimezone(timezone.utc)
    if zone == "UTC":
        return utc.strftime("%Y-%m-%d %H:%M UTC")
    local = value.astimezone(ZoneInfo(zone))
    beside = utc.strftime("%H:%M UTC" if utc.date() == local.date() else "%Y-%m-%d %H:%M UTC")
    opening, closing = (" (", ")") if language is Language.EN else ("（", "）")
    return f"{local.strftime('%Y-%m-%d %H:%M')} {zone}{opening}{beside}{closing}"


def _title(facts: NoticeFacts, language: Language) -> str:
    what = clean(facts.name) or facts.resource.native_id
    why = sentence(facts.reason, language) if facts.reason else ""
    kind = facts.kind
    match kind:
        case NoticeKind.WARNED:
            return _warning_title(facts, what, language)
        case NoticeKind.STOPPED:
            end = next((step for step in facts.upcoming if step.verb is Verb.TERMINATE), None)
            return phrase("stopped", language, what=what, when=_when(end, facts, language))
        case NoticeKind.SNAPSHOTTED:
            return phrase("snapshotted", language, what=what)
        case NoticeKind.TERMINATED:
            return phrase("terminated", language, what=what)
        case NoticeKind.CLOSED:
            return phrase("closed_kept" if _is_kept(facts) else "closed_done", language, what=what, why=why)
        case NoticeKind.HELD:
            return phrase("held", language, what=what, why=why)
        case NoticeKind.STARTED:
            return phrase("started_again", language, what=what, by=clean(facts.by))
        case NoticeKind.NOT_STARTED:
            return phrase("not_started", language, what=what, why=why)
        case _:
            assert_never(kind)


def _warning_title(facts: NoticeFacts, what: str, language: Language) -> str:
    step = _announced(facts)
    if step is None:
        cost = price(facts.rate, language) if facts.rate else ""
        return phrase("will_warn", language, what=what, cost=cost)
    return phrase(_DESTROYING_PHRASES[step.verb], language, what=what, when=_when(step, facts, language))


def _announced(facts: NoticeFacts) -> Upcoming | None:
    """The step that a warning is about: the first, or the end where nothing but copies comes before it."""
    steps = [step for step in facts.upcoming if step.verb in _DESTROYING_PHRASES]
    ends = next((step for step in steps if step.verb in DESTRUCTIVE), None)
    return ends if ends is not None and ends.verb is Verb.TERMINATE else next(iter(steps), None)


def _when(step: Upcoming | None, facts: NoticeFacts, language: Language) -> str:
    if step is None or step.not_before is None:
        return ""
    return local_time(step.not_before, facts.zone, language)


_STAGES = frozenset({ReasonCode.CONFIRMED, ReasonCode.CONFIRMING, ReasonCode.WAITING, ReasonCode.OPENED})
"""Where a case stands is no reason to give to an owner."""

_ENDS = frozenset({NoticeKind.TERMINATED, NoticeKind.CLOSED, NoticeKind.STARTED, NoticeKind.NOT_STARTED})
"""Behind these nothing is announced."""

_KEPT = frozenset(
    {
        ReasonCode.RECOVERED,
        ReasonCode.RESTARTED,
        ReasonCode.SNOOZED,
        ReasonCode.EXCEPTION,
        ReasonCode.PROTECTED_TAG,
        ReasonCode.KEPT_BY_TAG,
        ReasonCode.PROTECTED_BY_CLOUD,
        ReasonCode.PROTECTED_ACCOUNT,
    }
)


def _is_kept(facts: NoticeFacts) -> bool:
    return facts.reason is not None and facts.reason.code in _KEPT


def _identity(facts: NoticeFacts, language: Language) -> list[tuple[str, str]]:
    ref = facts.resource
    what = " ".join(part for part in (clean(facts.instance_type), ref.native_id, clean(facts.name)) if part)
    return [
        (label("what", language), what),
        (label("where", language), f"{ref.cloud} {ref.account} {ref.region}"),
        (label("owner", language), clean(facts.owner)),
        (label("rule", language), clean(facts.rule)),
    ]


def _grounds(facts: NoticeFacts, language: Language) -> list[tuple[str, str]]:
    why = ""
    if facts.reason is not None and facts.kind in {NoticeKind.HELD, NoticeKind.NOT_STARTED}:
        why = explain(facts.reason, language)
    elif facts.reason is not None and facts.kind not in _ENDS and facts.reason.code not in _STAGES:
        why = sentence(facts.reason, language)
    rate = facts.rate
    if rate is None:
        cost = phrase("cost_unknown", language) if facts.kind is NoticeKind.WARNED else ""
    else:
        day, net = rate.money.times(_HOURS_A_DAY), rate.net if rate.is_list else None
        cost = phrase(
            "cost" if rate.is_list else "cost_net",
            language,
            hour=hourly(rate.money),
            day=str(day),
            source=rate.source,
            as_of=rate.as_of,
            net="" if net is None else hourly(net.money),
            net_day="" if net is None else str(net.money.times(_HOURS_A_DAY)),
            net_source="" if net is None else net_source(net, language),
        )
    return [
        (label("why", language), why),
        (label("evidence", language), evidence_words(facts.evidence, language)),
        (label("cost", language), cost),
    ]


def _steps(facts: NoticeFacts, language: Language) -> list[tuple[str, str]]:
    if facts.kind in _ENDS:
        return []
    said = []
    for step in facts.upcoming:
        when = _when(step, facts, language)
        said.append(
            phrase("not_before", language, verb=verb(step.verb, language), when=when)
            if when
            else phrase("then", language, verb=verb(step.verb, language))
        )
    if facts.barred is not None:
        by = ", ".join(facts.barred.by)
        said.append(phrase("barred", language, verb=verb(facts.barred.verb, language), protection=by))
    if (facts.asks or facts.scarce) and facts.kind is NoticeKind.WARNED and facts.saving is not None:
        disk = local_disk(facts.saving.local_disk_gib, language) if facts.asks else ""
        word = "asks_leave_approver" if facts.by_approver else "asks_leave"
        said.append(phrase(word, language, disk=disk, scarce=clean(facts.scarce)))
    if not said:
        return [(label("next", language), phrase("nothing_automatic", language))]
    return [(label("next", language), listed(said, language))]


def _keeping(facts: NoticeFacts, language: Language) -> list[tuple[str, str]]:
    if not facts.upcoming or facts.kind in _ENDS:
        return []
    ways = [
        phrase("keep_clicked", language)
        if facts.clickable
        else phrase("keep_snooze", language, resource=str(facts.resource)),
        phrase("keep_tag", language, tag=facts.keep_tag),
        phrase("keep_use" if facts.kind is NoticeKind.WARNED else "keep_start", language),
    ]
    return [(label("keep_it", language), listed(ways, language))]


def _approving(facts: NoticeFacts, language: Language) -> list[tuple[str, str]]:
    """Who may let the step pass that waits, and how."""
    if not facts.approve:
        return []
    who = phrase("approve_apart" if facts.by_approver else "approve_owner", language, owner=clean(facts.owner))
    how = phrase("approve_clicked" if facts.clickable else "approve", language, resource=facts.approve)
    return [(phrase("approve_why", language), listed((who, how), language))]


def _worth(facts: NoticeFacts, language: Language) -> list[tuple[str, str]]:
    if facts.saving is None:
        return []
    step = next((step.verb for step in facts.upcoming if step.verb in _DESTROYING_PHRASES), Verb.STOP)
    done = Verb.TERMINATE if facts.kind is NoticeKind.TERMINATED else Verb.STOP
    lines = saving_lines(facts.saving, step if facts.kind is NoticeKind.WARNED else done, language)
    money = lines[: len(lines) - len(facts.saving.risks)]
    risks = [risk(word, language, facts.saving.local_disk_gib) for word in facts.saving.risks]
    return [
        (label("saving", language), listed(money, language)),
        (label("risks", language), listed(risks, language)),
    ]


def _undoing(facts: NoticeFacts, language: Language) -> list[tuple[str, str]]:
    snapshots = ", ".join(clean(snapshot) for snapshot in facts.snapshots)
    undo = ""
    if facts.kind is NoticeKind.STOPPED:
        undo = phrase("undo_stop", language)
    elif facts.kind is NoticeKind.TERMINATED:
        undo = phrase("undo_terminate" if snapshots else "undo_terminate_bare", language)
    return [(label("snapshots", language), snapshots), (label("undo", language), undo)]


def _closing_lines(facts: NoticeFacts, language: Language) -> tuple[str, ...]:
    if facts.kind is NoticeKind.STARTED:
        return (phrase("started_grace", language),)
    if facts.kind is NoticeKind.NOT_STARTED:
        return (phrase("not_started_next", language, by=clean(facts.by), tries=facts.tries),)
    if facts.kind is not NoticeKind.WARNED or not facts.upcoming:
        return ()
    moved = any(step.moved for step in facts.upcoming)
    promises = (phrase("promise", language), *((phrase("first_stop_moved", language),) if moved else ()))
    unseen = facts.evidence.unseen if facts.evidence is not None else None
    if unseen is None or (facts.reason is not None and facts.reason.code is ReasonCode.BUDGET_CLASS):
        return promises  # of a class that a budget stops, use keeps nothing
    return (*promises, phrase("unseen", language, minutes=math.ceil(unseen / timedelta(minutes=1))))
