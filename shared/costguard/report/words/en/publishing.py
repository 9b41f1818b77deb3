"""English: what is said of published policies."""

from __future__ import annotations

from collections.abc import Mapping

PUBLISHING: Mapping[str, str] = {
    "published": "Published {digest} as number {seq} at {address}.",
    "published_back": "Went back to {digest}, as number {seq}.",
    "published_now": "It decides from the next run on.",
    "published_loosens": (
        "It loosens what is in force ({count}), so it waits until {when}[ and for {missing} more approvers]."
    ),
    "published_later": "It decides from {when} on.",
    "published_again": (
        "It loosens what is in force ({count}) and names no moment far enough ahead: "
        "publish it again with --effective-at."
    ),
    "published_approve": "Each approver says so with: costguard policy approve {digest} --by SLACK_USER_ID",
    "published_press": (
        "Approvers agree by the button Approve, or with: costguard policy approve {digest} --by SLACK_USER_ID"
    ),
    "published_waits": "Published policy {digest} waits: it loosens what is in force",
    "published_waits_later": "Published policy {digest} waits for its moment",
    "published_by": "Published by",
    "published_note": "Note",
    "published_effective": "Not before",
    "published_missing": "Approvals needed",
    "published_loosened": "Loosens",
    "published_more": "… and {count} more",
    "published_meanwhile": "Until then the policy before it decides.",
    "published_history": "Published policies",
    "published_seq": "No.",
    "published_at": "Published at",
    "published_hash": "Hash",
    "published_meaning": "Looser, tighter, neither",
    "published_state": "State",
    "published_in_force": "in force",
    "published_was_in_force": "in force from {when}",
    "published_waiting": "waits",
    "published_next_run": "with the next run",
    "published_never": "never in force",
    "published_back_note": "rollback[: {note}]",
    "code_sent": (
        "{person} was sent a code in Slack. Within 15 minutes: "
        "costguard policy approve {digest} --by {person} --code CODE"
    ),
    "code_title": "Your code to approve the published policy {digest}: {code}",
    "code_line": "It loosens what Costguard may do. Whoever has this code approves in your name: tell it to nobody.",
    "agreed": "{person} approves {digest}.",
    "agreed_missing": "{missing} more must agree; not before {when}.",
    "agreed_all": "Enough have agreed. It decides from {when} on.",
    "policy_decided": "Policy {digest}[, published number {seq}][, for {guards}][; {waiting} waits].",
    "asks_policy": (
        "Approve policy {digest}, published as number {seq}? It loosens what is in force ({count})[, from {when} on]."
    ),
    "asked_enough": "Approved by {people}. It decides from {when} on.",
    "asked_superseded": "Another policy was published after this one, which is over.",
    "word_counts": "Your approval of policy {digest} is noted. {missing} more must agree; not before {when}.",
    "word_enough": "Your approval of policy {digest} is noted, and enough have agreed. It decides from {when} on.",
    "word_said_before": "You approved policy {digest} before; {missing} more must agree. Nothing was changed.",
    "word_not_needed": "Policy {digest} waits for nobody's approval any more. Nothing was changed.",
    "word_superseded": "Another policy was published after {digest}, which is over. Nothing was changed.",
    "word_expired": (
        "Policy {digest} was to decide from {when} on, more than {days} days ago; who still wants it publishes it "
        "again. Nothing was changed."
    ),
    "word_no_moment": (
        "Policy {digest} names no moment far enough ahead and has to be published again. Nothing was changed."
    ),
    "word_broken": "A published policy cannot be read just now, so nothing can be approved. Nothing was changed.",
}
