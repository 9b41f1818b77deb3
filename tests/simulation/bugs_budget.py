"""Bugs of budgets: what is known, what is told, which steps follow, and how two guards share a machine."""

from __future__ import annotations

from tests.simulation.planting import Bug, Edit

_BUDGET = "costguard.guards.budget.judge"
_ALERTS = "costguard.guards.budget.alerts"
_STEPS = "costguard.guards.budget.steps"
_ENGINE = "costguard.engine.guards.budgets.run"
_TELL = "costguard.engine.guards.budgets.notifying"
_LOOK = "costguard.engine.guards.budgets.look"
_BILLS = "costguard.engine.guards.budgets.bills"
_BILLED = "costguard.estimates.billed"
_METER = "costguard.estimates.burn"
_MERGING = "costguard.planning.plan"

_TRUSTING = (
    Bug(
        "doubts-ignored",
        (13,),
        (
            Edit(
                "costguard.planning.build",
                "    if doubt is None or finding.verdict is not Verdict.VIOLATION:\n",
                "    if True:\n",
            ),
        ),
        months=True,
    ),
    Bug(
        "unread-bill-is-zero",
        (13,),
        (
            Edit(_LOOK, "        unread=bills.unread.get(scope, ()),\n", "        unread=(),\n"),
            Edit(
                _LOOK, "gaps=(*bills.gaps.get(scope, ()), *_blind_in(scope, seen))", "gaps=(*_blind_in(scope, seen),)"
            ),
            Edit(_BUDGET, " or not total.rest_is_known:", ":"),
        ),
        months=True,
    ),
    Bug(
        "failed-reading-is-no-gap",
        (13,),
        (Edit(_LOOK, "gaps=(*bills.gaps.get(scope, ()), *_blind_in(scope, seen))", "gaps=(*_blind_in(scope, seen),)"),),
        months=True,
    ),
    Bug(
        "half-a-bill-is-a-bill",
        (13,),
        (Edit(_BILLS, "            if report.gaps:", "            if False:"),),
        months=True,
    ),
    Bug(
        "old-bill-trusted",
        (13,),
        (
            Edit(
                _BUDGET,
                "if oldest is not None and now - oldest > rule.trust.bill_not_older_than:",
                "if oldest is None:",
            ),
        ),
        months=True,
    ),
    Bug(
        "estimates-trusted",
        (13,),
        (Edit(_BUDGET, "if total.estimated_share > rule.trust.estimated_share or not", "if not"),),
        months=True,
    ),
    Bug("missing-rate-trusted", (13,), (Edit(_BUDGET, "    if foreign:\n", "    if False:\n"),), months=True),
    Bug("unknown-price-trusted", (13,), (Edit(_BUDGET, "    if unpriced:\n", "    if False:\n"),), months=True),
    Bug(
        "unseen-machines-trusted",
        (13,),
        (Edit(_BUDGET, "    if blind is not None:\n", "    if False:\n"),),
        months=True,
    ),
    Bug(
        "last-months-look-acts",
        (8, 13),
        (
            Edit(_ENGINE, "            and now - looked.now <= LOOK_HOLDS\n", ""),
            Edit(_ENGINE, "            and period.key == periods[rule.name]\n", ""),
        ),
        months=True,
    ),
)

