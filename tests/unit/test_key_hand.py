"""The last look before a key is changed: whatever moved since the decision keeps it as it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.builders import NOW, policy
from tests.unit.test_kms_rotation import key

from costguard.adapters.ledgers.open import open_ledger
from costguard.cases import Case, claimed, noticed
from costguard.cases.remediation import RemediationSeen, advance_remediation
from costguard.domain.actions import Action, Receipt, Verb
from costguard.domain.errors import RefusedError, ThrottledError
from costguard.domain.keys import EncryptionKey, KeyInventory, KeyState, RotationSetting
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.remediations import RemediationKind
from costguard.engine.guards.keys.look import judged_key
from costguard.engine.guards.keys.run import KeyHandler
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.notices import OutboxNotice
from costguard.engine.run.run_context import PrecheckResult
from costguard.guards.keys.rules import KeyRule, KeySelector
from costguard.guards.rules.common import Mode
from costguard.policy.model.terms import with_digest
from costguard.ports import Delivery

RULE = with_digest(KeyRule("ninety-days", Mode.ENFORCE, KeySelector()))
POLICY = replace(policy(), kms_rotation=(RULE,))
TOLD_AT = NOW - timedelta(days=2)
OFF = key(rotation=RotationSetting(automatic=False))


class Kms:
    """One key, as it is at the last look, and what was sent to it."""

    def __init__(self, now: EncryptionKey | Exception | None) -> None:
        self.now = now
        self.sent: list[str] = []

    def look(self, ref: ResourceRef) -> EncryptionKey | None:
        del ref
        if isinstance(self.now, Exception):
            raise self.now
        return self.now

    def read(self, shard: Shard) -> KeyInventory:
        return KeyInventory(shard, ())

    def set_period(self, key: EncryptionKey, days: int) -> Receipt:
        self.sent.append(f"{key.ref.native_id} every {days}")
        return Receipt("request")

    def rotate(self, key: EncryptionKey) -> Receipt:
        self.sent.append(f"{key.ref.native_id} now")
        return Receipt("request")


@pytest.fixture
def memory() -> Iterator[Memory]:
    opened = Memory.over(open_ledger("memory:"))
    yield opened
    opened.store.close()


def decided() -> tuple[Case, Action]:
    """The case of a key whose rotation is off and whose owner was told two days ago, and the mend that it came to."""
    judged = next(iter(judged_key(OFF, POLICY, NOW)))
    seen = RemediationSeen(NOW, RULE, judged.finding, judged.mend, shard_read=True, shard_complete=True)
    case = advance_remediation(None, seen).case
    assert case is not None
    case = noticed(claimed(case, TOLD_AT), TOLD_AT)
    action = Action("a", "a", Verb.MEND, OFF.ref, OFF.ref, "1", case.case_id, 1, RULE.name, RULE.digest)
    return case, replace(action, mend=judged.mend)


def told(memory: Memory, case: Case) -> None:
    """The notice of the case in the outbox, with its proven delivery."""
    told_with = case.climbed[0].notice
    notice = OutboxNotice(told_with, told_with, case.key, "slack:#keys", "title", "text", TOLD_AT)
    memory.outbox.enqueue(notice)
    memory.outbox.delivered([notice], Delivery("ts", proves_delivery=True), TOLD_AT)


def looked(memory: Memory, kms: Kms) -> Reason | PrecheckResult:
    case, action = decided()
    told(memory, case)
    return KeyHandler({"aws": kms}, {"aws": lambda: kms}, memory).last_look(case, action, POLICY, NOW, memory)


def test_a_key_that_is_as_it_was_is_cleared_with_how_it_is_rotated_now(memory: Memory) -> None:
    cleared = looked(memory, Kms(OFF))
    assert isinstance(cleared, PrecheckResult)
    assert cleared.before == {"automatic": "false", "version": "1"}


@pytest.mark.parametrize(
    ("now", "code"),
    [
        (None, ReasonCode.VANISHED),
        (ThrottledError("slow down"), ReasonCode.DETAIL_UNREAD),
        (replace(OFF, version="2"), ReasonCode.CHANGED_SINCE_PLAN),
        (key(), ReasonCode.KEY_ROTATED),
        (replace(OFF, state=KeyState.DISABLED), ReasonCode.KEY_STATE),
        (replace(OFF, tags={"do-not-delete": "yes"}), ReasonCode.PROTECTED_TAG),
        (key(rotation=RotationSetting(automatic=None)), ReasonCode.KEY_ROTATION_UNTOLD),
    ],
)
def test_what_moved_since_the_decision_keeps_it_as_it_is(memory: Memory, now: object, code: ReasonCode) -> None:
    assert now is None or isinstance(now, (EncryptionKey, Exception))
    found = looked(memory, Kms(now))
    assert isinstance(found, Reason)
    assert found.code is code


def test_another_mend_than_the_one_that_is_due_is_not_made(memory: Memory) -> None:
    """A rotation at once is not what people were told of, whoever writes it into an action."""
    kms, (case, action) = Kms(OFF), decided()
    told(memory, case)
    assert action.mend is not None
    other = replace(action, mend=replace(action.mend, kind=RemediationKind.ROTATE_KEY))
    found = KeyHandler({"aws": kms}, {"aws": lambda: kms}, memory).last_look(case, other, POLICY, NOW, memory)
    assert found == Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "setting"})


def test_a_key_is_left_until_its_owner_was_told_and_the_whole_wait_is_over(memory: Memory) -> None:
    kms, (case, action) = Kms(OFF), decided()
    hand = KeyHandler({"aws": kms}, {"aws": lambda: kms}, memory)
    untold = hand.last_look(case, action, POLICY, NOW, memory)
    told(memory, case)
    early = hand.last_look(
        replace(case, since=NOW - timedelta(days=90)), action, POLICY, TOLD_AT + RULE.wait / 2, memory
    )
    new = hand.last_look(case, action, replace(POLICY, observe_new_accounts_for=timedelta(days=9)), NOW, memory)
    codes = [found.code for found in (untold, early, new) if isinstance(found, Reason)]
    assert codes == [ReasonCode.NOTICE_UNDELIVERED, ReasonCode.WAITING, ReasonCode.ACCOUNT_NEW]


def test_a_key_that_was_not_looked_at_is_never_called(memory: Memory) -> None:
    kms, (case, action) = Kms(OFF), decided()
    told(memory, case)
    hand = KeyHandler({"aws": kms}, {"aws": lambda: kms}, memory)
    with pytest.raises(RefusedError):
        hand.call(action)
    assert isinstance(hand.last_look(case, action, POLICY, NOW, memory), PrecheckResult)
    hand.call(action)
    with pytest.raises(RefusedError):
        hand.call(action)  # one look, one call
    assert kms.sent == ["1234abcd every 90"]
