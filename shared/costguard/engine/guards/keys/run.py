"""The runner of `kms_rotation`: every key is looked at; those not rotated as asked are told of, or remediated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from costguard.cases import Case
from costguard.cases.remediation import remediation_rungs, remediation_terms
from costguard.domain.actions import Action, Outcome, Receipt
from costguard.domain.errors import ProviderError, RefusedError, StalePlanError, UnavailableError
from costguard.domain.findings import Verdict
from costguard.domain.keys import EncryptionKey, KeyInventory, KeyState
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import SUCCESSION, Remediation, RemediationKind
from costguard.engine.guards.keys.look import KeyLook, judged_key, judged_keys, look_at_keys
from costguard.engine.guards.remediations import (
    cut_of,
    limit_of,
    log_violations,
    plan_remediations,
    remediation_figures,
    remediation_messages,
)
from costguard.engine.guards.runner import GuardRunner, Port
from costguard.engine.ledger.intents import Intent
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.run_context import (
    PrecheckResult,
    RunContext,
    in_its_turn,
    out_of_turn,
    people_heard,
)
from costguard.engine.run.scan import (
    Progress,
)
from costguard.engine.run.snapshots import with_remediation_shadows
from costguard.guards import KMS_ROTATION
from costguard.guards.keys.judge import DECISION, MOVED_BACK, NOBODY, Lineage, before_of, lineages
from costguard.planning import Plan, RuleLimit
from costguard.planning.remediation import Judged
from costguard.policy.model.policy import Policy
from costguard.ports import KeyRotator, KeySource, KeySuccessor


@dataclass(frozen=True, slots=True)
class FollowedKey:
    """A key as it was just read, and who follows it."""

    key: EncryptionKey
    line: Lineage = NOBODY


@dataclass(frozen=True, slots=True)
class AliasBack:
    """What an undo moves back: the alias, the key that has it now, and the one that had it."""

    alias: str
    holder: EncryptionKey
    heir: EncryptionKey


def followed(inventory: KeyInventory, ref: ResourceRef) -> FollowedKey | None:
    """The key and who follows it; None where it is gone.

    Raises:
        UnavailableError: the list is not whole, so that a key that follows may be missing.
    """
    gap = next((gap for gap in inventory.gaps if gap.what == "inventory"), None)
    if gap is not None:
        raise UnavailableError(gap.detail, operation="keys", code=gap.kind.value)
    key = next((each for each in inventory.keys if each.ref == ref), None)
    return None if key is None else FollowedKey(key, lineages(inventory.keys).get(ref, NOBODY))


def not_again(memory: Memory, case: Case) -> Reason | None:
    """A key gets one successor, ever: where one was made, or may have been, not seeing it proves nothing."""
    made = next((each for each in _sent(memory, case) if each.outcome is not Outcome.REFUSED), None)
    if made is None:
        return None
    native_id = made.receipt.native_id if made.receipt is not None else ""
    facts = {"action": made.action.action_id, **({"successor": native_id} if native_id else {})}
    return Reason(ReasonCode.KEY_SUCCESSOR_MADE, facts)


def not_moved_back(memory: Memory, case: Case) -> Reason | None:
    """What uses an alias feels each try: after one that was taken back, the next needs a notice of its own."""
    tries = memory.intents.for_case(case.case_id)
    failed = [each for each in tries if each.outcome is Outcome.REFUSED and MOVED_BACK in each.detail]
    last = next((each for each in failed if each.claimed_at >= case.since), None)
    if last is None:
        return None
    return Reason(ReasonCode.KEY_ALIAS_BACK, {"action": last.action.action_id, "detail": last.detail})


def not_ours(memory: Memory, read: FollowedKey) -> Reason | None:
    """An alias is moved only to a key that Costguard made for it: a tag can be written by others."""
    heir = read.line.heir
    if heir is None:
        return Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "setting"})
    intent = memory.intents.get(heir.tags.get(DECISION, "")) if heir.tags.get(DECISION) else None
    mend = intent.action.mend if intent is not None else None
    made = mend is not None and mend.kind is RemediationKind.CREATE_SUCCESSOR and mend.subject == read.key.ref
    if intent is None or not made or intent.outcome is Outcome.REFUSED:
        return Reason(ReasonCode.KEY_SUCCESSOR_FOREIGN, {"successor": heir.ref.native_id})
    return None


def alias_back(action: Action, source: KeySource) -> AliasBack:
    """What would move an alias back, after reading both keys.

    Raises:
        StalePlanError: the keys are not as the move left them.
        ProviderError: one of them could not be read.
    """
    said = {} if action.mend is None else action.mend.parameters
    alias, old = said.get("alias", ""), source.look(action.subject)
    new = source.look(action.subject.sibling("key", said.get("successor", "")))
    if old is None or new is None:
        message = f"one of the two keys is gone, so alias {alias} is not moved back"
        raise StalePlanError(message)
    if alias not in {each.removeprefix("alias/") for each in new.aliases}:
        message = f"alias {alias} is not with {new.ref.native_id}, so there is nothing to move back"
        raise StalePlanError(message)
    for key in (old, new):
        if key.state is not KeyState.ENABLED:
            message = f"{key.ref} is {key.state.value}, so alias {alias} is not moved back"
            raise StalePlanError(message)
    return AliasBack(alias, holder=new, heir=old)


def _sent(memory: Memory, case: Case) -> Iterator[Intent]:
    """Every order for a successor of this key, whichever case it came from."""
    ids = {case.case_id, *(closed.case_id for closed in memory.cases.closed(f"{case.key}/"))}
    for case_id in sorted(ids):
        for intent in memory.intents.for_case(case_id):
            if intent.action.mend is not None and intent.action.mend.kind is RemediationKind.CREATE_SUCCESSOR:
                yield intent


class KeyHandler:
    """`ActionHandler` for keys: turns rotation on, sets its period, rotates, makes a successor and moves an alias."""

    shards_apart = False  # a few a day: nothing is won, and `_seen` is for one thread

    def __init__(
        self,
        sources: Mapping[str, KeySource],
        rotators: Mapping[str, Callable[[], KeyRotator]],
        memory: Memory,
        successors: Mapping[str, Callable[[], KeySuccessor]] | None = None,
    ) -> None:
        self._sources = sources
        self._rotators = rotators
        self._memory = memory
        self._successors = successors or {}
        self._seen: dict[ResourceRef, FollowedKey] = {}

    def last_look(
        self, case: Case, action: Action, policy: Policy, now: datetime, memory: Memory
    ) -> Reason | PrecheckResult:
        """Why not, after reading the key again; the decision is bound to the version that it was made for."""
        heard = people_heard(memory, case, now)
        if isinstance(heard, Reason):
            return heard
        try:
            read = self._read(case.subject, action.mend)
        except ProviderError as err:
            return Reason(ReasonCode.DETAIL_UNREAD, {"cause": str(err)})
        if read is None:
            return Reason(ReasonCode.VANISHED)
        key = read.key
        if key.version != case.run_epoch:
            return Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "setting"})
        judged = next((one for one in judged_key(key, policy, now, read.line) if one.finding.check == case.check), None)
        if judged is None or judged.rule is None or judged.rule.digest != action.rule_digest:
            return Reason(ReasonCode.RULE_CHANGED, {"rule": action.rule})
        if judged.finding.verdict is not Verdict.VIOLATION:
            return judged.finding.reason
        if judged.mend != action.mend or remediation_terms(judged.rule, judged.mend) != case.terms:
            return Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "setting"})
        if judged.bar is not None:
            return judged.bar
        rungs = remediation_rungs(judged.rule, judged.mend)
        early = out_of_turn(memory, case, action.verb, judged.rule.mode, rungs, policy, now)
        forbidden = early or self._forbidden(case, read, judged.mend)
        if forbidden is not None:
            return forbidden
        self._seen[key.ref] = read
        return PrecheckResult(heard, frozenset({key.ref}), before_of(key))

    def limit(self, action: Action, policy: Policy, seen: int) -> RuleLimit | None:
        """That of the rule for keys, where it still says the same."""
        return limit_of(policy.kms_rotation, action, seen)

    def call(self, action: Action) -> Receipt:
        """One call, to the key as it was just read.

        Raises:
            RefusedError: it is no mend of a key that was looked at; nothing was sent.
        """
        read, mend = self._seen.pop(action.subject, None), action.mend
        if read is None or mend is None or mend.subject != read.key.ref:
            raise RefusedError("this key was not looked at", operation="key")
        key = read.key
        if mend.kind in SUCCESSION:
            return self._succeed(action, mend, read)
        rotator = self._rotators[action.subject.cloud]()
        if mend.kind is RemediationKind.SET_ROTATION:
            return rotator.set_period(key, int(mend.parameters["days"]))
        if mend.kind is RemediationKind.ROTATE_KEY:
            return rotator.rotate(key)
        message = f"{mend.kind.value} is no mend of a key"
        raise RefusedError(message, operation="key")

    def _read(self, ref: ResourceRef, mend: Remediation | None) -> FollowedKey | None:
        """The key as it is now; where another is to take its place, with all that say that they follow it.

        Raises:
            ProviderError: not read, or not in full.
        """
        source = self._sources[ref.cloud]
        if mend is not None and mend.kind in SUCCESSION:
            return followed(source.read(ref.shard), ref)
        key = source.look(ref)
        return None if key is None else FollowedKey(key)

    def _forbidden(self, case: Case, read: FollowedKey, mend: Remediation | None) -> Reason | None:
        if mend is None or mend.kind not in SUCCESSION:
            return None
        if case.subject.cloud not in self._successors:
            return Reason(ReasonCode.NOT_TO_BE_MENDED, {"detail": "successor"})
        if mend.kind is RemediationKind.CREATE_SUCCESSOR:
            return not_again(self._memory, case)
        return not_moved_back(self._memory, case) or not_ours(self._memory, read)

    def _succeed(self, action: Action, mend: Remediation, read: FollowedKey) -> Receipt:
        successor = self._successors[action.subject.cloud]()
        if mend.kind is RemediationKind.CREATE_SUCCESSOR:
            return successor.create(read.key, action.action_id)
        heir = read.line.heir
        if heir is None or heir.ref.native_id != mend.parameters["successor"]:
            raise RefusedError("its successor was not looked at", operation="key")
        return successor.move_alias(mend.parameters["alias"], read.key, heir)


def see_keys(
    world: RunContext, *, deadline: datetime | None, progress: Progress, remember: bool, seen: Any = None
) -> KeyLook:
    """Every key of every target."""

    def looked(until: datetime | None, begin_at: str | None) -> KeyLook:
        return look_at_keys(
            world.readings,
            world.keys,
            world.targets,
            world.policy,
            world.clock,
            deadline=until,
            progress=progress,
            workers=world.workers,
            begin_at=begin_at,
        )

    return seen or in_its_turn(world, deadline, looked, cut_of, remember=remember)


def _plan_of(world: RunContext, run_id: str, looked: KeyLook, *, deadline: datetime | None, remember: bool) -> Plan:
    plan = plan_remediations(world, run_id, looked, world.policy.kms_rotation, deadline=deadline, remember=remember)
    in_shadow = (
        (rule, _judged(looked, replace(world.policy, kms_rotation=(rule,))))
        for rule in world.policy.shadows.kms_rotation
    )
    return with_remediation_shadows(plan, looked.judged, in_shadow)


def _judged(looked: KeyLook, policy: Policy) -> list[Judged]:
    return [each for _, judged in judged_keys(looked.keys, policy, looked.now) for each in judged]


def _planned(world: RunContext, looked: KeyLook) -> None:
    del world
    log_violations("key", (line.finding for line in looked.report.lines))


RUNNER = GuardRunner(
    name=KMS_ROTATION,
    see=see_keys,
    plan_of=_plan_of,
    planned=_planned,
    handler=lambda world: KeyHandler(world.keys, world.rotators, world.memory, world.successors),
    messages=lambda world: remediation_messages(world.policy.kms_rotation),
    figures=partial(remediation_figures, seen="keys_seen"),
    ports=frozenset({Port.KEYS, Port.ROTATORS, Port.SUCCESSORS}),
    counts="key",
)
