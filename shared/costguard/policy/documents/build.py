"""From accepted documents to the frozen policy the engine reads. Imported only while a policy is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

from costguard.guards.budget.rules import PriorityClass
from costguard.guards.rules.cloud_protection import Bars
from costguard.guards.rules.common import Limits, Mode, Protection, Selector
from costguard.guards.rules.idle import IdleRule
from costguard.policy.budget.build import budget_of, exchange_rates_of
from costguard.policy.budget.checks import Accepted, Place, budget_waits, budgets_of
from costguard.policy.documents import policy as d
from costguard.policy.documents.base import SelectorDocument
from costguard.policy.documents.crosschecks import FileKind, PolicyFile
from costguard.policy.keys.build import key_rules_of, key_waits
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
from costguard.policy.network.build import audit_rules_of, audit_waits
from costguard.policy.syntax.problems import Problem, field_path
from costguard.policy.syntax.yaml_nodes import Sequence as ListNode

_LONGEST_GRACE = timedelta(weeks=104)  # in real time; a wait nobody lives to see is a mistake in the hours
_WEEK = timedelta(weeks=1)


def build_policy(accepted: Accepted) -> Policy:
    """The policy of documents that passed every check."""
    main = _main(accepted)
    by_shadow = {shadow: _idle_rules(accepted, main, shadow=shadow) for shadow in (False, True)}
    zone = None if main.calendar is None else main.calendar.zone
    budgets = [budget_of(budget, main.mode, zone) for _, _, budget in budgets_of(accepted)]
    owners = [*main.owners, *_listed(accepted, FileKind.OWNERS)]
    policy = Policy(
        mode=main.mode,
        idle_gpu=by_shadow[False],
        accounts=tuple(sorted((_account(each) for each in main.accounts), key=lambda each: (each.cloud, each.id))),
        owners=tuple(_owner(each) for each in owners),
        exemptions=tuple(_exemptions(accepted, main)),
        protection=_protection(main.protect),
        calendar=None if main.calendar is None else _calendar(main.calendar),
        signals=SignalSettings(
            main.signals.cloudwatch_namespace,
            tuple(_prometheus(accepted, main)),
        ),
        prices=tuple(PriceOverride(each.cloud, each.instance_types, each.hourly) for each in main.prices),
        default_channel="" if main.notify is None else main.notify.default,
        digest="",
        budgets=tuple(sorted(budgets, key=lambda budget: budget.name)),
        exchange_rates=exchange_rates_of(main.exchange_rates),
        priority_classes=tuple(
            PriorityClass(each.name, _selector(each.applies_when_all)) for each in main.priority_classes
        ),
        launch_freezes=tuple(sorted((each.freeze() for each in main.launch_freezes), key=lambda each: each.name)),
        kms_rotation=key_rules_of(accepted),
        network_audit=audit_rules_of(accepted),
        answers=_answers(main.notify),
        shadows=Shadows(
            idle_gpu=by_shadow[True],
            kms_rotation=key_rules_of(accepted, shadow=True),
            network_audit=audit_rules_of(accepted, shadow=True),
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
    of_mends = (*key_waits(accepted), *audit_waits(accepted))
    for file, place, wait in (*_rule_waits(accepted), *budget_waits(accepted), *of_mends):
        if wait / weekly * _WEEK > _LONGEST_GRACE:
            mark, _ = file.document.locate(place)
            message = f"a wait of {wait / timedelta(hours=1):.0f} working hours takes over two years here"
            yield file.document.problem(mark, field_path(place), message, "shorten the wait, or widen calendar.hours")


def _rule_waits(accepted: Accepted) -> Iterator[tuple[PolicyFile, Place, timedelta]]:
    for file, loc, rule in _rules(accepted):
        _, written = file.document.locate((*loc, "then"))
        implied = len(rule.then) - len(written.items) if isinstance(written, ListNode) else 0
        for index, step in enumerate(rule.then):
            yield file, (*loc, "then", index - implied), step.wait


def _main(accepted: Accepted) -> d.MainDocument:
    return next(model for _, model in accepted if isinstance(model, d.MainDocument))


def _rules(accepted: Accepted) -> Iterator[tuple[PolicyFile, tuple[str | int, ...], d.RuleDocument]]:
    for file, model in accepted:
        if isinstance(model, (d.MainDocument, d.RulesDocument)):
            for index, rule in enumerate(model.idle_gpu):
                yield file, ("idle_gpu", index), rule


def _idle_rules(accepted: Accepted, main: d.MainDocument, *, shadow: bool) -> tuple[IdleRule, ...]:
    """Those that decide, or those in the shadow, by name; a rule in the shadow only observes."""
    written = [rule for _, _, rule in _rules(accepted) if rule.shadow is shadow]
    reading = main.protect.termination_protection_bars
    rules = (_rule(rule, Mode.OBSERVE if shadow else main.mode, reading) for rule in written)
    return tuple(sorted(rules, key=lambda rule: rule.name))


def _listed(accepted: Accepted, kind: FileKind) -> Iterator[Any]:
    for file, model in accepted:
        if file.kind is kind:
            yield from model


def _rule(rule: d.RuleDocument, ceiling: Mode, reading: Bars) -> IdleRule:
    safety = rule.safety
    return with_digest(
        IdleRule(
            name=rule.name,
            mode=ceiling if rule.mode is None else rule.mode,
            applies_to=Selector() if rule.applies_when_all is None else _selector(rule.applies_when_all),
            except_for=tuple(_selector(each) for each in rule.except_when_any),
            idle=rule.idle_when_all.bounds(),
            ladder=rule.then,
            limits=Limits(
                actions_per_day=safety.actions_per_day,
                fleet_share_per_day=safety.fleet_share_per_day,
                hourly_cost_stopped_per_day=safety.hourly_cost_stopped_per_day,
                local_disk=safety.local_disk,
                unstoppable_may_terminate=safety.unstoppable,
                terminations_per_day=safety.terminations_per_day,
            ),
            digest="",
            termination_protection_bars=reading,
        )
    )


def _selector(selector: SelectorDocument) -> Selector:
    return Selector(
        clouds=selector.clouds,
        accounts=selector.accounts,
        regions=selector.regions,
        instance_types=selector.instance_types,
        billing=selector.billing,
        tags=selector.tags,
        resources=selector.resources,
        resource_groups=selector.resource_groups,
    )


_NOTHING = Selector(resources=())


def _owner(owner: d.OwnerDocument) -> Owner:
    owns = _NOTHING if owner.owns is None else _selector(owner.owns)  # then only what they launched is theirs
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
            owns=_selector(entry.applies_when_all)
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
