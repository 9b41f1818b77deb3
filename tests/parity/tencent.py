"""What Tencent Cloud says to each row of the parity table."""

from __future__ import annotations

from datetime import timedelta

from tests.parity.rows import Row, Rows

from costguard.providers.kit.compute.audit_log import REMEMBERED
from costguard.providers.tencent.billing.source import DELAY as BILL_DELAY
from costguard.providers.tencent.compute.metric_answers import FINEST
from costguard.providers.tencent.compute.metric_calls import LARGER, LESSER, NAMESPACE
from costguard.providers.tencent.compute.metrics import AGENT_DELAY, METRICS

_MINUTE = 60
_HOUR = timedelta(hours=1)

ROWS: Rows = {
    Row.CARD_METRIC: f"`{METRICS[0].name}` in `{NAMESPACE}`, from the agent and the GPU driver: per card where Monitor"
    " declares a dimension for cards and answers by it (tried on no account yet), else **the mean over all cards**: the"
    " bound is divided by their number, so one that works is seen; which ones are idle is not",
    Row.SAMPLES: f"every {FINEST} s; at most {AGENT_DELAY.seconds // _MINUTE} minutes late;"
    f" {LARGER.instances} instances and {LARGER.points:,} points a call, or {LESSER.instances} and {LESSER.points:,}"
    " where Monitor takes no more",
    Row.BESIDE: "network of every machine, from the host; CPU from the agent in it; **no disk**: its traffic is kept by"
    " disk, and not by machine",
    Row.DENIED: "an error: a gap that names the permission",
    Row.CLOSED: "a gap: no page at hand tells what CVM answers where a policy of the organisation denies it",
    Row.RUN: "no time of a start: the id of the latest operation's request; our own stop is known by its request id,"
    " and a stop whose answer was lost counts as somebody else's",
    Row.STOP: "the instance, with `STOP_CHARGING`; where that is not to be had it is read back, told to people, and"
    " counted as no saving",
    Row.ADDRESS: "released by a stop without charges, and null at once; an EIP stays, and is billed",
    Row.LOCAL_DISK: "lost by a stop without charges: held unless policy says `lose`, or `ask` and the owner agreed",
    # CVM user guide "Shutting Down Pay-as-You-Go Instances to Avoid Charges"; CVM API StartInstances
    Row.PLACE: "**none is kept**: with `STOP_CHARGING` CPU and memory are not retained, and a start needs room in its"
    " zone (`ResourcesSoldOut`, `ResourceInsufficient`); another zone is not possible",
    Row.COPIES: "one copy of a disk at a time; a failed one never says so and stays pending",
    # CBS user guide, "Creating Snapshot Group"; CreateSnapshotGroup has no client token
    Row.COPIED_RUNNING: "**one by one**: what spans them is not consistent, and the notice says so."
    " `CreateSnapshotGroup` is not used: it is a limited beta that an account has to apply for",
    Row.TERMINATE: "may only put the instance into the recycle bin; **a second call destroys it**, so there is"
    " never one",
    Row.TERMINATION_PROTECTION: "`DisableApiTermination`; the listing tells it",
    Row.STOP_PROTECTION: "there is none: a tag or an exception spares a machine from `stop`",
    Row.PREPAID: "shown with owner, cost and the end of the term; never touched",
    Row.SPOT: "stops and starts as any other",
    Row.MANAGED: "scaling groups and TKE clusters as their own APIs list them; EMR and Batch by name",
    Row.KEEP_TAG: "TagResources of the tag product, whose failures stand in an answer that succeeds; **no permission"
    " holds the role to one key**",
    Row.TRAIL: "CloudAudit, every launch of the account around that time, known by the ids in its answer;"
    f" {REMEMBERED.days} days; 20 questions a second; of a role mostly its name alone",
    Row.GROUP: "`ProjectId`, a number",
    Row.PRICES: "`DescribeZoneInstanceConfigInfos`, the later and cheaper tiers of a pay-as-you-go hour included; of"
    " snapshots none",
    Row.MONEY: "CNY; USD on the international site",
    Row.BILL: f"Billing, by days of UTC+8, complete after {BILL_DELAY // _HOUR} h at worst; terms paid for in advance"
    " are spread over their days here, as the bill does not; only cost allocation tags are told",
    Row.CONSOLE_BUDGETS: "with amount, thresholds and scope",
    Row.FREEZE: "a service control policy or a CAM group's; **no permission holds the role to one policy**; the"
    " vendor's own policy looks like any other, and the last one cannot be taken off",
    Row.KEYS: "every 7 to 365 days; on demand once in 24 hours, and only while automatic rotation is on",
    Row.RULES: "the first match from the top decides; a rule is a place in its list, right only with the list's"
    " version: a list that moved refuses the change",
    Row.INTERNET: "a public address is enough",
    Row.FLOW_LOGS: "of interfaces only; a VPC is refused",
    Row.METADATA: "no setting is documented: not told, never required",
    Row.IDLE_ADDRESS: "billed by the hour (a dated table of the international site; of the China site no page at hand"
    " tells it); of one bound to a stopped machine only bandwidth by the hour, which VPC quotes",
}
