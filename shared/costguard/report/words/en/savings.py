"""English: what was saved, and why it counts as far as it does."""

from __future__ import annotations

from collections.abc import Mapping

SAVINGS: Mapping[str, str] = {
    "savings_total": (
        "{since} to {until}: {realised} realised of {predicted} predicted; {still_billed} for what stays billed is"
        " taken off (actions: {actions})."
    ),
    "savings_converted": (
        "All of it in {currency}: {realised} realised of {predicted} predicted, by the policy's rates: {rates}."
    ),
    "savings_rate": "1 {base} = {rate} {quote} since {since}",
    "savings_unconverted": "No total in {currency}: the policy gives no rate for {without}.",
    "savings_none": "Nothing that saves was seen complete from {since} to {until}.",
    "savings_unpriced": "Counted as nothing, for nobody knows what the machine costs: {count}.",
    "savings_unseen": "Counted only up to the last look, for no run has looked since: {count}.",
    "savings_worthless": "Saved nothing, for it is billed on although stopped or a commitment pays for it: {count}.",
    "savings_list_price": (
        "By list prices unless the policy gives yours; `costguard savings --explain ACTION` shows how a figure comes"
        " about."
    ),
    "savings_billed_anyway": "{name}: the bill has {amount} all the same; that is taken off.",
    "savings_lower_kept": "{name}: {what} stays billed at a price that nobody knows, so that the net may be less.",
    "savings_month_title": "By month (UTC)",
    "savings_owner_title": "By owner",
    "savings_guard_title": "By guard",
    "savings_cloud_title": "By cloud",
    "savings_action_title": "Actions ({count})",
    "savings_column_month": "Month",
    "savings_column_owner": "Owner",
    "savings_column_guard": "Guard",
    "savings_column_cloud": "Cloud",
    "savings_column_predicted": "Predicted",
    "savings_column_realised": "Realised",
    "savings_column_still_billed": "Still billed",
    "savings_column_actions": "Actions",
    "savings_column_name": "Machine",
    "savings_column_verb": "Done",
    "savings_column_since": "Since",
    "savings_column_standing": "Now",
    "savings_column_action_id": "Action",
    "savings_no_owner": "(no owner)",
    "savings_no_guard": "(not recorded)",
    "savings_standing_stopped": "still stopped",
    "savings_standing_terminated": "terminated",
    "savings_standing_released": "released",
    "savings_standing_restarted": "started again {when}",
    "savings_standing_undone": "taken back by `costguard undo` {when}",
    "savings_standing_replaced": "replaced[ by {other}][ ({how})] {when}",
    "savings_standing_gone": "gone by another hand, seen last {when}",
    "savings_standing_billed_on": "billed though stopped {when}",
    "savings_standing_handed_over": "goes on in a later action {when}",
    "savings_standing_shared": "its hours belong to action {shared_with}",
    "savings_standing_unseen": "not seen since {when}",
    "savings_standing_over": "counted for as long as any is, to {when}",
    "savings_how_group": "launched by the same group",
    "savings_how_launcher": "launched by the same person",
    "savings_how_name": "same owner, type and name",
    "savings_how_tags": "same owner, type and tags",
    "savings_explain_title": "Action {action_id}: {verb} {name}",
    "savings_explain_subject": "On {subject}[, {instance_type}][, owner {owner}].",
    "savings_explain_case": "Case {case_id}[ of guard {guard}], rule {rule}.",
    "savings_explain_why": "Measurements, notices and calls: costguard why {case_id}[ --guard {guard}]",
    "savings_explain_price": "Price: {amount} an hour, from {source}, as of {as_of}.",
    "savings_explain_no_price": "Price: unknown, so that it counts as nothing.",
    "savings_explain_worth_priced": "It stops billing {amount} an hour; no commitment for such machines is known.",
    "savings_explain_worth_partly_covered": (
        "{share} % of what such machines cost was under no commitment ({source}, up to {until}), so {amount} an hour"
        " counts."
    ),
    "savings_explain_worth_covered": "A commitment pays for such machines and is paid all the same: it saves nothing.",
    "savings_explain_worth_billed_on": "The cloud said at once that the stop ended no billing: it saves nothing.",
    "savings_explain_worth_unpriced": "What stops billing is unknown, so that it counts as nothing.",
    "savings_explain_kept": "Stays billed: {what}, {amount}.",
    "savings_explain_kept_unknown": "Stays billed: {what}, at a price that nobody knows; the net may be less.",
    "savings_explain_net": "Net: {hourly} - {kept} = {net} an hour.",
    "savings_explain_counted": "Counted: {hours} h, from {since} to {until}. {standing}.",
    "savings_explain_predicted": "Predicted: {amount}, had nothing happened since.",
    "savings_explain_realised": "Realised: {amount}.",
    "savings_explain_still_billed": "Still billed meanwhile: {amount}.",
    "savings_explain_bill": "Compared with the bill up to {until}: {found}.",
    "savings_explain_bill_agrees": "nothing was billed for it but what stays billed",
    "savings_explain_bill_anyway": "{amount} billed all the same, and taken off",
    "savings_explain_no_bill": "No bill was compared: none that was read tells of this machine alone.",
    "savings_explain_more": "… and {count} days before",
    "savings_day_column_day": "Day",
    "savings_day_title": "By day (UTC)",
}
