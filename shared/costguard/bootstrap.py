"""The composition root: settings and policy in, everything that one run touches out; and the only clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from datetime import datetime, timedelta, timezone
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from costguard.domain.errors import InvalidInputError, ProviderError, UnavailableError
from costguard.policy.model.policy import Policy
from costguard.ports import Clock, Notifier, RecordStore, Target

if TYPE_CHECKING:
    from costguard.domain.reasons import Reason
    from costguard.domain.refs import ResourceRef
    from costguard.engine.answers.undo import Undoers
    from costguard.engine.ledger.memory import Memory
    from costguard.engine.policy.in_force import PolicyInForce
    from costguard.engine.run.run_context import RunContext
    from costguard.settings import Settings


class SystemClock:
    """The clock on the wall."""

    def now(self) -> datetime:
        """The present moment, aware, UTC."""
        return datetime.now(timezone.utc)

    def sleep(self, seconds: float) -> None:
        """Wait for real."""
        time.sleep(seconds)


class SandboxClock(SystemClock):
    """The time of a sandbox that is followed: what it said when it was asked, running on since."""

    def __init__(self, told: datetime) -> None:
        self._told, self._asked_at = told.astimezone(timezone.utc), time.monotonic()

    def now(self) -> datetime:
        """The sandbox's present moment, as long as nobody moves it."""
        return self._told + timedelta(seconds=time.monotonic() - self._asked_at)


def settings_and_clock(settings: Settings) -> tuple[Settings, Clock]:
    """Both a sandbox's where the settings name one. Otherwise these settings and the wall's clock, and nobody is asked.

    Raises:
        CostguardError: what answers is no sandbox, or nothing does.
    """
    if not settings.sandbox:
        return settings, SystemClock()
    from costguard.connections.followed import follow

    found = follow(settings)
    return found.settings, SandboxClock(found.now)


def own_clock(settings: Settings) -> Clock:
    """The clock on the wall, for whoever was given none; InvalidInputError in a sandbox, whose time is another."""
    if settings.sandbox:
        raise InvalidInputError("COSTGUARD_SANDBOX is followed by the `costguard` program alone; use it, or unset this")
    return SystemClock()


def targets_of(policy: Policy, settings: Settings) -> tuple[Target, ...]:
    """The accounts the policy names; without any, the one the credentials belong to."""
    if not policy.accounts:
        access = settings.access(settings.cloud)
        return (Target(settings.cloud, role=access.role, external_id=access.external_id, common_role=True),)
    return tuple(
        Target(
            cloud=account.cloud,
            account=account.id,
            regions=account.regions,
            role=account.role or settings.access(account.cloud).role,
            external_id=account.external_id or settings.access(account.cloud).external_id,
            owner=account.owner,
            organisation=account.organisation,
            common_role=not account.role,
        )
        for account in policy.accounts
    )


def read_policy(settings: Settings, clock: Clock | None = None) -> Policy:
    """The policy named by the settings; without one the shipped default, which observes.

    Raises:
        InvalidInputError: nothing there, or not a valid policy.
        ProviderError: a published one could not be read.
    """
    if not settings.policy:
        from costguard.policy.model.policy import default_policy

        return default_policy()
    from costguard.connections.policies import is_published

    if is_published(settings.policy):
        file = settings.ledger_file
        if file is not None and not file.exists():  # reading makes no ledger
            message = f"{file}: no ledger is there, so nothing is published; name the one that runs use"
            raise InvalidInputError(message)
        memory = open_memory(settings)
        with closing(memory.store):
            return published_policy(settings, memory, clock or own_clock(settings))
    from costguard.connections.policies import policy_source
    from costguard.policy.documents.loader import load_policy

    return load_policy(policy_source(settings, settings.policy).read())


def published_policy(settings: Settings, memory: Memory, clock: Clock) -> Policy:
    """The published policy in force; nothing is remembered and nothing stands in for one that is broken.

    Raises:
        InvalidInputError: nothing is published, or a bundle was altered.
        ProviderError: a bundle could not be read.
    """
    from costguard.connections.policies import open_bundles
    from costguard.engine.policy.published import standing

    return standing(open_bundles(settings, settings.policy, clock), memory, clock.now()).policy


def open_memory(settings: Settings) -> Memory:
    """The ledger named by the settings, with its repositories.

    Raises:
        InvalidInputError: not an address of a ledger.
        LedgerError: it cannot be opened.
    """
    from costguard.engine.ledger.memory import Memory

    return Memory.over(open_store(settings.ledger.reveal()))


