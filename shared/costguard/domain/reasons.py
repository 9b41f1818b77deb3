"""Why: a code and its facts. The words, English and Chinese, are made in `report`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

FactValue = str | int | float


class ReasonCode(str, Enum):
    """Every reason Costguard can give; `report.words` has a sentence for each, in each language."""

    # verdicts on utilisation
    IDLE = "idle"
    BUSY = "busy"
    PARTLY_IDLE = "partly_idle"
    # verdicts on budgets, and on machines that a spent budget is to stop
    BUDGET_WITHIN = "budget_within"
    BUDGET_REACHED = "budget_reached"
    BUDGET_IDLE = "budget_idle"
    BUDGET_CLASS = "budget_class"
    # verdicts on keys
    KEY_ROTATED = "key_rotated"
    KEY_ROTATION_OFF = "key_rotation_off"
    KEY_PERIOD_LONG = "key_period_long"
    KEY_OVERDUE = "key_overdue"
    KEY_CANNOT_ROTATE = "key_cannot_rotate"
    KEY_DELETED_IN_USE = "key_deleted_in_use"
    KEY_DISABLED_IN_USE = "key_disabled_in_use"
    KEY_IS_DEFAULT = "key_is_default"
    KEY_ROTATION_UNTOLD = "key_rotation_untold"
    KEY_STATE = "key_state"
    KEY_OF_SERVICE = "key_of_service"
    KEY_REPLICA = "key_replica"
    KEY_GOING = "key_going"
    KEY_VENDOR_LIMIT = "key_vendor_limit"
    # verdicts on networks
    NET_PUBLIC_IP = "net_public_ip"
    NET_OPEN_PORT = "net_open_port"
    NET_WIDE_RULE = "net_wide_rule"
    NET_UNATTACHED = "net_unattached"
    NET_IDLE_NAT = "net_idle_nat"
    NET_DEFAULT_VPC = "net_default_vpc"
    NET_FLOW_LOGS_OFF = "net_flow_logs_off"
    NET_SUBNET_EXPOSED = "net_subnet_exposed"
    NET_IMDS_V1 = "net_imds_v1"
    NET_WIDE_PEERING = "net_wide_peering"
    NET_REGION = "net_region"
    NET_UNUSED_GROUP = "net_unused_group"
    NET_AS_ASKED = "net_as_asked"
    NET_KEPT = "net_kept"
    NET_UNTOLD = "net_untold"
    # unmeasured
    TOO_YOUNG = "too_young"
    NO_DEVICE_METRIC = "no_device_metric"
    NO_DATA = "no_data"
    DEVICE_MISSING = "device_missing"
    SIGNAL_MISSING = "signal_missing"
    LOW_COVERAGE = "low_coverage"
    STALE = "stale"
    IMPLAUSIBLE = "implausible"
    SIGNALS_UNREAD = "signals_unread"
    # what a budget cannot be sure of: it alerts all the same, and stops nothing
    BILL_UNREAD = "bill_unread"
    BILL_STALE = "bill_stale"
    BILL_ESTIMATED = "bill_estimated"
    BURN_INCOMPLETE = "burn_incomplete"
    BURN_UNPRICED = "burn_unpriced"
    CURRENCY_WITHOUT_RATE = "currency_without_rate"
    # not judged
    NOT_RUNNING = "not_running"
    NO_RULE = "no_rule"
    # exempt: shown, never touched
    PREPAID = "prepaid"
    RESERVED = "reserved"
    BILLING_UNKNOWN = "billing_unknown"
    AUTOSCALED = "autoscaled"
    KUBERNETES = "kubernetes"
    CLOUD_SERVICE = "cloud_service"
    COSTGUARD_ITSELF = "costguard_itself"
    PROTECTED_TAG = "protected_tag"
    PROTECTED_BY_CLOUD = "protected_by_cloud"
    PROTECTED_ACCOUNT = "protected_account"
    EXCEPTION = "exception"
    # how a case moves
    OPENED = "opened"
    ADVANCED = "advanced"
    WAITING = "waiting"
    CONFIRMING = "confirming"
    CONFIRMED = "confirmed"
    SNOOZED = "snoozed"
    RECOVERED = "recovered"
    RESTARTED = "restarted"
    STOPPED_BY_OTHERS = "stopped_by_others"
    VANISHED = "vanished"
    TERMINATED = "terminated"
    LADDER_DONE = "ladder_done"
    RULE_GONE = "rule_gone"
    BUDGET_LIFTED = "budget_lifted"
    MODE_CHANGED = "mode_changed"
    RULE_LOOSENED = "rule_loosened"
    # rails: why something due is held or only rehearsed
    MODE_OBSERVE = "mode_observe"
    MODE_WARN = "mode_warn"
    SHARD_INCOMPLETE = "shard_incomplete"
    ACCOUNT_UNREAD = "account_unread"
    UNMEASURED = "unmeasured"
    DETAIL_UNREAD = "detail_unread"
    NOTICE_UNDELIVERED = "notice_undelivered"
    CAP_ACTIONS = "cap_actions"
    CAP_SHARE = "cap_share"
    CAP_MONEY = "cap_money"
    CURRENCY_UNCAPPED = "currency_uncapped"
    PRICE_UNKNOWN = "price_unknown"
    LOCAL_DISK = "local_disk"
    APPROVAL_NEEDED = "approval_needed"
    CANNOT_STOP = "cannot_stop"
    NO_VOLUMES = "no_volumes"
    SNAPSHOT_MISSING = "snapshot_missing"
    SNAPSHOT_FAILED = "snapshot_failed"
    NOT_STOPPED = "not_stopped"
    NOT_TAKEN_EFFECT = "not_taken_effect"
    OUTCOME_UNKNOWN = "outcome_unknown"
    REFUSED_BY_CLOUD = "refused_by_cloud"
    PERMISSION_MISSING = "permission_missing"
    KILL_SWITCH = "kill_switch"
    LEDGER_NOT_DURABLE = "ledger_not_durable"
    POLICY_STALE = "policy_stale"
    RULE_CHANGED = "rule_changed"
    CHANGED_SINCE_PLAN = "changed_since_plan"
    MERGED = "merged"
    LAST_ADMIN_PATH = "last_admin_path"
    NOT_TO_BE_MENDED = "not_to_be_mended"
    MENDED = "mended"
    DEADLINE = "deadline"


@dataclass(frozen=True, slots=True)
class Reason:
    """A code and the facts a sentence about it needs; facts carry their unit in the key (`bound_percent`)."""

    code: ReasonCode
    facts: Mapping[str, FactValue] = field(default_factory=dict)
