"""Every reason in English: what is the case, and what somebody can do about it."""

from __future__ import annotations

from collections.abc import Mapping

from costguard.domain.reasons import ReasonCode as Code
from costguard.domain.resources import AcceleratorKind as Kind

REASONS: Mapping[Code, str] = {
    Code.IDLE: (
        "Idle: every card, and every other signal the rule names, stayed below its bound[ for {hours} h]"
        "[; the highest GPU reading was {gpu_max_percent} %]."
        "[ Not looked at: {unlooked}. Use that the rule does not measure does not close the case.]"
    ),
    Code.BUSY: "In use[: {signal}][ of card {device}][ reached {maximum}][ {unit}][, the bound is {bound}].",
    Code.PARTLY_IDLE: (
        "Partly idle[: {idle_cards} of {cards} cards did nothing while the others worked];"
        " the instance as a whole is in use and never acted on."
    ),
    Code.BUDGET_WITHIN: "The budget[ {budget}] is within its bounds[, at {share_percent} %].",
    Code.BUDGET_REACHED: (
        "The budget[ {budget}] has reached a threshold[: {at_percent} %][, it is at {share_percent} %]."
    ),
    Code.BUDGET_IDLE: (
        "The budget[ {budget}] has reached[ {at_percent} %,] a step that stops what is idle,"
        " as this machine is[ for {hours} h]"
        "[; the highest GPU reading was {gpu_max_percent} %]."
        "[ Not looked at: {unlooked}. Use that the rule does not measure does not close the case.]"
    ),
    Code.BUDGET_CLASS: (
        "The budget[ {budget}] has reached[ {at_percent} %,] a step that stops a class of work[: {priority_class}]."
    ),
    Code.BILL_UNREAD: "Not sure: the bill could not be read[ ({cause})]; a budget then alerts and stops nothing.",
    Code.BILL_STALE: (
        "Not sure: the bill ends too long ago[: {age_hours} h][, {allowed_hours} h are allowed];"
        " a budget then alerts and stops nothing."
    ),
    Code.BILL_ESTIMATED: (
        "Not sure: too much of the spend is not billed yet[: {estimated_percent} %][, {allowed_percent} % may be];"
        " a budget then alerts and stops nothing."
    ),
    Code.BURN_INCOMPLETE: (
        "Not sure: what runs could not all be seen[ ({shard})]; a budget then alerts and stops nothing."
    ),
    Code.BURN_UNPRICED: (
        "Not sure: the price of running machines is unknown[ ({machines} of them)];"
        " a budget then alerts and stops nothing."
    ),
    Code.CURRENCY_WITHOUT_RATE: (
        "Not sure: part of the spend is in a currency[, {currency},] that the policy gives no exchange rate for;"
        " a budget then alerts and stops nothing."
    ),
    Code.KEY_ROTATED: "In time[: the material is {age_days} days old][, {wanted_days} are allowed].",
    Code.KEY_ROTATION_OFF: "Automatic rotation is off[; every {wanted_days} days is wanted].",
    Code.KEY_PERIOD_LONG: "It is rotated too seldom[: every {period_days} days][, every {wanted_days} is wanted].",
    Code.KEY_OVERDUE: "Its rotation is overdue[: the material is {age_days} days old][, {wanted_days} are allowed].",
    Code.KEY_CANNOT_ROTATE: (
        "Its material is too old[: {age_days} days][, {wanted_days} are allowed]; its kind[ ({spec})] cannot be rotated"
        " by what the policy allows[: {note}]."
    ),
    Code.KEY_DELETED_IN_USE: "It will be deleted[ on {until}], and is still named[ by {resources} resources].",
    Code.KEY_DISABLED_IN_USE: "It is disabled, and is still named[ by {resources} resources].",
    Code.KEY_IS_DEFAULT: "A service's default key is used[ by {resources}] where the policy wants a key of one's own.",
    Code.KEY_ROTATION_UNTOLD: "Not measured: the cloud does not tell how it is rotated, which is not the same as off.",
    Code.KEY_STATE: "Not judged: it is not enabled[ ({state})].",
    Code.KEY_OF_SERVICE: "A service of the cloud made it and rotates it as it pleases. Shown, never touched.",
    Code.KEY_REPLICA: "A replica: it follows its primary[ in {region}].",
    Code.KEY_GOING: "It is waiting to be deleted[ on {until}].",
    Code.KEY_VENDOR_LIMIT: (
        "The vendor's limit: such keys cannot be rotated that often[, only every {shortest_days} days]"
        "[, {asked_days} are asked for][ ({note})]. A key of another kind can do it sooner."
    ),
    Code.KEY_NEVER_ROTATES: (
        "The vendor's limit: such keys are never rotated[ ({spec})][: {note}]. They are judged by their age."
    ),
    Code.KEY_SUPERSEDED: "Its successor[ {successor}] has its alias; it stays enabled for what it has encrypted.",
    Code.KEY_SUCCESSOR_MADE: (
        "Held: a successor was made, or may have been[: {successor}][, by action {action}], and is not among the keys;"
        " no second one is made."
    ),
    Code.KEY_ALIAS_BACK: "Held: a try with a canary failed[: {detail}]; it is not tried again without a new notice.",
    Code.KEY_SUCCESSOR_FOREIGN: (
        "Held: the key that says it is the successor[, {successor},] was not made by Costguard;"
        " no alias is moved to it."
    ),
    Code.TOO_YOUNG: (
        "Not measured: running for less than the window[: {running_hours} h][ of the {window_hours} h needed]."
    ),
    Code.NO_DEVICE_METRIC: "Not measured: no utilisation metric of its devices was found[ ({kind})].",
    Code.NO_DATA: "Not measured: the metric exists but has no samples in the window[ (source: {source})].",
    Code.DEVICE_MISSING: ("Not measured: some cards sent nothing[: {found} of {expected} reported]."),
    Code.SIGNAL_MISSING: (
        "Not measured: the rule asks for a signal that is not sent[: {signal}][, {found} of {expected} reported]."
    ),
    Code.LOW_COVERAGE: (
        "Not measured: too many samples are missing[: {coverage_percent} % arrived][ of {signal}][ of card {device}]"
        "[, {needed_percent} % are needed]."
    ),
    Code.STALE: ("Not measured: the newest sample is too old[: {age_minutes} min][, {signal}][ of card {device}]."),
    Code.IMPLAUSIBLE: "Not measured: a sample cannot be true[: {signal}][ of card {device}][ read {value}].",
    Code.CONTRADICTED: (
        "Not measured: contradicted. A GPU read 0 % throughout[, while {signal}][ of card {device}][ reached {maximum}]"
        "[ {unit}][, which is over {bound}]."
    ),
    Code.SIGNALS_UNREAD: "Not measured: its metrics could not be read[ ({detail|cause})].",
    Code.NOT_RUNNING: "Not running[: it is {state}].",
    Code.NO_RULE: "No rule of the policy applies to it.",
    Code.PREPAID: "Prepaid: paid for already[, until {until}], so stopping saves nothing. Shown, never touched.",
    Code.RESERVED: "Runs on capacity already committed[: {commitment}]; stopping saves nothing. Shown, never touched.",
    Code.BILLING_UNKNOWN: "How it is paid for is unknown, so it is treated as committed. Shown, never touched.",
    Code.AUTOSCALED: "Belongs to an autoscaling group[: {manager}], which would replace it. Shown, never touched.",
    Code.KUBERNETES: "Is a Kubernetes node[ of {manager}]. Shown, never touched.",
    Code.CLOUD_SERVICE: "Is run by a cloud service[: {manager}]. Shown, never touched.",
    Code.CONTROLLER: "Is run by a controller that made it[: {manager}]. Shown, never touched.",
    Code.COSTGUARD_ITSELF: "Is part of Costguard. Never touched.",
    Code.PROTECTED_TAG: (
        "Protected by a tag[: {tag}][ = {value}][ until {until}]."
        "[ The value of {unread} cannot be read as a date, or as a time with its offset, so it is kept.]"
    ),
    Code.KEPT_BY_TAG: "Kept by a tag[: {tag}][ until {until}].",
    Code.PROTECTED_BY_CLOUD: "Protected by a setting at the cloud[: {protection}].",
    Code.PROTECTED_ACCOUNT: "The policy protects the whole account[ {account}].",
    Code.EXCEPTION: "An agreed exception covers it[ until {until}][, approved by {approver}][: {reason}].",
    Code.OPENED: "A case was opened[ under rule {rule}].",
    Code.ADVANCED: "The case moved to its next step[: {verb}].",
    Code.WAITING: "Waiting[ until {due}][; next: {verb}][; it is {state}].",
    Code.CONFIRMING: "Asked for[: {verb}]; waiting to see it take effect[ ({volumes} disks to go)].",
    Code.CONFIRMED: "Seen done[: {verb}].",
    Code.SNOOZED: "Snoozed[ by {by}][ until {until}].",
    Code.AS_ASKED: "As the policy asks by now, so the case is closed.",
    Code.RECOVERED: "In use again, so the case is closed[: {signal}][ reached {maximum}][ {unit}].",
    Code.RESTARTED: "It was started again, so the case is closed.",
    Code.STOPPED_BY_OTHERS: "Somebody else stopped it, so the case is closed.",
    Code.STOP_UNCERTAIN: (
        "Stopped, outcome unknown, probably ours: the answer to Costguard's stop was lost. The case is closed, nothing"
        " further is done, and no saving is counted."
    ),
    Code.VANISHED: "It no longer exists, so the case is closed[ (account {account} was closed)].",
    Code.TERMINATED: "Terminated, and seen gone.",
    Code.LADDER_DONE: "Every step of the rule has been taken.",
    Code.BUDGET_LIFTED: "The budget no longer asks for it, so the case is closed[ (was {rule})].",
    Code.RULE_GONE: "No rule covers it any more, so the case is closed[ (was {rule})].",
    Code.MODE_CHANGED: "The rule's mode changed[ to {mode}], so the case starts again.",
    Code.RULE_LOOSENED: "The rule became gentler, so the current wait starts again.",
    Code.OWNER_CHANGED: "Its owner changed[, now {owner}], and was not told yet, so the current wait starts again.",
    Code.MODE_OBSERVE: "Only rehearsed: the rule is in observe mode and changes nothing.",
    Code.ACCOUNT_NEW: "Only rehearsed: the account[ {account}] is new, and rules only observe there[ until {until}].",
    Code.MODE_WARN: "Only rehearsed: the rule is in warn mode and only tells owners.",
    Code.OTHER_DEPLOYMENT: (
        "Held: another Costguard deployment works in this account[: {others}][, last seen {seen}][; {leading} leads]"
        "[. Both are called {same_name}]."
    ),
    Code.SHARD_INCOMPLETE: "Held: not everything in its account and region could be read[ ({shard})].",
    Code.ACCOUNT_UNREAD: "Held: its account could not be read[ ({shard})].",
    Code.UNMEASURED: "Held: it cannot be judged now[. {cause}].",
    Code.DETAIL_UNREAD: "Held: it could not be read closely just before[ ({detail|cause})].",
    Code.NOTICE_UNDELIVERED: (
        "Held: the notice to its owner has not been delivered[ ({channel})][ after {failures} tries][: {detail}]."
    ),
    Code.CAP_ACTIONS: "Held: the limit of actions in 24 hours is reached[: {used} of {allowed}].",
    Code.CAP_SHARE: ("Held: the limit on the share of the fleet in 24 hours is reached[: {used} of {allowed}]."),
    Code.CAP_MONEY: (
        "Held: the limit on hourly cost stopped in 24 hours would be passed[: {used} of {allowed}]"
        "[, this one adds {wanted}][ {currency}]."
    ),
    Code.CURRENCY_UNCAPPED: "Held: the rule sets no money limit in its currency[ ({currency})].",
    Code.PRICE_UNKNOWN: "Held: its price is unknown, so the money limit cannot be kept.",
    Code.LOCAL_DISK: "Held: stopping would destroy its local disks[ ({local_disk_gib} GiB)].",
    Code.APPROVAL_NEEDED: (
        "Held: waits for its owner's approval[, because {local_disk_gib} GiB of local disk would be lost]."
    ),
    Code.CANNOT_STOP: "Held: it cannot be stopped, only terminated[ ({cause})].",
    Code.NO_VOLUMES: "Held: no disk is listed for it, so nothing proves that its data is safe.",
    Code.SNAPSHOT_MISSING: "Held: not every disk has a finished snapshot made after the stop[ ({volumes} missing)].",
    Code.SNAPSHOT_FAILED: "Held: a snapshot failed[ ({volumes} disks)][ after {failures} tries][: {detail}].",
    Code.NOT_STOPPED: "Held: it is not seen stopped[ ({state})].",
    Code.NOT_TAKEN_EFFECT: "Held: the cloud accepted the call, but nothing changed[ after {failures} tries].",
    Code.OUTCOME_UNKNOWN: (
        "Held: the answer to a changing call[ ({verb})] was lost; it is looked up and never repeated."
    ),
    Code.REFUSED_BY_CLOUD: "Held: the cloud refused[ {failures} times][: {code}][: {detail}].",
    Code.PERMISSION_MISSING: (
        "Held: a permission is missing[, after {failures} tries][: {permission|operation|detail}]."
    ),
    Code.DENIED_BY_ORGANISATION: (
        "Held: a policy of the organisation denies it to everybody[, after {failures} tries][: {detail}]."
    ),
    Code.KILL_SWITCH: "Held: Costguard is paused[ by {by}][ since {since}][: {cause}].",
    Code.LEDGER_NOT_DURABLE: "Held: the ledger does not outlive this process, so nothing may be changed.",
    Code.POLICY_STALE: "Held: the policy cannot be loaded and the last good one is too old[ ({age_days} days)].",
    Code.RULE_CHANGED: "Held: the rule[ {rule}] changed since this was decided.",
    Code.CHANGED_SINCE_PLAN: "Held: it changed since the plan was made[: {what}].",
    Code.PLAN_DIFFERS: (
        "Refused: the plan file says something else than what follows now[: {what}]"
        "[, in the file {planned}][, now {now}]."
    ),
    Code.MERGED: "Covered by the same step of another rule[ ({rule})].",
    Code.DEADLINE: "Left for the next run: this one's time was used up.",
}