def open_store(url: str) -> RecordStore:
    """The ledger at `url`: SQLite, PostgreSQL, DynamoDB or this process's memory.

    Raises:
        InvalidInputError: not an address of a ledger.
        LedgerError: it cannot be opened.
    """
    if url.startswith("dynamodb:"):
        from costguard.providers.aws.core.store import open_dynamodb

        return open_dynamodb(url)
    from costguard.adapters.ledgers.open import open_ledger

    return open_ledger(url)


def notifier_of(settings: Settings) -> Notifier:
    """Every channel that is set up; a notice for any other is refused, and without one nothing is ever stopped."""
    from costguard.connections.people import notifier_over

    return notifier_over(settings, SystemClock().now)


@contextmanager
def open_run_context(
    settings: Settings,
    guard: str,
    *,
    policy: Policy | None = None,
    policy_now: Callable[[], Policy] | None = None,
    problem: Reason | None = None,
    memory: Memory | None = None,
    clock: Clock | None = None,
    deadline: datetime | None = None,
    may_act: bool = True,
    of_a_run: bool = False,
) -> Iterator[RunContext]:
    """Everything one run of `guard` touches, connected; closed again on leaving.

    `may_act` False builds no executor whatever the policy says: plans and previews cannot change a thing. Sessions have
    the mark of this deployment where they may act, and in all phases `of_a_run`: others find it by that.
    `problem` says why `policy` may not be acted on. A `memory` given stays open.

    Raises:
        InvalidInputError: there is no such guard.
    """
    from costguard.connections import Connections
    from costguard.engine.guards.registry import runner_of
    from costguard.engine.guards.runner import READS, Port
    from costguard.engine.run.run_context import RunContext

    ports = runner_of(guard).ports if may_act else runner_of(guard).ports & READS
    clock = clock or own_clock(settings)
    policy = policy or read_policy(settings)
    targets = targets_of(policy, settings)
    with Connections(settings, policy, clock, deadline) as connections:
        if memory is None:
            memory = open_memory(settings)
            connections.callback(memory.store.close)
        deployment = connections.named(memory.identity, may_act=may_act or of_a_run)
        connections.open(targets)
        opened: dict[str, Any] = {port.value: getattr(connections, port.value) for port in Port if port in ports}
        if Port.FREEZERS in ports:
            opened[Port.FREEZERS.value] = partial(connections.freezers, memory.freezes.clouds())
        yield RunContext(
            guard=guard,
            policy=policy,
            targets=targets,
            readings=connections.readings,
            memory=memory,
            notifier=notifier_of(settings),
            clock=clock,
            policy_now=policy_now or (lambda: read_policy(settings)),
            policy_problem=problem,
            host_paused=settings.paused,
            language=settings.language,
            deployment=deployment,
            **{"executors": {}, **{name: connect() for name, connect in opened.items()}},
        )


@contextmanager
def open_undoers(settings: Settings, subject: ResourceRef, clock: Clock) -> Iterator[Undoers]:
    """What can take something back in the subject's cloud, whatever the policy's mode: a person asked for it.

    Raises:
        InvalidInputError: no target of the policy is in that cloud.
    """
    from costguard.connections import Connections
    from costguard.engine.answers.undo import Undoers

    policy = read_policy(settings)
    targets = [target for target in targets_of(policy, settings) if target.cloud == subject.cloud]
    if not targets:
        message = f"{subject.cloud} is not among the clouds that this policy guards"
        raise InvalidInputError(message)
    with Connections(settings, policy, clock) as connections:
        connections.open(targets)
        for target in targets:  # the way into every account is learned by the way
            with suppress(ProviderError):
                connections.readings[target.cloud].inventory.discover(target)
        yield Undoers(
            {cloud: reading.inventory for cloud, reading in connections.readings.items()},
            {cloud: cache(ports.executor) for cloud, ports in connections.clouds.items()},
            {cloud: cache(ports.remediator) for cloud, ports in connections.clouds.items()},
            connections.keys(),
            {
                cloud: cache(ports.successor)
                for cloud, ports in connections.clouds.items()
                if ports.successor is not None
            },
        )


