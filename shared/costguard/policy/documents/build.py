"""From accepted documents to the frozen policy the engine reads. Imported only while a policy is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

from costguard.estimates.exchange import ExchangeRate
from costguard.guards.budget.rules import PriorityClass
from costguard.guards.rules.common import Protection, Selector
from costguard.policy.documents import policy as d
from costguard.policy.documents.crosschecks import Accepted, FileKind, PolicyFile, entries
from costguard.policy.documents.fields import Whole, made
from costguard.policy.model.policy import (
    Account,
    AnswerTerms,
    Exemption,
    Owner,
    Policy,
    PriceOverride,
    Prometheus,
    Shadows,
    SignalSettings,
    with_policy_digest,
)
from costguard.policy.model.terms import with_digest
from costguard.policy.model.working_time import WorkingCalendar
from costguard.policy.sections import SECTIONS
from costguard.policy.syntax.problems import Problem, field_path

_LONGEST_GRACE = timedelta(weeks=104)  # in real time; a wait nobody lives to see is a mistake in the hours
_WEEK = timedelta(weeks=1)


def build_policy(accepted: Accepted) -> Policy:
    """The policy of documents that passed every check."""
    main = _main(accepted)
    zone = None if main.calendar is None else main.calendar.zone
    whole = Whole(main.mode, zone, main.protect.termination_protection_bars)

    def rules(key: str, *, shadow: bool = False) -> tuple[Any, ...]:
        """Those of a section that decide, or those in the shadow, by name."""
        written = (entry for _, _, entry in entries(accepted, key) if getattr(entry, "shadow", False) is shadow)
        return tuple(sorted((with_digest(entry.rule(whole)) for entry in written), key=lambda rule: rule.name))

    owners = [*main.owners, *_listed(accepted, FileKind.OWNERS)]
    rates = (ExchangeRate(each.base, each.quote, each.rate, each.since) for each in main.exchange_rates)
    policy = Policy(
        mode=main.mode,
        idle_gpu=rules("idle_gpu"),
        accounts=tuple(sorted((_account(each) for each in main.accounts), key=lambda each: (each.cloud, each.id))),
        owners=tuple(_owner(each) for each in owners),
        exemptions=tuple(_exemptions(accepted, main)),
        protection=_protection(main.protect),
        calendar=None if main.calendar is None else _calendar(main.calendar),
        signals=SignalSettings(
            main.signals.cloudwatch_namespace,
            tuple(_prometheus(accepted, main)),
        ),
        prices=tuple(made(PriceOverride, each) for each in main.prices),
        default_channel="" if main.notify is None else main.notify.default,
        digest="",
        budgets=rules("budgets"),
        exchange_rates=tuple(sorted(rates, key=lambda rate: (rate.base, rate.quote, rate.since))),
        priority_classes=tuple(
            PriorityClass(each.name, made(Selector, each.applies_when_all)) for each in main.priority_classes
        ),
        launch_freezes=tuple(sorted((each.freeze() for each in main.launch_freezes), key=lambda each: each.name)),
        kms_rotation=rules("kms_rotation"),
        network_audit=rules("network_audit"),
        answers=_answers(main.notify),
        shadows=Shadows(
            idle_gpu=rules("idle_gpu", shadow=True),
            kms_rotation=rules("kms_rotation", shadow=True),
            network_audit=rules("network_audit", shadow=True),
        ),
        observe_new_accounts_for=timedelta(0) if main.new_accounts is None else main.new_accounts.observe_for,
        leading_deployment=main.leading_deployment,
        keep_as_tag=main.keep_as_tag,
    )
    return with_policy_digest(policy)


def slow_waits(accepted: Accepted) -> Iterator[Problem]:
    """Waits that working hours stretch beyond sense."""
    calendar = _main(accepted).calendar
    if calendar is None:
        return
    weekly = _calendar(calendar).weekly()
    for section in SECTIONS.values():
        for file, place, entry in entries(accepted, section.key):
            for at, wait in entry.waits(file.document, place):
                if wait / weekly * _WEEK > _LONGEST_GRACE:
                    mark, _ = file.document.locate(at)
                    message = f"a wait of {wait / timedelta(hours=1):.0f} working hours takes over two years here"
                    fix = "shorten the wait, or widen calendar.hours"
                    yield file.document.problem(mark, field_path(at), message, fix)


def _main(accepted: Accepted) -> d.MainDocument:
    return next(model for _, model in accepted if isinstance(model, d.MainDocument))


def _listed(accepted: Accepted, kind: FileKind) -> Iterator[Any]:
    for file, model in accepted:
        if file.kind is kind:
            yield from model


_NOTHING = Selector(resources=())


def _owner(owner: d.OwnerDocument) -> Owner:
    owns = _NOTHING if owner.owns is None else made(Selector, owner.owns)  # then only what they launched is theirs
    return Owner(owner.name, owns, owner.channel or "", owner.people, owner.cloud_users)


def _answers(notify: d.NotifyDocument | None) -> AnswerTerms:
    said = None if notify is None else notify.answers
    return AnswerTerms() if said is None else AnswerTerms(said.slack_team, said.approvers, said.two_approvers_above)


def _account(account: d.AccountDocument) -> Account:
    return Account(
        cloud=account.cloud,
        id=account.id,
        regions=account.regions,
        owner=account.owner or "",
        role=account.role or "",
        external_id=account.external_id or "",
        organisation=account.organisation,
        protected=account.protected,
    )


def _exemptions(accepted: Accepted, main: d.MainDocument) -> Iterator[Exemption]:
    main_file = next(file for file, model in accepted if model is main)
    entries: list[tuple[PolicyFile, tuple[str | int, ...], d.ExceptionDocument]] = [
        (main_file, ("exceptions", index), each) for index, each in enumerate(main.exceptions)
    ]
    for file, model in accepted:
        if file.kind is FileKind.EXCEPTIONS:
            entries += [(file, (index,), each) for index, each in enumerate(model)]
    for file, loc, entry in entries:
        mark, _ = file.document.locate((*loc, "expires"))
        yield Exemption(
            owns=made(Selector, entry.applies_when_all)
            if entry.applies_when_all
            else Selector(resources=(entry.resource or "",)),
            owner=entry.owner,
            reason=entry.reason,
            approver=entry.approver,
            expires_at=entry.expires,
            where=f"{file.document.path}:{mark.line}:{mark.column}",
        )


def _prometheus(accepted: Accepted, main: d.MainDocument) -> Iterator[Prometheus]:
    file = next(file for file, model in accepted if model is main)
    for index, each in enumerate(main.signals.prometheus):
        mark, _ = file.document.locate(("signals", "prometheus", index, "url"))
        where = f"{file.document.path}:{mark.line}:{mark.column}"
        yield Prometheus(each.url, each.instance_label, each.extra_matchers, where)


def _protection(protect: d.ProtectDocument) -> Protection:
    """What the policy adds to what protects anyway; it can take nothing away."""
    shipped = Protection()
    return Protection(
        tag_names=tuple(dict.fromkeys((*shipped.tag_names, *sorted(protect.tags)))),
        expiry_tag_names=tuple(dict.fromkeys((*shipped.expiry_tag_names, *sorted(protect.expiry_tags)))),
        controller_tags=tuple(sorted({*shipped.controller_tags, *protect.controller_tags})),
        accounts=tuple(sorted((*shipped.accounts, *protect.accounts))),
        termination_protection_bars=protect.termination_protection_bars,
    )


def _calendar(calendar: d.CalendarDocument) -> WorkingCalendar:
    opens, closes = calendar.hours
    moved: dict[date, bool] = dict.fromkeys(calendar.workdays, True)
    if isinstance(calendar.holidays, tuple):
        closed = dict.fromkeys(calendar.holidays, False)
        return WorkingCalendar(calendar.zone, calendar.days, opens, closes, {**closed, **moved})
    from costguard.policy.model import holidays_cn

    return WorkingCalendar(
        zone=calendar.zone,
        weekdays=calendar.days,
        opens=opens,
        closes=closes,
        exceptions={**holidays_cn.exceptions(), **moved},
        known_until=holidays_cn.known_until(),
        doubtful=holidays_cn.is_doubtful,
    )
