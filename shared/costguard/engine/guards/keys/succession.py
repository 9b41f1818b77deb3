"""What the ledger and a whole look at a region say about a key and the one that follows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from costguard.cases import Case
from costguard.domain.actions import Action, Outcome
from costguard.domain.errors import StalePlanError, UnavailableError
from costguard.domain.keys import EncryptionKey, KeyInventory, KeyState
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import RemediationKind
from costguard.engine.ledger.intents import Intent
from costguard.engine.ledger.memory import Memory
from costguard.guards.keys.succession import DECISION, MOVED_BACK, NOBODY, Lineage, lineages
from costguard.ports import KeySource


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