_RECKONING = (
    Bug(
        "month-before-stops",
        (13,),
        (
            Edit(_BUDGET, "        if self.period is None or self.over:\n", "        if self.period is None:\n"),
            Edit(
                _ENGINE,
                "for status in looked.statuses if status.standing is not None]",
                "for status in (*looked.statuses, *(one for _, one in looked.before)) if status.standing is not None]",
            ),
        ),
        months=True,
    ),
    Bug(
        "vouchers-count",
        (14,),
        (Edit(_BILLED, "is ChargeCategory.CREDIT and not counting.credits:", "is None:"),),
        months=True,
    ),
    Bug(
        "refunds-do-not-count",
        (13,),
        (
            Edit(
                _BILLED,
                "    if line.charge_category is ChargeCategory.TAX and not counting.tax:",
                "    if line.charge_category in {ChargeCategory.TAX, ChargeCategory.ADJUSTMENT}:",
            ),
        ),
        months=True,
    ),
    Bug(
        "billed-time-accrues-again",
        (13, 14),
        (Edit("costguard.estimates.spent", "ran = accrued(metered, gap, now)", "ran = accrued(metered, since, now)"),),
        months=True,
    ),
    Bug(
        "what-the-bill-lacks-is-nothing",
        (13, 14),
        (Edit("costguard.estimates.spent", "ran = accrued(metered, gap, now)", "ran = accrued((), gap, now)"),),
        months=True,
    ),
    Bug(
        "stopped-machines-are-metered-on",
        (13,),
        (Edit(_METER, "until=_ended(sheet, instances.get(one.ref), now)", "until=None"),),
        months=True,
    ),
    Bug(
        "rate-used-one-way",
        (13,),
        (
            Edit(
                "costguard.domain.money",
                "latest.rate if latest.base == money.currency else 1 / latest.rate",
                "latest.rate",
            ),
        ),
        months=True,
    ),
    Bug(
        "rates-by-the-days-of-utc",
        (13,),
        (Edit(_BUDGET, "own = date_in(zone, line.charge_period_start)", "own = line.charge_period_start.date()"),),
        months=True,
    ),
    Bug(
        "day-of-two-months-lost",
        (13,),
        (Edit(_BILLS, "if line.charge_period_end > begin]", "if line.charge_period_start >= begin]"),),
        months=True,
    ),
    Bug(
        "months-of-utc",
        (13,),
        (
            Edit(
                "costguard.guards.budget.rules",
                "    today = now.astimezone(ZoneInfo(period.zone)).date()\n",
                '    period = BudgetPeriod(period.kind, "UTC", period.first, period.last)\n    today = now.date()\n',
            ),
        ),
        months=True,
    ),
)

_TELLING = (
    Bug(
        "told-below-what-was-told",
        (14,),
        (Edit(_ALERTS, "for share in shares if share > crossing.at)", "for share in ())"),),
        months=True,
    ),
    Bug(
        "told-every-day",
        (14,),
        (
            Edit(
                _TELL,
                'number, notice_id = 1, f"{alert_id}/{address}"',
                'number, notice_id = 1, f"{alert_id}/{address}/{self.now:%d}"',
            ),
        ),
        months=True,
    ),
    Bug(
        "threshold-without-its-amount",
        (14,),
        (
            Edit(
                _ALERTS,
                "    threshold = _plain(rule.amount.amount * share)\n",
                '    threshold = ""\n',
            ),
        ),
        months=True,
    ),
    Bug(
        "threshold-without-its-period",
        (14,),
        (Edit(_ALERTS, "of_money = (period, kind.value,", "of_money = (kind.value,"),),
        months=True,
    ),
    Bug(
        "lowered-budget-falls-silent",
        (14,),
        (Edit(_ALERTS, "Decimal(share) > crossing.at", "Decimal(share) != crossing.at"),),
        months=True,
    ),
    Bug(
        "raised-budget-tells-anew",
        (14,),
        (Edit(_ALERTS, "Decimal(share) > crossing.at", "Decimal(share) < 0"),),
        months=True,
    ),
    Bug(
        "renamed-budget-tells-anew",
        (14,),
        (Edit(_ALERTS, "_id(scope_id(rule), *of_money)", "_id(rule.name, *of_money)"),),
        months=True,
    ),
    Bug(
        "estimates-are-spent",
        (14,),
        (Edit(_TELL, "            status.spent.certain,\n", "            status.spent.total,\n"),),
        months=True,
    ),
    Bug(
        "estimate-stands-for-what-is-so-later",
        (14,),
        (Edit(_TELL, "    return known | fell\n", "    return frozenset()\n"),),
        months=True,
    ),
    Bug(
        "estimate-stands-for-nothing",
        (14,),
        (
            Edit(
                _ALERTS,
                "if one.kind is AlertKind.ACTUAL and soon.amount < rule.amount.amount * one.at",
                "if one.kind is AlertKind.ACTUAL",
            ),
        ),
        months=True,
    ),
    Bug(
        "what-happened-once-is-a-rate",
        (13, 14),
        (
            Edit("costguard.estimates.spent", "    if len(past) < LEAST_DAYS:\n", "    if not past:\n"),
            Edit("costguard.estimates.spent", "    elif len(past) < LEAST_FOR_SHAPE:\n", "    elif not past:\n"),
        ),
        months=True,
    ),
    Bug(
        "month-before-forgotten",
        (14,),
        (Edit(_TELL, "(*looked.statuses, *(before for _, before in looked.before))", "looked.statuses"),),
        months=True,
    ),
    Bug(
        "month-before-judged-by-the-present-amount",
        (14,),
        (
            Edit(
                "costguard.engine.guards.budgets.bills",
                "OpenPeriod(replace(rule, amount=then.amount), period, then.name)",
                "OpenPeriod(rule, period, then.name)",
            ),
        ),
        months=True,
    ),
    Bug(
        "month-before-read-once",
        (14,),
        (Edit(_BILLS, "begin = min(current, _month(known.final_until + _WITHIN_A_DAY))", "begin = current"),),
        months=True,
    ),
    Bug(
        "threshold-only-when-passed",
        (14,),
        (
            Edit(
                _ALERTS,
                "        if amount.amount >= rule.amount.amount * share:",
                "        if amount.amount > rule.amount.amount * share:",
            ),
        ),
        months=True,
    ),
    Bug(
        "told-by-the-bill-alone",
        (14,),
        (
            Edit(_TELL, "            None if status.over else soon,\n", "            None,\n"),
            Edit(_TELL, "            status.spent.certain,\n", "            status.spent.billed,\n"),
        ),
        months=True,
    ),
    Bug(
        "first-address-only",
        (14,),
        (Edit(_TELL, "    for address in told.addresses:\n", "    for address in told.addresses[:1]:\n"),),
        months=True,
    ),
    Bug(
        "refused-alert-is-told",
        (14,),
        (Edit(_TELL, "known.state is NoticeState.DEAD and", "False and"),),
        months=True,
    ),
)

