"""Everything outside the engine that one run touches, in one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from costguard.domain.reasons import Reason
from costguard.domain.refs import Deployment
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.scan import CloudReaders
from costguard.engine.run.workers import ThreadWorkers
from costguard.policy.model.policy import Policy
from costguard.ports import (
    ActionExecutor,
    Clock,
    CloudAuditLog,
    FreezeControl,
    KeepTagger,
    KeyRotator,
    KeySource,
    KeySuccessor,
    NetworkRemediator,
    NetworkSource,
    Notifier,
    SpendSource,
    Target,
    Workers,
)


@dataclass(frozen=True, slots=True)
class RunContext:
    """Policy, clouds, memory, people and time.

    `executors` has an entry only for clouds where a rule enforces. `policy_now` reads the policy again,
    `host_paused` is the host's own kill switch. `policy_problem` says why the policy may not be acted on
    (too old a copy), None when it may. `doubts` are by name of a rule why its violations may not be believed.
    `spends` reads the bills of each cloud, for the guard that needs them; `freezers` opens what can attach the policy
    of a launch freeze, and nothing else, where the policy names one. `keys` reads the keys of each cloud and `networks`
    its networks; `rotators` and `network_remediators` open what can change them, and nothing else, where a rule
    enforces; `successors` what makes a key in another's place, where such a rule allows that. `trails` tell who
    launched what; a cloud without one is not asked. `deployment` is which one this is; None looks for no other.
    `keep_taggers` open what can write a Keep on a machine, and nothing else, where the policy asks for that.
    """

    guard: str
    policy: Policy
    targets: tuple[Target, ...]
    readings: Mapping[str, CloudReaders]
    executors: Mapping[str, ActionExecutor]
    memory: Memory
    notifier: Notifier
    clock: Clock
    policy_now: Callable[[], Policy]
    host_paused: bool = False
    policy_problem: Reason | None = None
    language: str = "en"
    workers: Workers = field(default_factory=ThreadWorkers)
    doubts: Mapping[str, Reason] = field(default_factory=dict)
    spends: Mapping[str, SpendSource] = field(default_factory=dict)
    freezers: Mapping[str, Callable[[], FreezeControl]] = field(default_factory=dict)
    keys: Mapping[str, KeySource] = field(default_factory=dict)
    rotators: Mapping[str, Callable[[], KeyRotator]] = field(default_factory=dict)
    successors: Mapping[str, Callable[[], KeySuccessor]] = field(default_factory=dict)
    networks: Mapping[str, NetworkSource] = field(default_factory=dict)
    network_remediators: Mapping[str, Callable[[], NetworkRemediator]] = field(default_factory=dict)
    trails: Mapping[str, CloudAuditLog] = field(default_factory=dict)
    deployment: Deployment | None = None
    keep_taggers: Mapping[str, Callable[[], KeepTagger]] = field(default_factory=dict)
