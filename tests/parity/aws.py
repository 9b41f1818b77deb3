"""What AWS says to each row of the parity table."""

from __future__ import annotations

from datetime import timedelta

from tests.parity.rows import Row, Rows

from costguard.providers.aws.billing.source import DELAY as BILL_DELAY
from costguard.providers.aws.compute.metrics import AGENT_DELAY, EC2_DELAY
from costguard.providers.aws.compute.source import COPIED_AT_ONCE
from costguard.providers.kit.compute.audit_log import REMEMBERED

_MINUTE = 60
_HOUR = timedelta(hours=1)

ROWS: Rows = {
    Row.CARD_METRIC: "per card, the maximum; from the CloudWatch agent's `nvidia_gpu` section",
    Row.SAMPLES: f"as the agent sends, usually every minute; at most {AGENT_DELAY.seconds // _MINUTE} minutes late"
    f" (CPU and network {EC2_DELAY.seconds // _MINUTE})",
    Row.BESIDE: "of every machine, from the hypervisor; disk of Nitro machines and of local disks",
    Row.DENIED: "an error: a gap that names the permission",
    Row.CLOSED: "no gap, as of one not opted in, where a service control policy denies further reads as well and the"
    " account answers elsewhere; a case there waits",
    Row.RUN: "`LaunchTime`, to the second",
    Row.STOP: "the instance; disks and kept addresses stay billed",
    Row.ADDRESS: "released by a stop; an Elastic IP stays, and is billed",
    Row.LOCAL_DISK: "lost by a stop: held unless policy says `lose`, or `ask` and the owner agreed",
    # EC2 API StartInstances; user guide "Modify the Capacity Reservation settings of your instance"
    Row.PLACE: "**none is kept**: the hardware is given back, and a start needs room for the type in the zone of its"
    " volumes (`InsufficientInstanceCapacity`), unless a capacity reservation of the customer's has some; another zone"
    " is not possible",
    Row.COPIES: "several copies of a disk at once; tagged in the same call",
    Row.COPIED_RUNNING: f"one call copies them all as of one moment (`CreateSnapshots`, up to {COPIED_AT_ONCE} disks);"
    " more are copied one by one, and the notice says so",
    Row.TERMINATE: "final; batches fail by zone, so one instance a call",
    Row.TERMINATION_PROTECTION: "`DisableApiTermination`, told of one instance at a time, so it is read once a step is "
    "due; Spot Instances have none",
    Row.STOP_PROTECTION: "`DisableApiStop`, read as the other is; it bars `stop`, and `terminate` as well",
    Row.PREPAID: "a Reserved Instance is a discount, not a machine; capacity reservations, blocks and dedicated hosts"
    " are shown, never touched",
    Row.SPOT: "one-time requests cannot stop: held unless policy says `unstoppable: terminate`",
    Row.MANAGED: "Auto Scaling groups, EKS, ECS, EMR, Batch, SageMaker, and what AWS marks as operated by a service",
    Row.KEEP_TAG: "CreateTags; the role is held to that one key by IAM (`aws:TagKeys`)",
    Row.TRAIL: f"CloudTrail, by the instance's id; {REMEMBERED.days} days; 2 questions a second in a region",
    Row.GROUP: "none: EC2 does not tell of an instance which group it is in; select by tags",
    Row.PRICES: "price list by type and region; spot from its history",
    Row.MONEY: "USD; CNY in the partition `aws-cn`",
    Row.BILL: f"Cost Explorer, by days of UTC, complete after {BILL_DELAY // _HOUR} h; $0.01 a request; tags only once"
    " they are activated for cost allocation; in GovCloud the paired standard account's",
    Row.CONSOLE_BUDGETS: "with amount, thresholds and filters; what they count is read as well",
    Row.FREEZE: "a service control policy or an IAM group's; the role is held to one policy by IAM; attaching twice is"
    " refused for an organisation, and nothing for a group",
    Row.KEYS: "every 90 to 2560 days, first a whole period after it is turned on; on demand at most 25 times in a key's"
    " life",
    Row.RULES: "a union, nothing is denied; access lists of subnets beside it, in the order of their numbers",
    Row.INTERNET: "a public address and a route to an internet gateway",
    Row.FLOW_LOGS: "of a VPC, a subnet or an interface",
    Row.METADATA: "told of every machine; tokens can be required",
    Row.IDLE_ADDRESS: "billed, also where it is bound to a stopped machine; the price is the price list's, in GovCloud"
    " unknown",
}