_STOPPING = (
    Bug(
        "step-only-when-passed",
        (0,),
        (Edit(_STEPS, "self.share is None or self.share >= step.at", "self.share is None or self.share > step.at"),),
        months=True,
    ),
    Bug(
        "steps-before-their-share",
        (13,),
        (Edit(_STEPS, "self.share >= step.at", 'self.share >= step.at * Decimal("0.8")'),),
        months=True,
    ),
    Bug(
        "class-of-every-team",
        (9,),
        (Edit(_STEPS, "selects = narrowed(budget.covers, classes[name])", "selects = classes[name]"),),
        months=True,
    ),
    Bug(
        "budget-terminates",
        (9,),
        (
            Edit(
                _STEPS, "Step(Verb.STOP, step.wait)),", "Step(Verb.STOP, step.wait), Step(Verb.TERMINATE, step.wait)),"
            ),
        ),
        months=True,
    ),
    Bug(
        "budget-without-grace",
        (15,),
        (Edit(_STEPS, "Step(Verb.STOP, step.wait)),", "Step(Verb.STOP, timedelta(0))),"),),
        months=True,
    ),
    Bug(
        "busy-counts-as-idle",
        (1,),
        (Edit("costguard.guards.idle.judge", "    if cause.priority_class:\n", "    if True:\n"),),
        months=True,
    ),
    Bug(
        "lowered-budget-keeps-its-look",
        (9, 13),
        (
            Edit(
                _ENGINE,
                "(rule.covers, rule.amount) == (standing.rule.covers, standing.rule.amount)",
                "rule.covers == standing.rule.covers",
            ),
        ),
        months=True,
    ),
)

_SHARING = (
    Bug(
        "stop-of-another-guard-not-noticed",
        (6,),
        (
            Edit(
                "costguard.engine.ledger.intents",
                "            if same and held.case_id != action.case_id:",
                "            if False:",
            ),
        ),
        months=True,
    ),
    Bug(
        "merged-with-a-case-that-is-held",
        (0,),
        (Edit(_MERGING, "going_on = other.status is CaseStatus.OPEN", "going_on = True"),),
        months=True,
    ),
    Bug(
        "merged-with-a-case-that-watches",
        (0,),
        (Edit(_MERGING, "        if other.mode is not Mode.ENFORCE or other", "        if other"),),
        months=True,
    ),
)

BUDGETS: tuple[Bug, ...] = (*_TRUSTING, *_RECKONING, *_TELLING, *_STOPPING, *_SHARING)
