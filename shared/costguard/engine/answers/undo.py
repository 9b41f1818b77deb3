"""`costguard undo`: the inverse of one action, made once, with an intent and its audit entry before the call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from costguard.cases import Case, same_run
from costguard.cases.resolve import STOP_SHOWS_WITHIN
from costguard.domain.actions import Action, Outcome, Receipt, Verb
from costguard.domain.errors import (
    AccessDeniedError,
    InvalidInputError,
    OutcomeUnknownError,
    ProviderError,
    StalePlanError,
)
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.domain.resources import Instance, InstanceState
from costguard.engine.answers import answers
from costguard.engine.guards.keys.run import AliasBack, alias_back
from costguard.engine.ledger.intents import Intent
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.act import pause_reason
from costguard.guards import OF_MACHINES
from costguard.guards.keys import judge as kms_succession
from costguard.guards.network import judge as network_audit
from costguard.ports import ActionExecutor, InventorySource, KeySource, KeySuccessor, NetworkRemediator, VersionCheck

LEFT_ALONE = timedelta(days=30)
"""How long a subject is left alone after people took something back: else the next run would do it again."""

_DONE = frozenset({Outcome.ACCEPTED, Outcome.TOOK_EFFECT})
_LOST = frozenset({None, Outcome.UNKNOWN})
_MOST_TRIES = 20


@dataclass(frozen=True, slots=True)
class Undoing:
    """What would take an action back. `is_uncertain`: the answer to that action was lost, and a person says it is ours.

    Nothing then proves whose stop it was. Where something proves that it was somebody else's, `undo` refuses.
    """

    intent: Intent
    action: Action
    is_uncertain: bool = False


@dataclass(frozen=True, slots=True)
class Undone:
    """What came of it. `left_alone_until`: no guard touches the subject before."""

    action: Action
    outcome: Outcome
    left_alone_until: datetime | None = None
    reason: Reason | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Undoers:
    """What can take things back, by cloud; each is opened only when it is called."""

    inventories: Mapping[str, InventorySource]
    executors: Mapping[str, Callable[[], ActionExecutor]]
    remediators: Mapping[str, Callable[[], NetworkRemediator]]
    keys: Mapping[str, KeySource] = field(default_factory=dict)
    successors: Mapping[str, Callable[[], KeySuccessor]] = field(default_factory=dict)


def undoing_of(memory: Memory, action_id: str) -> Undoing:
    """What would take this action back.

    Raises:
        InvalidInputError: there is no such action, it changed nothing, or there is no way back from it.
    """
    intent = memory.intents.get(action_id)
    if intent is None:
        message = f"there is no action {action_id}; its notice names it, and so does `costguard why RESOURCE`"
        raise InvalidInputError(message)
    lost = intent.action.verb is Verb.STOP and intent.outcome in _LOST
    if intent.outcome not in _DONE and not lost:
        said = "nobody knows yet what it did" if intent.outcome in _LOST else "it changed nothing"
        message = f"action {action_id} is not taken back: {said}"
        raise InvalidInputError(message)
    back = _inverse(intent)
    if back is None:
        what = intent.action.mend.kind.value if intent.action.mend is not None else intent.action.verb.value
        message = f"there is no way back from {what}"
        raise InvalidInputError(message)
    return Undoing(intent, replace(back, action_id=_free_id(memory, intent)), is_uncertain=lost)


def undo(memory: Memory, undoing: Undoing, by: Undoers, who: str, why: str, now: datetime, *, paused: bool) -> Undone:
    """Take it back now: the intent first, one call, its outcome, and from then on the subject is left alone.

    Raises:
        StalePlanError: Costguard is paused, the subject is not as the action left it, or another took it back just now.
        ProviderError: the subject could not be read; nothing was changed.
    """
    unturned = _unpaused(memory, paused=paused)
    action, cloud = undoing.action, undoing.action.subject.cloud
    if action.verb is Verb.START:
        _check_stopped(memory, undoing, by.inventories[cloud])
    move = _move_back(action, by)
    run_id = f"undo-{action.action_id}"
    if not memory.intents.claim(action, run_id, now, unchanged=(unturned,)):
        what = undoing.intent.action.action_id
        message = f"action {what} was taken back just now by another, or Costguard was paused meanwhile"
        raise StalePlanError(message)
    receipt: Receipt | None = None
    outcome, code, detail = Outcome.ACCEPTED, None, ""
    try:
        receipt = _call(action, by, move)
    except OutcomeUnknownError as err:
        outcome, code, detail = Outcome.UNKNOWN, ReasonCode.OUTCOME_UNKNOWN, str(err)
    except AccessDeniedError as err:
        outcome, code, detail = Outcome.REFUSED, ReasonCode.PERMISSION_MISSING, str(err)
    except ProviderError as err:
        outcome, code, detail = Outcome.REFUSED, ReasonCode.REFUSED_BY_CLOUD, str(err)
    memory.intents.settle(action, outcome, now, receipt, detail, run_id)
    reason = None if code is None else Reason(code, {"detail": detail})
    if outcome is Outcome.REFUSED:
        return Undone(action, outcome, reason=reason, detail=detail)
    left = answers.snooze(memory, action.subject, LEFT_ALONE, who, why, now)
    return Undone(action, outcome, left.until, reason, detail)


def _unpaused(memory: Memory, *, paused: bool) -> VersionCheck:
    """The record of the switch, which must stay as it is until the intent is written.

    Raises:
        StalePlanError: Costguard is paused, or nobody can tell.
    """
    barred = pause_reason(memory, host_paused=paused)
    if barred is None:
        switch, unturned = memory.switch.seen()
        if not switch.paused:
            return unturned
    message = "nothing is changed while Costguard is paused; `costguard resume` first"
    raise StalePlanError(message)


def _inverse(intent: Intent) -> Action | None:
    done = intent.action
    plain = replace(done, saving=None, before={}, parameters={"undoes": done.action_id})
    if done.verb is Verb.STOP:
        return replace(plain, verb=Verb.START)
    if done.verb is not Verb.MEND or done.mend is None:
        return None
    back = _mended_back(done.mend, intent)
    return None if back is None else replace(plain, mend=back)


def _mended_back(mend: Remediation, intent: Intent) -> Remediation | None:
    if mend.subject.kind == "key":
        return kms_succession.inverse(mend)
    made = intent.receipt.native_id if intent.receipt is not None else ""
    return network_audit.inverse(mend, intent.action.before, made)


def _free_id(memory: Memory, intent: Intent) -> str:
    """An id no try has used; one that was refused may be followed by another, any other is the last.

    Raises:
        InvalidInputError: it was taken back already, or may have been.
    """
    done = intent.action.action_id
    for number in range(1, _MOST_TRIES):
        action_id = f"{done}-undo-{number}"
        earlier = memory.intents.get(action_id)
        if earlier is None:
            return action_id
        if earlier.outcome is not Outcome.REFUSED:
            said = "nobody knows what came of that" if earlier.outcome not in _DONE else "once is enough"
            message = f"action {done} was taken back at {earlier.claimed_at.isoformat(timespec='minutes')}: {said}"
            raise InvalidInputError(message)
    message = f"taking back action {done} was refused {_MOST_TRIES - 1} times"
    raise InvalidInputError(message)


def _check_stopped(memory: Memory, undoing: Undoing, inventory: InventorySource) -> None:
    ref = undoing.action.subject
    detail = inventory.details([ref]).get(ref)
    if detail is None or detail.instance.state is not InstanceState.STOPPED:
        state = "gone" if detail is None else detail.instance.state.value
        message = f"{ref} is {state}, so there is nothing to start"
        raise StalePlanError(message)
    case = _case_of(memory, undoing.intent, ref)
    if undoing.is_uncertain:
        _check_not_others(undoing.intent, case, detail.instance)
    elif case is not None and not same_run(case, detail.instance):
        message = f"{ref} has run since Costguard stopped it, and somebody else stopped it again"
        raise StalePlanError(message)


def _check_not_others(intent: Intent, case: Case | None, instance: Instance) -> None:
    """Refuse what is known to be somebody else's stop; what remains unknown, a person has decided.

    Raises:
        StalePlanError: it ran since, it stopped at another time, or another request stopped it than a run has seen.
    """
    at = instance.stopped_at
    if at is not None and abs(at - intent.claimed_at) > STOP_SHOWS_WITHIN:
        said = f"it stopped at {at.isoformat(timespec='minutes')}, and Costguard's call was at"
        message = f"{instance.ref}: {said} {intent.claimed_at.isoformat(timespec='minutes')}: somebody else stopped it"
        raise StalePlanError(message)
    if case is None:
        message = f"{instance.ref}: its case is not in the ledger any more, so nobody can tell whose stop this is"
        raise StalePlanError(message)
    unseen = not instance.run_epoch and instance.stopped_by and not case.stop_request
    if not unseen and not same_run(case, instance):
        message = f"{instance.ref} has run since Costguard's call, and somebody else stopped it again"
        raise StalePlanError(message)


def _case_of(memory: Memory, intent: Intent, ref: ResourceRef) -> Case | None:
    """The case that asked for it, also where another one of the same machine came after it."""
    for latest in (case for guard in OF_MACHINES for case in memory.cases.all(guard) if case.subject == ref):
        for case in (latest, *memory.cases.closed(f"{latest.key}/")):
            if case.case_id == intent.action.case_id:
                return case
    return None


def _move_back(action: Action, by: Undoers) -> AliasBack | None:
    """For an alias: both keys, as they are now."""
    if action.mend is None or action.mend.kind is not RemediationKind.RESTORE_ALIAS:
        return None
    cloud = action.subject.cloud
    if cloud not in by.keys or cloud not in by.successors:
        message = f"nothing here can move an alias in {cloud}"
        raise StalePlanError(message)
    return alias_back(action, by.keys[cloud])


def _call(action: Action, by: Undoers, move: AliasBack | None) -> Receipt:
    cloud = action.subject.cloud
    if move is not None:
        return by.successors[cloud]().move_alias(move.alias, move.holder, move.heir)
    if action.mend is not None:
        return by.remediators[cloud]().change(action.mend, {})
    return by.executors[cloud]().execute(action)
