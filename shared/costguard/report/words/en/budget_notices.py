"""English: what people are told about budgets."""

from __future__ import annotations

from collections.abc import Mapping

BUDGET_LABELS: Mapping[str, str] = {
    "budget_period": "Period",
    "budget_spent": "Spent",
    "budget_billed": "of it billed",
    "budget_reckoned": "of it reckoned",
    "budget_burn": "Burning",
    "budget_full": "All of it spent",
    "budget_forecast": "Forecast",
    "budget_spenders": "Dearest now",
    "budget_idle": "Idle now",
    "budget_unexplained": "Billed, but in no inventory",
    "budget_sure": "How sure",
    "freeze_before": "Attached before",
    "freeze_was": "Asked for because",
    "budget_steps": "What follows",
}

BUDGET_PHRASES: Mapping[str, str] = {
    "alert_actual": "Budget {budget}: {at} % of {amount} is spent",
    "alert_early": "Budget {budget}: {at} % of {amount} is about to be spent",
    "alert_over": "Budget {budget}: {at} % of {amount} was spent in {period}",
    "alert_forecast": "Budget {budget}: {at} % of {amount} will be passed by the end of the period",
    "alert_surge": "Budget {budget}: the burn is out of the ordinary: {now} an hour, usually {usual}",
    "budget_period_is": "{name}, {days_left} days left",
    "budget_period_over": "{name}, over since {end}",
    "budget_spent_is": "{spent} of {amount}: {share} %",
    "budget_at_least": "at least {spent} of {amount}: {share} %; not read: {clouds}",
    "budget_billed_is": "{billed}, up to {until}[ ({cloud})]",
    "budget_unbilled": "nothing yet[ ({cloud})]: the bill says nothing so far",
    "budget_reckoned_is": (
        "{accrued} for machines that ran since, {estimated} for everything else at its recent rate"
        "[, {ahead} that an incomplete bill shows beyond that]"
    ),
    "budget_burn_is": "{burn} an hour, {daily} a day",
    "budget_full_is": "in {hours} h, about {when}, as it burns now",
    "budget_is_full": "yes",
    "budget_never_full": "not in this period, as it burns now",
    "budget_forecast_is": (
        "{expected} at the end,[ with {confidence} % confidence] between {low} and {high}"
        "[; {method}][, past error {error} %]"
        "[, held {held} of {tested} past tries][, without {unknown} that fall due at a price nobody knows]"
    ),
    "budget_forecast_none": "none: fewer than {days} billed days tell nothing of what will go on",
    "budget_spender": "{name}[, {kind}][, {owner}]: {hourly} an hour",
    "budget_none_idle": "no machine of this budget was seen idle",
    "budget_idle_unknown": "not measured: neither the idle_gpu guard nor a stop_idle step looks for it",
    "budget_saves": "Stopping the idle ones would save {hourly} an hour, {daily} a day.",
    "budget_unexplained_is": "{service}[ in account {account}]: {money}",
    "budget_is_sure": "every bill is recent, everything that runs has a price",
    "budget_step_idle": "at {at} %: idle machines are stopped, {wait} h after their owners were told",
    "budget_step_classes": "at {at} %: work of class {classes} is stopped, {wait} h after its owners were told",
    "budget_step_freeze": "at {at} %: no new GPU machines may be launched",
    "budget_step_mode": " (only shown: this budget is in mode {mode})",
    "budget_reached": " (in force)",
    "budget_told_once": "Told once in this period. To raise or change the budget, edit it in the policy: {rule}.",
    "budget_told_early": (
        "Told once in this period, and once more should this estimate fall back before it is true. To raise or change"
        " the budget, edit it in the policy: {rule}."
    ),
    "budget_told_over": (
        "Charges of this period still come: it is judged until its bill is final. Nothing is stopped for it."
    ),
    "freeze_announced": "Launch freeze {name}: {hours} h from now no new GPU machine can be launched in {target}",
    "freeze_frozen": "Launch freeze {name} is in force: no new GPU machine can be launched in {target}",
    "freeze_thawed": "Launch freeze {name} is over: GPU machines can be launched in {target} again",
    "freeze_called_off": "Launch freeze {name} was called off before it began",
    "freeze_failed": "Launch freeze {name} could not be changed in {target}, and is tried again[: {detail}]",
    "freeze_why": "Budget {budget} has passed the share at which the policy asks for it[: {at} % of {amount}]",
    "freeze_was": "Budget {budget} had passed the share at which the policy asks for it[: {at} % of {amount}]",
    "freeze_spent": "{budget}, {period}: {words}",
    "freeze_keep": (
        'costguard budgets thaw {name} --reason "…" calls it off for this period; what carries the approval tag can be'
        " launched all the same"
    ),
}
