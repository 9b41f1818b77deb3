"""One cloud as it is connected, and what its connection is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from costguard.domain.signals import SignalName
from costguard.engine.run.scan import CloudReaders
from costguard.policy.model.policy import Policy
from costguard.ports import (
    ActionExecutor,
    CallLog,
    CloudAuditLog,
    FreezeControl,
    KeepTagger,
    KeyRotator,
    KeySource,
    KeySuccessor,
    NetworkRemediator,
    NetworkSource,
    Preflight,
    SignalSource,
    SpendSource,
    Target,
)
from costguard.settings import Settings


@dataclass(frozen=True, slots=True)
class CloudPorts:
    """One cloud, connected. `executor` opens a second, acting session; it is never called in observe.

    `preflight` opens a session of its own as well, which can change nothing, with the log of what it sent.
    `spend` reads the bill, `keys` the encryption keys, `network` the networks, `trail` the audit trail, through the
    reading session. `rotator` and `remediator` open sessions of their own, which can rotate keys and change network
    settings and do nothing else; `keep_tagger` one that can write a Keep on a machine.
    `successor` opens one that can make a key like another and move an alias to it, None where the cloud has no aliases
    that can be moved. `freezer` opens another, which can attach and detach policies (with True; with False only list
    them).
    """

    reading: CloudReaders
    spend: Callable[[], SpendSource]
    keys: Callable[[], KeySource]
    network: Callable[[], NetworkSource]
    calls: CallLog
    executor: Callable[[], ActionExecutor]
    preflight: Callable[[], tuple[Preflight, CallLog]]
    freezer: Callable[[bool], tuple[FreezeControl, CallLog]]
    rotator: Callable[[], KeyRotator]
    remediator: Callable[[], NetworkRemediator]
    trail: Callable[[], CloudAuditLog]
    keep_tagger: Callable[[], KeepTagger]
    successor: Callable[[], KeySuccessor] | None = None


@dataclass(frozen=True, slots=True)
class Wiring:
    """What every cloud is connected with.

    `signals_named` are judged; `signals_shown` are read beside them, decide nothing and may be missing.
    `seconds_left` tells the time until the deadline, None where there is none. `close_later` is called with what closes
    a session. `combined` adds the servers of the policy to a cloud's own signals; `way_into` names the target whose
    role leads into an account. `mark` is what the sessions of a deployment that may act are called; empty: of no one.
    """

    cloud: str
    settings: Settings
    policy: Policy
    now: Callable[[], datetime]
    seconds_left: Callable[[], float] | None
    signals_named: frozenset[SignalName]
    signals_shown: frozenset[SignalName]
    combined: Callable[[SignalSource], SignalSource]
    way_into: Callable[[str], Target | None]
    close_later: Callable[[Callable[[], None]], object]
    mark: str = ""
