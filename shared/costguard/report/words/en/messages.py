"""English: messages about several things at once, what may be answered, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping

LETTERS: Mapping[str, str] = {
    "letter_warned": "{count} idle machines[ of {owner}]: each stops unless it is kept",
    "letter_idle": "{count} idle machines[ of {owner}]",
    "letter_stopped": "{count} stopped machines[ of {owner}]: what comes next",
    "letter_mends": "{count} settings[ of {owner}] will be changed, unless somebody objects",
    "letter_mended": "{count} settings[ of {owner}] were changed",
    "keep_clicked": "press Keep below",
    "letter_mixed": "{count} messages in one[ for {owner}]",
    "letter_cost": "{cost} a day together",
    "letter_cost_partly": "{cost} a day together, and {unpriced} of unknown price",
    "answer_keep_hours": "Keep {hours} h",
    "answer_keep_days": "Keep {days} d",
    "answer_keep_until": "Keep until …",
    "answer_stop_now": "Stop now",
    "answer_approve": "Approve",
    "answer_not_mine": "Not mine",
    "asks_stop_now": "Stop {what} in the next run, without waiting any longer? Whatever runs on it ends.",
    "asks_approve": "Let the next step for {what} be done? This counts once, and only for what this message says.",
    "asks_not_mine": "Tell the next owner in line about {what}? The wait begins again for them.",
    "status_kept": "Kept until {until}[ by {by}]",
    "status_stopped": "Stopped {at}",
    "status_ended": "{why}",
    "status_handed_on": "Handed on[ to {owner}], who is told anew",
    "notice_deployment": "Sent by the Costguard deployment {name}",
    "outbox_dead": "{count} refused for good; mend the channel, then `costguard outbox --retry NOTICE`",
    "outbox_pending": "{count} to be sent with the next run",
    "outbox_empty": "Everything was delivered; nothing waits.",
    "outbox_revived": "{notice} is sent again with the next run.",
}
