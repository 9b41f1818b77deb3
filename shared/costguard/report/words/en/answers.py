"""English: what is said to people who answered a notice, asked with the slash command, or filled in the window."""

from __future__ import annotations

from collections.abc import Mapping

ANSWERS: Mapping[str, str] = {
    "answer_kept": "{what} is kept until {until}. After that the steps begin again, with a notice and the full wait.",
    "answer_kept_late": (
        "{what} is kept until {until}. A step had begun before you said so and may still happen; nothing follows it."
    ),
    "answer_stop_asked": (
        "{what} does not wait any longer: the next run stops it, if it is still idle and nothing speaks against it."
    ),
    "answer_stop_needs_another": (
        "Your word to stop {what} now is noted. A second person has to say so too within 24 hours."
    ),
    "answer_approved": "The step that {what} waits for is approved once, until {until}. All is checked again first.",
    "answer_approval_needs_another": (
        "Your approval for {what} is noted. A second person has to approve as well within 24 hours."
    ),
    "answer_disowned": (
        "{what} no longer counts as {owner}'s. The next run tells whoever is next in line, and the wait begins again."
    ),
    "answer_kept_longer": "{what} is kept until {until} already, which is longer. Nothing was changed.",
    "answer_stop_stands": "{what} is to be stopped by the next run already. Nothing was changed.",
    "answer_stop_waits": "You said so before; a second person still has to. Nothing was changed.",
    "answer_approval_stands": "The step that {what} waits for is approved already. Nothing was changed.",
    "answer_approval_waits": "You approved it before; a second person still has to. Nothing was changed.",
    "answer_disowned_before": "{what} was said not to be {owner}'s before. The next run tells somebody else.",
    "answer_not_set_up": (
        "Answers from Slack are not set up: the policy names no notify.answers.slack_team. Nothing was changed."
    ),
    "answer_foreign_team": "You belong to another workspace than the one whose answers count. Nothing was changed.",
    "answer_foreign_channel": "This can be answered only in the channel that the notice went to. Nothing was changed.",
    "answer_not_among_owners": (
        "Only people of its owner[ ({owner})], as the policy lists them, and approvers can. Nothing was changed."
    ),
    "answer_not_among_approvers": "Only approvers named in the policy can approve. Nothing was changed.",
    "answer_asked_by_themselves": (
        "You asked for {what} to be stopped, so somebody else has to approve it. Nothing was changed."
    ),
    "answer_unknown": "Costguard knows of no such notice. Nothing was changed.",
    "answer_over": "This is over for {what}: it was closed, or has run anew since. Nothing was changed.",
    "answer_outdated": "This notice no longer says how {what} stands; answer the latest one. Nothing was changed.",
    "answer_under_way": "A step has begun for {what} already, so this comes too late. Nothing was changed.",
    "answer_only_rehearsed": "The rule of {what} only watches or warns; nothing is ever stopped. Nothing was changed.",
    "answer_nothing_to_stop": "No stop is waiting for {what} right now. Nothing was changed.",
    "answer_nothing_to_approve": "{what} does not wait for an approval. Nothing was changed.",
    "answer_waits_for_approval": "The wait of {what} is over; an approver's word is missing. Nothing was changed.",
    "answer_is_kept": "{what} is kept until {until}, and that comes first. Nothing was changed.",
    "answer_no_owner": "Nobody is named as the owner of {what}. Nothing was changed.",
    "answer_no_machine": "Only machines are handed on; whose {what} is stands in owners.yaml. Nothing was changed.",
    "answer_bad_length": "It can be kept for more than nothing and at most {days} days. Nothing was changed.",
    "answer_policy_broken": (
        "The policy cannot be read, and the last good one is too old to act on. Keeping is possible, nothing else."
    ),
    "answer_replayed": "This was received before, and counts once. If nothing shows, please answer again.",
    "answer_busy": "Costguard could not take this just now; please try again in a moment.",
    "answer_unreadable": "Costguard does not understand this request. Nothing was changed.",
    "answer_not_a_date": "Choose a day after today and at most 90 days ahead.",
    "answer_reason_missing": "Say why in a few words, at most 200 characters.",
    "window_title": "Keep it",
    "window_submit": "Keep",
    "window_cancel": "Cancel",
    "window_until": "Until the end of",
    "window_because": "Because",
    "window_what": "{what} is left alone until then. After that the steps begin again.",
    "slash_help": (
        "/costguard status: what is open. /costguard mine: what is yours. "
        "/costguard snooze RESOURCE 24h because …: leave it alone. /costguard why RESOURCE: its story."
    ),
    "slash_status": "{open} open, {held} waiting for something or somebody, {kept} kept.",
    "slash_status_title": "Where things stand",
    "slash_mine_title": "Yours",
    "slash_mine_none": "Nothing of yours is open.",
    "slash_mine_nobody": "The policy lists you among no owner's people, so nothing is known to be yours.",
    "slash_why_title": "Why",
    "slash_snooze_title": "Keep",
    "slash_line": "{what}: {state}, {why}",
    "slash_more": "… and {count} more; `costguard cases` lists them all.",
    "slash_unknown": "No case is known for {resource}. /costguard mine lists yours.",
    "slash_ambiguous": "{resource} is ambiguous; give the whole id: {ids}",
    "slash_bad_length": "{length} is no duration; write for example 24h or 7d, at most 90d.",
}
