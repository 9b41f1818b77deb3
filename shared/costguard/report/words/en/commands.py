"""English: what commands say."""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, str] = {
    "fact": "{label}: {value}",
    "state_and_why": "{state}. {why}",
    "is_paused": "Costguard is paused[ by {by}][: {reason}].",
    "invoked": "{function} ran for {when} (run {run}).",
    "invoked_duplicate": "{function} had run for {when} already (run {run}): nothing was done.",
    "invoked_budget": "{name}: {share} %, {spent} of {amount} in {period}, {sure}",
    "invoked_sure": "sure",
    "invoked_not_sure": "not sure, so nothing is stopped for it",
    "invoked_budget_violation": "spent",
    "invoked_budget_compliant": "within bounds",
    "invoked_budget_unmeasured": "not known",
    "invoked_budget_exempt": "outside its dates",
    "figure_alerts": "alerts told now",
    "figure_instances_seen": "instances seen",
    "figure_due": "due",
    "figure_done": "done",
    "figure_not_done": "not done",
    "figure_held": "held",
    "figure_rehearsed": "rehearsed",
    "figure_notices": "notices",
    "figure_gaps": "gaps",
    "sandbox_followed": "In the sandbox at {url} it is {now}: nothing here is real.",
    "sandbox_up": "A made-up world from {now} on, until this command is interrupted. In another terminal:",
    "sandbox_up_cloud": "The same clouds for any other program:",
    "sandbox_moved": "In the sandbox it is {now}.",
    "snoozed": "{resource} is left alone until {until}.",
    "is_snoozed": "Snoozed until {until}[ by {by}][: {reason}].",
    "approved": "The step that waited on {resource} may be done, once, until {until}.",
    "paused": "Paused[ by {by}][: {reason}]. Nothing begins until `costguard resume`.",
    "pause_not_written": (
        "Costguard was not paused by this command, or nobody knows whether it was: the ledger did not answer. The"
        " switch of each host needs no ledger. Set COSTGUARD_PAUSED=1 for every function:\n"
        "  Lambda: Configuration > Environment variables > Edit\n"
        "  Function Compute: Configurations > Environment Variables > Modify\n"
        "  SCF: Function configuration > Edit > Environment variables\n"
        "  a container, cron or a shell: export COSTGUARD_PAUSED=1 where it is started\n"
        "  as deployed by Terraform: {setting}, then `costguard deploy` again\n"
        "A run that began before goes on with its old environment. `costguard pause` again once the ledger answers."
    ),
    "recheck_none": "No case is held because an answer was lost.",
    "recheck_took_effect": "{resource}: it took effect. {why}",
    "recheck_no_effect": "{resource}: it had no effect[; it is {state}]. The wait begins anew, with a notice. {why}",
    "recheck_ended": "{resource}: the case is over. {why}",
    "recheck_under_way": "{resource}: it is under way[; it is {state}]. {why}",
    "recheck_unknown": (
        "{resource}: still unknown[; it is {state}]. Look it up in the cloud's console and its audit log: do by hand"
        " what is missing, or snooze it. {why}"
    ),
    "recheck_unseen": "{resource}: not seen, so nothing was decided; `costguard doctor` says why. {why}",
    "recheck_moved": "{resource}: a run moved it at this moment; look again. {why}",
    "resumed": "Going on[, says {by}][: {reason}].",
    "still_paused": "This host stays paused: COSTGUARD_PAUSED is set.",
    "audit_whole": "The audit is whole: {entries} entries in {chains} chains, and they tell of all {intents} intents.",
    "audit_broken": "The audit is broken: {problems} problems in {entries} entries.",
    "audit_nobody": "The audit knows nobody yet.",
    "audit_forgotten_person": "forgotten",
    "audit_would_forget": "Would forget {person}: {who}. Nothing was changed; say --yes to do it.",
    "audit_forgot": "Forgot who {person} is, in {records} records. The audit stays whole.",
    "audit_would_prune": "Would erase {entries} entries in {chains} chains. Nothing was changed; say --yes to do it.",
    "audit_pruned": "Erased {entries} entries in {chains} chains; their hashes stay.",
    "happened_opened": "case opened[ under rule {rule}]",
    "happened_told": "told {where}: {detail}",
    "happened_not_told": "not told {where}: {detail}",
    "happened_called": "asked the cloud to {verb} {where}: {outcome}[ ({detail})][; action {action}]",
    "happened_seen": "seen done: {verb}",
    "happened_closed": "case closed[. {why}]",
    "earlier_case": "An earlier case: {opened} to {closed}. {why}",
}