def run_function(
    guard: str, run_id: str, deadline: datetime | None, settings: Settings, clock: Clock | None = None
) -> dict[str, Any]:
    """One scheduled run, as a function host asks for it; returns its figures.

    A policy that is broken now is replaced by the last good one for at most seven days; people are told.

    Raises:
        InvalidInputError: there is no such guard, and nothing was read or written.
        UnavailableError: no instance, or no key, was seen while something could not be read; all the rest was done.
    """
    from costguard.engine.guards.registry import runner_of
    from costguard.engine.notify.delivery import DIGEST
    from costguard.engine.policy.in_force import named, policy_figures, tell_of_policy

    runner = None if guard == DIGEST else runner_of(guard)
    clock = clock or own_clock(settings)
    memory = open_memory(settings)
    with closing(memory.store):
        found = _policy_in_force(settings, memory, clock)
        memory = named(memory, found)
        if runner is None:
            from costguard.connections.people import tell_digest

            tell_of_policy(memory, found, settings.language, clock.now())
            told = tell_digest(settings, found.policy, memory, run_id, clock)
            if settings.audit_days is not None:
                from costguard.engine.ledger.audit.forget import prune

                told["audit_pruned"] = prune(memory.store, timedelta(settings.audit_days), clock.now()).entries
            return {**told, **policy_figures(found)}
        from costguard.engine.run.run import run_guard

        with _under(found, settings, guard, memory, clock, deadline) as world:
            tell_of_policy(memory, found, settings.language, clock.now())
            done = run_guard(world, run_id, deadline=deadline)
            _beside_a_run(settings, memory, found.policy, clock, deadline)
            plan = done.report.plan
            blind = runner.blind(plan) if plan is not None else ""
            if blind:
                raise UnavailableError(blind)  # the host counts it as an error, and alarms
            figures = runner.answer(done) if runner.answer is not None else runner.figures(done.report)
            return {**figures, **policy_figures(found)}


@contextmanager
def open_phase(
    settings: Settings, guard: str, deadline: datetime | None, clock: Clock, *, first: bool, may_act: bool
) -> Iterator[RunContext]:
    """What one phase of a run touches: as a whole run, under the policy in force; `first` tells people of that.

    Without `may_act` no executor is built, whatever the policy says.
    """
    from costguard.engine.policy.in_force import named, tell_of_policy

    memory = open_memory(settings)
    with closing(memory.store):
        found = _policy_in_force(settings, memory, clock)
        memory = named(memory, found)
        if first:
            tell_of_policy(memory, found, settings.language, clock.now())
            _beside_a_run(settings, memory, found.policy, clock, deadline)
        with _under(found, settings, guard, memory, clock, deadline, may_act=may_act) as world:
            yield world


def _beside_a_run(settings: Settings, memory: Memory, policy: Policy, clock: Clock, deadline: datetime | None) -> None:
    """What every run does besides: a digest that is overdue, notices of long ago, changes that people asked for."""
    from costguard.engine.notify.delivery import tell_of_overdue_digest
    from costguard.engine.notify.retention import empty_old_notices

    tell_of_overdue_digest(memory, clock.now())
    empty_old_notices(memory.store, timedelta(settings.notice_days), clock.now())
    if settings.forge_repository:  # which of the functions has it says its function.yaml
        from costguard.connections.changes import open_changes_asked

        open_changes_asked(settings, memory, policy, clock, deadline)


def _under(
    found: PolicyInForce,
    settings: Settings,
    guard: str,
    memory: Memory,
    clock: Clock,
    deadline: datetime | None,
    *,
    may_act: bool = True,
) -> AbstractContextManager[RunContext]:
    return open_run_context(
        settings,
        guard,
        policy=found.policy,
        policy_now=lambda: _policy_in_force(settings, memory, clock).policy,
        problem=found.problem,
        memory=memory,
        clock=clock,
        deadline=deadline,
        may_act=may_act,
        of_a_run=True,
    )


def _policy_in_force(settings: Settings, memory: Memory, clock: Clock) -> PolicyInForce:
    """The policy that a function decides by; an error says which setting named it: nothing else can."""
    try:
        return _named_by_settings(settings, memory, clock)
    except InvalidInputError as err:
        message = f"COSTGUARD_POLICY: {err}"
        raise InvalidInputError(message) from err
    except ProviderError as err:
        message = f"COSTGUARD_POLICY: {err}"
        raise type(err)(message, operation=err.operation, code=err.code) from err


def _named_by_settings(settings: Settings, memory: Memory, clock: Clock) -> PolicyInForce:
    from costguard.connections.policies import is_published, open_bundles, policy_source
    from costguard.engine.policy.in_force import PolicyInForce, policy_in_force, published_in_force

    if not settings.policy:
        return PolicyInForce(read_policy(settings))
    if is_published(settings.policy):
        return published_in_force(open_bundles(settings, settings.policy, clock), memory, clock.now())
    return policy_in_force(policy_source(settings, settings.policy), memory, clock.now())
