"""English: what the doctor says. `doctor_<code>` is what is the case, `doctor_fix_<code>` what mends it."""

from __future__ import annotations

from collections.abc import Mapping

_GRANT = "Grant what is named below, of which `costguard permissions {cloud} --guard idle_gpu%s` prints all."
_READ_ALL = "Look at what is named below; nothing is ever done in a region that does not answer in full."

DOCTOR: Mapping[str, str] = {
    # verdicts
    "doctor_health_ok": "ok",
    "doctor_health_warning": "warning",
    "doctor_health_could_not_tell": "could not tell",
    "doctor_health_bars_enforcing": "DO NOT ENFORCE",
    "doctor_verdict_ok": "It is safe to enforce: {checks} checks, nothing to mend.",
    "doctor_verdict_warning": "It is safe to enforce: {checks} checks, {warnings} warnings.",
    "doctor_verdict_could_not_tell": "Whether it is safe to enforce could not be told: {untold} of {checks} checks.",
    "doctor_verdict_bars_enforcing": (
        "Do not enforce: {barring} of {checks} checks bar it[; {untold} could not be told]."
    ),
    "doctor_calls": "{calls} calls[, {dry_runs} of them dry runs]; 0 that can change anything.",
    "doctor_calls_dirty": "{calls} calls, {changing} of them can change something: {operations}.",
    "doctor_more": "and {count} more; `--json` names them all",
    "doctor_here": "this deployment",
    "doctor_line": "[{target}: ]{words}",
    "doctor_fix": "To mend it: {fix}",
    "doctor_comma": ", ",
    "doctor_detail": "{where}[: {said}][. To mend it: {fix}]",
    # who the credentials are
    "doctor_caller_known": "The credentials are {name} of account {account}[; role there: {role}].",
    "doctor_caller_refused": "The cloud does not accept the credentials[: {detail}].",
    "doctor_fix_caller_refused": "Give valid credentials of the cloud and partition that the policy names.",
    "doctor_caller_untold": "Who the credentials are could not be asked[: {detail}].",
    "doctor_fix_caller_untold": "Check network, proxy and endpoint, then ask again.",
    # the clock
    "doctor_clock_right": "The clock is right: {skew_seconds} s from the cloud's.",
    "doctor_clock_off": "The clock is {skew_seconds} s {direction} the cloud's.",
    "doctor_fix_clock_off": "Let this host keep time by NTP: beyond 5 minutes nothing may be enforced.",
    "doctor_clock_wrong": "The clock is {skew_seconds} s {direction} the cloud's, so every wait would be wrong.",
    "doctor_fix_clock_wrong": "Let this host keep time by NTP.",
    "doctor_clock_untold": "No answer of the cloud told its time.",
    "doctor_fix_clock_untold": "Ask again once the cloud answers; check this host's clock by hand.",
    "doctor_ahead": "ahead of",
    "doctor_behind": "behind",
    # regions
    "doctor_regions_answer": (
        "All {answered} regions of {accounts} accounts answered in full: {names}. {instances} instances stand there."
    ),
    "doctor_regions_none": "There is no region to guard.",
    "doctor_fix_regions_none": "Name regions in the policy, or `regions: all`.",
    "doctor_regions_closed": (
        "All {answered} regions of {accounts} accounts that the organisation leaves open answered in full: {names}. "
        "{instances} instances stand there. "
        "Its policies close {closed} more, where nothing is seen or done: {closed_names}."
    ),
    "doctor_fix_regions_closed": "Narrow `regions` in the policy to those that are open; no grant opens the others.",
    "doctor_regions_unread": "Only {answered} of {asked} regions answered in full[: {names}].",
    "doctor_fix_regions_unread": _READ_ALL,
    "doctor_regions_denied": "Only {answered} of {asked} regions may be read[: {names}].",
    "doctor_fix_regions_denied": _GRANT % "",
    # permissions
    "doctor_permissions_granted": "Every permission is there: {operations} operations, asked in {shards} regions.",
    "doctor_permissions_untold": (
        "No permission is known to be missing; of {untold} of {operations} operations the cloud did not tell."
    ),
    "doctor_fix_permissions_untold": "Compare them with the policy documents that Costguard generates.",
    "doctor_permissions_wanted": "Permissions are missing that enforcing can do without: {missing} operations.",
    "doctor_fix_permissions_wanted": (
        "Grant them: without prices the money limits hold everything back, without the audit trail owners come from"
        " owners.yaml, tags and accounts alone, and without starting an undo is done by hand."
    ),
    "doctor_permissions_unread": "Which permissions there are could not be asked everywhere.",
    "doctor_fix_permissions_unread": "Look at what is named below, then ask again.",
    "doctor_permissions_missing": "Permissions are missing: {missing} of {operations} operations.",
    "doctor_fix_permissions_missing": _GRANT % " --mode enforce",
    "doctor_permissions_unsafe": "A dry run may have been carried out, so nothing more was asked[: {detail}].",
    "doctor_fix_permissions_unsafe": (
        "Look at the machines of that region now; an endpoint that ignores `DryRun` is not this cloud."
    ),
    # what is measured
    "doctor_measured_all": "All {running} running machines that a rule covers are measured[; {no_rule} have no rule].",
    "doctor_measured_nothing_runs": "No machine that a rule covers runs[; {no_rule} have no rule].",
    "doctor_measured_partly": (
        "{measured} of {running} running machines are measured ({share_percent} %)[; {no_rule} have no rule]."
        " The others are never acted on."
    ),
    "doctor_fix_measured_partly": "Mend the metrics of those named below.",
    "doctor_measured_unread": "What is measured could not be told: no region answered in full.",
    "doctor_fix_measured_unread": _READ_ALL,
    "doctor_measured_none": "Not one of {running} running machines is measured: the guard is blind.",
    "doctor_fix_measured_none": "Mend the metrics of those named below before anything is enforced.",
    # another deployment
    "doctor_other_not_seen": (
        "No trace of another Costguard[ beside this one, {name}]: none in the audit log in the last 7 days; looked at"
        " {snapshots} snapshots of {machines} of {machines_in_all} machines, {marked} of them made by this ledger."
    ),
    "doctor_other_log_unread": (
        "No trace of another Costguard[ beside this one, {name}] in {snapshots} snapshots of {machines} of"
        " {machines_in_all} machines; the audit log could not be looked at."
    ),
    "doctor_fix_other_log_unread": "Grant what is named below: another deployment is found before it acts only there.",
    "doctor_other_led": (
        "Another Costguard works here ({others}, last seen {seen}); the policy lets {name} lead: this one."
    ),
    "doctor_fix_other_led": "Name `leading_deployment: {name}` in the policy of the other as well, so that it holds.",
    "doctor_other_works": (
        "Another Costguard works here: {others}, last seen {seen}[; the policy lets {leading} lead]. This one, {name},"
        " does nothing here."
    ),
    "doctor_fix_other_works": (
        "End one of them, or give each a COSTGUARD_NAME of its own and name the one that acts in both policies:"
        " `leading_deployment: NAME`."
    ),
    "doctor_other_unread": (
        "Whether another Costguard works here could not be told: looked at {snapshots} snapshots of {machines} of"
        " {machines_in_all} machines."
    ),
    "doctor_fix_other_unread": "Grant what is named below, and name the ledger that made the snapshots.",
    "doctor_other_seen": (
        "Another Costguard was at work here: {unknown} of {marked} marked snapshots are of decisions that this"
        " ledger never made."
    ),
    "doctor_fix_other_seen": (
        "One target has one ledger: use the ledger that made them, or end the other deployment and then take the"
        " tag `costguard:decision-id` off its snapshots."
    ),
    # the ledger
    "doctor_ledger_ready": "The ledger ({kind}) answers and lasts: {cases} open cases[; latest run {latest_run}].",
    "doctor_ledger_new": "There is no ledger ({kind}) yet: the first run makes it.",
    "doctor_fix_ledger_new": "If runs use another ledger, name that one with `--ledger` or COSTGUARD_LEDGER.",
    "doctor_ledger_forgetful": "The ledger ({kind}) does not outlive the process, so nothing may be enforced.",
    "doctor_fix_ledger_forgetful": "Name a file or database with `--ledger` or COSTGUARD_LEDGER.",
    "doctor_ledger_newer": "The ledger ({kind}) was written by a newer Costguard[: {detail}].",
    "doctor_fix_ledger_newer": "Upgrade this Costguard.",
    "doctor_ledger_unusable": "The ledger ({kind}) cannot be used[: {detail}].",
    "doctor_fix_ledger_unusable": "Check its address, its server and the rights of this user.",
    # the policy
    "doctor_policy_enforces": "The policy is valid: {enforcing} of {rules} rules enforce.",
    "doctor_policy_gentle": "The policy is valid, and none of its {rules} rules enforces: nothing would be done.",
    "doctor_policy_remarked": "The policy is valid: {enforcing} of {rules} rules enforce. It says things worth a look.",
    "doctor_fix_policy_remarked": "Read the remarks below; they stop nothing.",
    "doctor_policy_invalid": "The policy is not valid[: {detail}].",
    "doctor_fix_policy_invalid": "Run `costguard policy check` on it, and correct what it names.",
    # the bill
    "doctor_bill_read": "The bill can be read[ from {source}], and is whole up to {age_hours} h ago.",
    "doctor_bill_says_nothing": "The bill says nothing of the past days, which is not zero.",
    "doctor_fix_bill_says_nothing": (
        "Read it from the account that pays (the organisation's management account); a month that is being prepared"
        " answers within the hour."
    ),
    "doctor_bill_untold": "The bill did not answer in full[: {detail}].",
    "doctor_fix_bill_untold": "Ask again; until it answers, budgets alert on what runs and stop nothing.",
    "doctor_bill_denied": "The bill may not be read[: {detail}]; budgets then alert on what runs and stop nothing.",
    "doctor_fix_bill_denied": "Grant the payer's role what `costguard permissions {cloud} --role scan-budget` prints.",
    # keys and networks
    "doctor_keys_read": "Its encryption keys can be read: {count} in {region}.",
    "doctor_keys_untold": "Its encryption keys did not answer in full[: {detail}].",
    "doctor_fix_keys_untold": "Ask again; what was not read is not judged, and nothing is done to it.",
    "doctor_keys_denied": "Its encryption keys may not be read[: {detail}]; they are not judged then.",
    "doctor_fix_keys_denied": "Grant what `costguard permissions {cloud} --role scan-kms_rotation` prints.",
    "doctor_networks_read": "Its networks can be read: {count} in {region}.",
    "doctor_networks_untold": "Its networks did not answer in full[: {detail}].",
    "doctor_fix_networks_untold": "Ask again; what was not read is not judged, and nothing is done to it.",
    "doctor_networks_denied": "Its networks may not be read[: {detail}]; who gets in is not judged then.",
    "doctor_fix_networks_denied": "Grant what `costguard permissions {cloud} --role scan-network_audit` prints.",
    # launch freezes
    "doctor_freeze_ready": "The freeze could be attached to {target}, which has {attached} policies now.",
    "doctor_freeze_in_force": "The freeze holds in {target}.",
    "doctor_freeze_foreign": "Somebody else has attached {policy} to {target}: it stays whatever is spent.",
    "doctor_fix_freeze_foreign": "Take it off by hand, if it is not meant to hold now.",
    "doctor_freeze_untold": "Its target did not answer[: {detail}].",
    "doctor_fix_freeze_untold": "Correct the freeze in the policy, or ask again; until then no launch is denied.",
    "doctor_freeze_denied": "Its target may not be looked at[: {detail}]; no launch is ever denied then.",
    "doctor_fix_freeze_denied": "Grant what `costguard budgets freeze-role` prints.",
    # the channel
    "doctor_channel_proves": "Notices go to {channels} channels that prove delivery[; default {default}].",
    "doctor_channel_partly": "{lacking} channels prove no delivery: what belongs to their owners is never stopped.",
    "doctor_fix_channel_partly": "Set `notify.default`, and name channels that are set up here, such as slack:#gpu.",
    "doctor_channel_missing": "No channel proves delivery, so nothing would ever be stopped.",
    "doctor_fix_channel_missing": (
        "Set up Slack, mail, a chat robot or a webhook (docs/notices.md), and `notify.default` to a channel such as"
        " slack:#gpu or mailto:finops@example.com."
    ),
    # secrets where functions run
    "doctor_plain_text_none": "No secret of Costguard's stands in this function's environment in plain text.",
    "doctor_plain_text_found": "Stands in the environment in plain text: whoever reads those settings has it.",
    "doctor_fix_plain_text_found": "Keep it in {store}, set this to secret:NAME (docs/settings.md), and change it.",
    # robots of chat groups
    "doctor_robot_ready": "Its hook leads to its vendor, and what is sent is signed where the vendor can check that.",
    "doctor_robot_unsigned": "It has no secret: whoever learns its hook can write to the group.",
    "doctor_fix_robot_unsigned": (
        "Turn the check of signatures on in the robot's settings, and put its secret into COSTGUARD_ROBOTS"
        " (docs/notices.md)."
    ),
    "doctor_robot_wrong": "It cannot be used, so nothing starts[: {detail}].",
    "doctor_fix_robot_wrong": "Mend COSTGUARD_ROBOTS: copy the webhook address from its page (docs/notices.md).",
    # the kill switch
    "doctor_switch_open": "The kill switch can be read, and nobody has pulled it.",
    "doctor_switch_paused": "Costguard is paused[ by {by}][: {reason}]: nothing begins.",
    "doctor_fix_switch_paused": "Run `costguard resume`, or unset COSTGUARD_PAUSED, once it is safe again.",
    "doctor_switch_unreadable": "The kill switch cannot be read, which counts as pulled[: {detail}].",
    "doctor_fix_switch_unreadable": "Mend the ledger first.",
    # runs of the functions
    "doctor_runs_recent": "Every function that the policy needs runs: {functions}; none began before {since}.",
    "doctor_runs_none": "No function has run with this ledger: the policy needs {functions}.",
    "doctor_fix_runs_none": "Deploy them (`costguard deploy`), or invoke one now to see it run.",
    "doctor_runs_missed": "Not every function that the policy needs runs as scheduled.",
    "doctor_fix_runs_missed": "Look at its schedule and its log; without runs nothing is guarded.",
    "doctor_run_never_ran": "never ran",
    "doctor_run_not_lately": "began last at {began}",
    "doctor_run_did_not_end": "began at {began} and did not end",
    "doctor_run_other_policy": "decided by {policy}",
    "doctor_runs_unended": "A run began and did not end.",
    "doctor_fix_runs_unended": "Look at its log: it ran out of time or memory, or failed before it could say so.",
    "doctor_runs_other_policy": "Runs decided by another policy than the one looked at here.",
    "doctor_fix_runs_other_policy": "Publish this one, or look at the one they use: `costguard policy history`.",
    "doctor_runs_stretch_waits": "Waits become longer than the policy says, as the runs of {functions} come.",
    "doctor_fix_runs_stretch_waits": "Schedule them more often, or write waits in whole runs (docs/policy.md).",
    "doctor_run_stretches_wait": "{step}: {wait} becomes {becomes} with a run every {every}",
}
