"""English: the words of the demo's story."""

from __future__ import annotations

from collections.abc import Mapping

DEMO: Mapping[str, str] = {
    "demo_title": "Costguard demo: {days} days of a GPU fleet, lived in a minute",
    "demo_intro": (
        "Everything here is made up and runs in this process: three clouds, Slack, a ledger and a clock that can be"
        " moved. The engine, the policy and the calls are the real ones."
    ),
    "demo_fleet": (
        "{machines} machines in {accounts} accounts of {clouds} clouds cost {hourly} an hour. One policy for all of"
        " them:"
    ),
    "demo_policy": (
        "the owner of a machine that was idle for 24 h is told, and a day after that notice the machine is"
        " stopped. A research machine that nobody misses for a week more is copied and terminated."
        " A budget for each month watches the company, and within it two teams."
    ),
    "demo_starting": "Starting the sandbox",
    "demo_living": "Day {number}",
    "demo_day": "Day {number}, {at}",
    "demo_later": "Day {number}, an hour later",
    "demo_news": "news",
    "demo_seen": "seen",
    "demo_found": "found",
    "demo_plan": "plan",
    "demo_told": "told",
    "demo_done": "done",
    "demo_held": "held",
    "demo_held_mark": "Held: ",
    "demo_comma": ", ",
    "demo_named": "{name}: {why}",
    "demo_owned": " ({owner})",
    "demo_count": "{count} {verdict}",
    "demo_quiet": "nothing is due[; {held} held as before]",
    "demo_plan_warn": "tell the owners of {names}",
    "demo_plan_snapshot": "copy every disk of {names}",
    "demo_plan_stop": "stop {names}",
    "demo_plan_terminate": "terminate {names}",
    "demo_plan_start": "start {names}",
    "demo_did": "{verb} {name}: {outcome}[; saves {amount} an hour]",
    "demo_did_times": "{verb} {name}, {count} disks: {outcome}",
    "demo_not_done": "{verb} {name}: not done. {why}",
    "demo_seen_stop": "{name} is stopped",
    "demo_seen_snapshot": "every disk of {name} has its copy",
    "demo_seen_terminate": "{name} is gone; its copies are kept",
    "demo_ending": "After {days} days",
    "demo_saved": "Saved {amount} so far, and {hourly} more every hour.",
    "demo_saved_nothing": "Nothing is saved yet: owners have their time to answer.",
    "demo_saved_line": "{name}: {hours} h at {hourly}, from {since}[ to {until}]",
    "demo_stays": "Already taken off: {amount} for disks and addresses that stayed billed.",
    "demo_stays_unknown": "Not taken off, because a price is unknown: what stays billed of {names}.",
    "demo_copies": "The copies of {names} cost at most {hourly} an hour more, until somebody deletes them.",
    "demo_spent": "spent",
    "demo_spent_of": "{name} {share} %",
    "demo_budget": "{name}: {share} % of {amount}",
    "demo_budgets_title": "How far the budgets are spent",
    "demo_budget_ahead": "burning {burn} an hour[; forecast for the month: {ahead}]",
    "demo_budget_told": "told: {told}",
    "demo_budget_told_actual": "{at} % spent on {when}",
    "demo_budget_told_forecast": "{at} % ahead on {when}",
    "demo_budget_told_surge": "a burn out of the ordinary on {when}",
    "demo_left_title": "What it left alone, and why",
    "demo_snoozed": "Its owner said no: snoozed[ until {until}].",
    "demo_warn_only": "Its rule only tells people; nothing is done to it.",
    "demo_unmeasured_title": "What nobody can judge yet, and what would change that",
    "demo_seen_mend": "as the policy asks now: {names}",
    "demo_plan_tell": "say what is to be changed about {names}",
    "demo_did_mend": "{name}: {mend}: {outcome}",
    "demo_not_mended": "{name}: {mend}: not done. {why}",
    "demo_kms_rotation": "Its encryption keys: {faults} of {seen} not as the policy asks",
    "demo_network_audit": "Its {seen} networks: {faults} findings",
    "demo_more": "and {count} more, see costguard {command}",
    "demo_audit": "Every decision, notice and call is in the audit. {verdict}",
    "demo_next": "Your own account, read-only, no policy needed: costguard scan",
}