FIXES: Mapping[Code, str] = {
    Code.BILL_UNREAD: "Grant what is named under gaps; a bill that is not there yet comes by itself.",
    Code.BILL_STALE: "Wait until the cloud renews its bill, or raise `trust.bill_not_older_than`.",
    Code.BILL_ESTIMATED: "It passes as the bill catches up; `trust.estimated_at_most` says how much may be.",
    Code.BURN_INCOMPLETE: "Grant what is named under gaps, then run again.",
    Code.BURN_UNPRICED: "Add the types to `prices` in the policy.",
    Code.CURRENCY_WITHOUT_RATE: "Add a dated rate to `exchange_rates` in the policy.",
    Code.PARTLY_IDLE: "Use a smaller instance type, or give the idle cards work.",
    Code.TOO_YOUNG: "Nothing to do: it is judged once it has run long enough.",
    Code.NO_DEVICE_METRIC: (
        "Install the cloud's monitoring agent with GPU metrics, or an exporter scraped by Prometheus."
    ),
    Code.NO_DATA: "Check that the agent or exporter still runs on the machine.",
    Code.DEVICE_MISSING: "Configure the agent or exporter to report every card.",
    Code.SIGNAL_MISSING: "Send it from the agent, or take its bound out of the rule.",
    Code.LOW_COVERAGE: "Check the agent or exporter for restarts and lost samples.",
    Code.STALE: "Check that the agent or exporter still runs and may publish.",
    Code.IMPLAUSIBLE: "Check the agent's unit and version; percent must lie between 0 and 100.",
    Code.CONTRADICTED: (
        "Check that the agent or exporter sends true values; if the machine works without its GPU, name[ {signal}]"
        " in the rule."
    ),
    Code.SIGNALS_UNREAD: "Grant the reading permissions named under gaps, then run again.",
    Code.NO_RULE: "Add a rule to the policy if it should be guarded.",
    Code.AUTOSCALED: "Scale the group down instead.",
    Code.KUBERNETES: "Drain it and let the cluster's autoscaler remove it.",
    Code.CLOUD_SERVICE: "Stop the job or endpoint in that service instead.",
    Code.CONTROLLER: "Stop it with that controller, or set its own automatic stop.",
    Code.PREPAID: "Give it work, or do not renew it.",
    Code.RESERVED: "Give it work, or end the commitment.",
    Code.BILLING_UNKNOWN: "Look it up in the console; if it is on demand, report the missing case.",
    Code.SHARD_INCOMPLETE: "Grant what is named under gaps, then run again.",
    Code.ACCOUNT_UNREAD: "Check the role, its external id and its trust policy.",
    Code.DETAIL_UNREAD: "Grant the reading permissions named, then run again.",
    Code.NOTICE_UNDELIVERED: "Check the channel and the bot's access to it; the wait starts only with delivery.",
    Code.CAP_ACTIONS: (
        "It comes up again in the next run; raise `actions_per_day` (of terminations `terminations_per_day`) "
        "if that is too slow."
    ),
    Code.CAP_SHARE: "It comes up again in the next run; raise `fleet_share_per_day` if that is too slow.",
    Code.CAP_MONEY: "It comes up again in the next run; raise `hourly_cost_stopped_per_day` if that is too slow.",
    Code.CURRENCY_UNCAPPED: "Add an amount in this currency to `hourly_cost_stopped_per_day`.",
    Code.PRICE_UNKNOWN: "Add the type to `prices` in the policy.",
    Code.LOCAL_DISK: "Copy the data off and set `local_disk: ask` or `lose` if it may go.",
    Code.APPROVAL_NEEDED: "Run `costguard approve` with its id, or let it be.",
    Code.CANNOT_STOP: "Set `unstoppable: terminate` in the rule if it may be terminated.",
    Code.SNAPSHOT_FAILED: "Look at the disk in the console; nothing is terminated without its snapshot.",
    Code.STOP_UNCERTAIN: "If it is needed: `costguard why` names the action, `costguard undo` with it starts it again.",
    Code.OUTCOME_UNKNOWN: "Run `costguard recheck` with its id: it looks again and goes on from what is seen.",
    Code.NOT_TAKEN_EFFECT: "Look at the instance in the console.",
    Code.PERMISSION_MISSING: (
        "Whoever manages the role can grant it[: `costguard permissions {cloud} --role {role}` prints what it needs]."
    ),
    Code.DENIED_BY_ORGANISATION: "No grant helps: whoever manages the organisation's policies can change that.",
    Code.KILL_SWITCH: "Run `costguard resume` to go on.",
    Code.LEDGER_NOT_DURABLE: "Name a ledger file or database with `--ledger`.",
    Code.POLICY_STALE: "Repair the policy; `costguard policy check` says where it fails.",
    Code.CHANGED_SINCE_PLAN: "Plan again.",
    Code.PLAN_DIFFERS: "Plan again, and ask who wrote the file.",
    Code.KEY_CANNOT_ROTATE: (
        "Let its users change over to a new key of the same kind; keep this one enabled for all that it was used for."
    ),
    Code.KEY_SUCCESSOR_MADE: "Look for it among the keys, disabled and deleted ones too, and move the alias by hand.",
    Code.KEY_ALIAS_BACK: "See why the new key cannot be used (its policy, grants), then snooze: it begins anew after.",
    Code.KEY_SUCCESSOR_FOREIGN: "Move the alias by hand if that key is yours; else ask who wrote its tags.",
    Code.RULE_CHANGED: "Plan again.",
    Code.MODE_OBSERVE: "Set `mode: warn` or `enforce` when the plan looks right.",
    Code.ACCOUNT_NEW: "Look at what would be done; `new_accounts` says how long it is only looked at.",
    Code.OTHER_DEPLOYMENT: (
        "End one of them, or give each a COSTGUARD_NAME of its own and name the one that acts in both policies: "
        "`leading_deployment: NAME`."
    ),
    Code.MODE_WARN: "Set `mode: enforce` when the notices look right.",
}

_NOT_READ = "Costguard reads no metric of these devices yet, so it never judges them; ask their owner."
DEVICE_FIXES: Mapping[Kind, str] = {
    Kind.NVIDIA_GPU: (
        "Install the cloud's own agent (on AWS the CloudWatch agent with an `nvidia_gpu` section, elsewhere its"
        " monitoring agent and the GPU driver), or NVIDIA's DCGM exporter scraped by a Prometheus that the policy"
        " names under `signals`."
    ),
    Kind.AMD_GPU: _NOT_READ,
    Kind.NEURON: _NOT_READ,
    Kind.GAUDI: _NOT_READ,
    Kind.QUALCOMM: _NOT_READ,
    Kind.FPGA: _NOT_READ,
    Kind.MEDIA: _NOT_READ,
    Kind.OTHER: _NOT_READ,
}
