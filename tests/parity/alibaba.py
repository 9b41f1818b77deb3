"""What Alibaba Cloud says to each row of the parity table."""

from __future__ import annotations

from datetime import timedelta

from tests.parity.rows import Row, Rows

from costguard.providers.alibaba.billing.prices import CURRENCIES
from costguard.providers.alibaba.billing.source import DELAY as BILL_DELAY
from costguard.providers.alibaba.compute.metric_answers import MOST_INSTANCES, MOST_POINTS
from costguard.providers.alibaba.compute.metrics import DELAY, NAMESPACE
from costguard.providers.kit.compute.audit_log import REMEMBERED

_MINUTE = 60
_HOUR = timedelta(hours=1)

ROWS: Rows = {
    Row.CARD_METRIC: f"per card, the maximum; from the CloudMonitor agent and the GPU driver (`{NAMESPACE}`)",
    Row.SAMPLES: f"every minute; at most {DELAY.seconds // _MINUTE} minutes late; {MOST_INSTANCES} instances and"
    f" {MOST_POINTS:,} points a call",
    Row.BESIDE: "of every machine, from the host",
    Row.DENIED: "**an empty list**: an empty answer is asked for again as a dry run, and is a gap when that is denied",
    Row.CLOSED: "a gap: no page at hand tells what ECS answers where a control policy denies it",
    Row.RUN: "`StartTime`, to the minute: two starts within one minute cannot be told apart",
    Row.STOP: "the instance, in economical mode; **ignored without an error** for types with local disks and some more,"
    " which is read back, told to people, and counted as no saving",
    Row.ADDRESS: "released by an economical stop; an EIP stays, and is billed",
    Row.LOCAL_DISK: "lost by an economical stop: held unless policy says `lose`, or `ask` and the owner agreed",
    # ECS user guide "Economical mode"; ECS API StartInstance, "Precautions"
    Row.PLACE: "**none is kept**: economical mode (StopCharging) gives vCPUs, memory and GPUs back, and a start asks"
    " for new ones in its zone, which may be sold out (`OperationDenied.NoStock`); another zone is not possible",
    Row.COPIES: "one copy of a disk at a time; a client token makes a repeated request the same copy",
    # ECS CreateSnapshotGroup, and user guide "Create a snapshot-consistent group"
    Row.COPIED_RUNNING: "**one by one**: what spans them is not consistent, and the notice says so."
    " `CreateSnapshotGroup` is not used: it takes ESSD disks of one zone without multi-attach alone, 16 or 128 by"
    " region, and no page tells whether its copies carry the tags by which a copy whose answer was lost is found",
    Row.TERMINATE: "final; refused for prepaid and protected instances",
    Row.TERMINATION_PROTECTION: "`DeletionProtection` of what is paid by the hour; the listing tells it",
    Row.STOP_PROTECTION: "there is none: a tag or an exception spares a machine from `stop`",
    Row.PREPAID: "shown with owner, cost and the end of the term; never touched",
    Row.SPOT: "stops and starts as any other",
    Row.MANAGED: "ESS, ACK, EMR, E-HPC, PAI, and whatever tags of `acs:` are not known to be people's",
    Row.KEEP_TAG: "TagResources; RAM holds the role to requests that carry that key, and **not to carrying no other**",
    Row.TRAIL: f"ActionTrail, by the instance's id; {REMEMBERED.days} days; 2 questions a second",
    Row.GROUP: "`ResourceGroupId`",
    Row.PRICES: "`DescribePrice` by type, region and disk",
    Row.MONEY: f"{CURRENCIES['alibaba']}; {CURRENCIES['alibaba-intl']} on the international site",
    Row.BILL: f"BSS, by days of UTC+8, complete after {BILL_DELAY // _HOUR} h; tax by the month; regions in words;"
    " terms paid for in advance are spread over their days here, as the bill does not",
    Row.CONSOLE_BUDGETS: "name, amount and period; they tell neither scope nor thresholds nor currency",
    Row.FREEZE: "a control policy or a RAM group's; the role is held to one policy by RAM for a group only; ECS"
    " documents that it tells RAM the type, and **others measured that it does not**: try it",
    Row.KEYS: "every 7 to 365 days in an instance, else every 365 and paid for; at once where the last rotation is"
    " longer ago; each takes a version of the instance's quota",
    Row.RULES: "by priority over all groups of a card, of equals a denial decides",
    Row.INTERNET: "a public address is enough, unless the VPC has an active IPv4 gateway",
    Row.FLOW_LOGS: "of a VPC, a switch or a card, into a log store",
    Row.METADATA: "told of every machine; tokens can be required",
    Row.IDLE_ADDRESS: "billed by the hour (BSS quotes it); of one bound to a stopped machine only bandwidth that is"
    " paid for, and nothing where traffic is",
}
