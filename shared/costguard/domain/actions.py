"""One change to one resource, from intention to what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from costguard.domain.money import HourlyRate, Money
from costguard.domain.reasons import Reason
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import Remediation


class Verb(str, Enum):
    """What can be done. `WARN` reaches people, the others reach clouds; `START` only undoes a stop.

    `MEND` changes one setting of a key or network, and which stands in the action's `mend`.
    """

    WARN = "warn"
    SNAPSHOT = "snapshot"
    STOP = "stop"
    TERMINATE = "terminate"
    START = "start"
    MEND = "mend"


DESTRUCTIVE = frozenset({Verb.STOP, Verb.TERMINATE})
"""Verbs that interrupt or end somebody's work; they count against the caps."""

CAPPED = DESTRUCTIVE | {Verb.MEND}
"""Verbs that count against the caps: a mend ends nobody's work, but too many at once end a way in."""


@dataclass(frozen=True, slots=True)
class Saving:
    """What an action is worth, an hour: what stops billing, less what goes on being billed, by line.

    `kept` lists what stays billed (`volume`, `snapshot`, `public_address`) with its hourly price, None when unknown.
    `risks` are reason words such as `scarce_type`, `local_disk_lost`, `public_ip_lost`. `price` is what the resource
    costs and how that is known, also where stopping it ends no billing. `local_disk_gib` is what a stop empties, None
    of unknown size; 0: nothing, or nobody wrote it down.
    """

    stops_billing: Money | None
    kept: tuple[tuple[str, Money | None], ...] = ()
    risks: tuple[str, ...] = ()
    price: HourlyRate | None = None
    local_disk_gib: float | None = 0.0


@dataclass(frozen=True, slots=True)
class Action:
    """One change to one resource, decided.

    `resource` is what the call changes (a volume for a snapshot), `subject` the instance of the case. `copies` are the
    volumes that one call copies as a set, as they are at one moment: `resource` is the instance then.
    `decision_id` binds approvals, intents and notices to case, rung, subject, run epoch and rule digest;
    `action_id` is unique per decision and resource. `mend` is the change of a `MEND`, and `before` what it changes, as
    it was read just before the call: what an undo puts back.
    """

    action_id: str
    decision_id: str
    verb: Verb
    subject: ResourceRef
    resource: ResourceRef
    run_epoch: str
    case_id: str
    rung: int
    rule: str
    rule_digest: str
    saving: Saving | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    mend: Remediation | None = None
    before: Mapping[str, str] = field(default_factory=dict)
    copies: tuple[ResourceRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Receipt:
    """The provider accepted the call. Accepted is not done.

    `native_id` is what it created, if anything; of a set of copies one id a volume, in the order of `Action.copies`,
    with commas between.
    """

    request_id: str
    native_id: str = ""


class Outcome(str, Enum):
    """What came of an intent, as far as known."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    TOOK_EFFECT = "took_effect"
    HAD_NO_EFFECT = "had_no_effect"


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What act did about one due action. `reason` says why it did not go through; `detail` is the cloud's own text."""

    action: Action
    outcome: Outcome | None
    at: datetime
    reason: Reason | None = None
    detail: str = ""
    receipt: Receipt | None = None


class FreezeVia(str, Enum):
    """Where the denying policy is attached: to an account or unit of the organisation, or to a group of people.

    `ORGANISATION`: AWS service control policy, Alibaba Cloud control policy, Tencent Cloud organisation policy.
    `GROUP`: an IAM, RAM or CAM group.
    """

    ORGANISATION = "organisation"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class LaunchFreeze:
    """One freeze the policy may ask for, by name.

    `policy` is the vendor's id of the denying policy (an ARN for an IAM group), which Costguard never writes;
    `target` the account, unit or group it is attached to; `account` the account whose credentials do it, empty for the
    caller's own. `role` is assumed there for nothing else than this; empty: the role that the account is read with.
    """

    name: str
    cloud: str
    via: FreezeVia
    policy: str
    target: str
    account: str = ""
    role: str = ""
