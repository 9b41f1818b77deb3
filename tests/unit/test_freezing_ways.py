"""How a freeze's account is entered: by the freeze's own role where it has one, else as the account is read."""

from __future__ import annotations

from dataclasses import replace

from costguard.domain.actions import FreezeVia, LaunchFreeze
from costguard.domain.refs import Shard
from costguard.ports import Target
from costguard.providers.kit.iam.freeze import shard_of

FREEZE = LaunchFreeze("a", "aws", FreezeVia.ORGANISATION, "p-a1b2c3d4", "ou-1", "111122223333")
SCANNED = Target("aws", "111122223333", role="costguard", external_id="words", organisation=True)


class Entered:
    """A session that remembers which way an account was entered."""

    def __init__(self) -> None:
        self.by: list[Target] = []

    def for_account(self, target: Target, account: str) -> None:
        assert account == "111122223333"
        self.by.append(target)


def entered(freeze: LaunchFreeze, way: Target | None = SCANNED) -> list[Target]:
    session = Entered()
    assert shard_of(freeze, session, lambda _: way) == Shard("aws", freeze.account)
    return session.by


def test_without_a_role_the_account_is_entered_as_it_is_read() -> None:
    assert entered(FREEZE) == [SCANNED]
    assert entered(FREEZE, None) == []
    assert entered(replace(FREEZE, account="")) == []


def test_its_own_role_is_assumed_for_nothing_else_even_in_ones_own_account() -> None:
    """A target of an organisation would be entered with the caller's own keys where it is the caller's account."""
    (way,) = entered(replace(FREEZE, role="costguard-freeze"))
    assert way == Target("aws", "111122223333", role="costguard-freeze", external_id="words")
    (alone,) = entered(replace(FREEZE, role="costguard-freeze"), None)
    assert (alone.role, alone.external_id) == ("costguard-freeze", "")
