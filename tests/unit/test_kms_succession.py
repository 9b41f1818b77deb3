"""Which key follows which, what is offered, who may do it, and where it is connected."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from tests.builders import policy
from tests.unit.test_kms_rotation import key as any_key

from cloudstand.clock import MovedClock
from costguard.connections import Connections
from costguard.domain.actions import Receipt
from costguard.domain.errors import RefusedError, UnavailableError
from costguard.domain.findings import Verdict
from costguard.domain.keys import (
    EncryptionKey,
    KeyInventory,
    KeyManager,
    KeyOrigin,
    KeyState,
    KeyUsage,
    MultiRegion,
    Rotatability,
    RotationMeans,
)
from costguard.domain.reasons import ReasonCode
from costguard.domain.remediations import FINAL, SUCCESSION, Remediation, RemediationKind
from costguard.domain.resources import Gap, GapKind
from costguard.engine.guards.keys.run import followed
from costguard.guards.keys.judge import NOBODY, SUCCESSOR_OF, gentlest, inverse, judge, lineages, remediation_of
from costguard.guards.keys.rules import KeyRule, KeySelector
from costguard.guards.rules.common import Mode
from costguard.policy.documents.loader import load_policy
from costguard.ports import PolicyText, Target
from costguard.providers.alibaba.iam import permissions as alibaba
from costguard.providers.alibaba.iam import policy_documents as alibaba_documents
from costguard.providers.aws.iam import permissions as aws
from costguard.providers.aws.iam import policy_documents as aws_documents
from costguard.providers.kit.iam.permissions import Feature, Purpose
from costguard.providers.kit.kms.rotation import Sealed, moved
from costguard.settings import load_settings

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
DAY = timedelta(days=1)
AUTOMATIC, ON_DEMAND, SUCCESSOR = RotationMeans.AUTOMATIC, RotationMeans.ON_DEMAND, RotationMeans.SUCCESSOR
ANY = Rotatability(frozenset(RotationMeans), 90, 2560, succeeds=True)
RULE = KeyRule("by-hand", Mode.ENFORCE, KeySelector(), means=frozenset({SUCCESSOR}))
DISK = any_key().ref.sibling("volume", "vol-1")


def old(**changes: Any) -> EncryptionKey:
    """A key of 400 days, never rotated, with an alias."""
    never = replace(any_key().rotation, automatic=False, last_at=None, period_days=None)
    return replace(any_key(rotatability=ANY, rotation=never, aliases=("training",)), **changes)


def heir(name: str = "new", of: str = "1234abcd", **changes: Any) -> EncryptionKey:
    ref = old().ref.sibling("key", name)
    return old(ref=ref, aliases=(), tags={SUCCESSOR_OF: of}, created_at=NOW - DAY, **changes)


def offered(*keys: EncryptionKey, rule: KeyRule = RULE) -> Remediation | None:
    """For the first of the keys."""
    line = lineages(keys).get(keys[0].ref, NOBODY)
    found = [one for one in judge(keys, [rule], NOW) if one.subject == keys[0].ref]
    return next((mend for one in found if (mend := remediation_of(keys[0], rule, one, line)) is not None), None)


def said(*keys: EncryptionKey, rule: KeyRule = RULE) -> set[tuple[Verdict, ReasonCode]]:
    found = judge(keys, [rule], NOW)
    return {(one.verdict, one.reason.code) for one in found if one.subject == keys[0].ref}


CREATE = Remediation(RemediationKind.CREATE_SUCCESSOR, old().ref)
MOVE = Remediation(RemediationKind.MOVE_ALIAS, old().ref, {"alias": "training", "successor": "new"})


def test_an_old_key_gets_a_successor_and_then_its_alias_moves() -> None:
    assert said(old()) == {(Verdict.VIOLATION, ReasonCode.KEY_OVERDUE)}
    assert offered(old()) == CREATE
    assert offered(old(), heir()) == MOVE
    assert offered(old(aliases=("alias/training", "alias/archive")), heir()) == replace(
        MOVE, parameters={"alias": "archive", "successor": "new"}
    )
    moved = (old(aliases=()), replace(heir(), aliases=("training",)))
    assert said(*moved) == {(Verdict.EXEMPT, ReasonCode.KEY_SUPERSEDED)}
    assert offered(*moved) is None
    assert said(old(created_at=NOW - 80 * DAY)) == {(Verdict.COMPLIANT, ReasonCode.KEY_ROTATED)}


@pytest.mark.parametrize(
    "changes",
    [
        {"aliases": ()},
        {"origin": KeyOrigin.IMPORTED},
        {"origin": KeyOrigin.CUSTOM_STORE},
        {"multi_region": MultiRegion.PRIMARY},
        {"rotatability": replace(ANY, succeeds=False)},
        {"state": KeyState.UNAVAILABLE},
        {"manager": KeyManager.CLOUD},
        {"multi_region": MultiRegion.REPLICA},
    ],
    ids=lambda changes: next(iter(str(value) for value in changes.values()))[:40],
)
def test_what_cannot_be_made_again_is_left_to_its_owner(changes: dict[str, Any]) -> None:
    assert offered(old(**changes)) is None
    assert offered(old(**changes), heir()) is None


@pytest.mark.parametrize(
    "unlike",
    [
        {"spec": "RSA_2048"},
        {"usage": KeyUsage.SIGN},
        {"state": KeyState.DISABLED},
        {"state": KeyState.PENDING_DELETION},
        {"state": KeyState.UNKNOWN},
        {"origin": KeyOrigin.IMPORTED},
    ],
    ids=str,
)
def test_one_that_cannot_do_the_same_gets_no_alias_and_no_other_is_made(unlike: dict[str, Any]) -> None:
    assert offered(old(), heir(**unlike)) is None


def test_where_two_say_that_they_follow_nobody_is_followed() -> None:
    assert offered(old(), heir(), heir("other")) is None


def test_a_key_that_can_be_rotated_as_the_rule_allows_gets_no_successor() -> None:
    automatic = replace(RULE, means=frozenset({AUTOMATIC, SUCCESSOR}))
    assert offered(old(), rule=automatic) == Remediation(RemediationKind.SET_ROTATION, old().ref, {"days": "90"})
    on_demand = replace(RULE, means=frozenset({ON_DEMAND, SUCCESSOR}))
    assert offered(old(), rule=on_demand) == Remediation(RemediationKind.ROTATE_KEY, old().ref)
    assert offered(old(), rule=replace(RULE, means=frozenset({AUTOMATIC}))) != CREATE
    signing = old(rotatability=Rotatability(frozenset({SUCCESSOR}), succeeds=True), usage=KeyUsage.SIGN)
    assert offered(signing, rule=automatic) == CREATE


def test_a_new_key_can_be_asked_for_sooner_than_the_vendor_rotates() -> None:
    weekly = replace(RULE, rotate_every=7 * DAY)
    assert offered(old(created_at=NOW - 20 * DAY), rule=weekly) == CREATE


def test_what_names_a_superseded_key_goes_on_being_told() -> None:
    gone = old(aliases=(), state=KeyState.DISABLED, used_by=(DISK,))
    assert (Verdict.VIOLATION, ReasonCode.KEY_DISABLED_IN_USE) in said(gone, replace(heir(), aliases=("training",)))


def test_the_aliases_of_successors_count_as_the_keys_own_for_a_rule_and_circles_end() -> None:
    rule = replace(RULE, applies_to=KeySelector(aliases=("train*",)))
    gone, last = old(aliases=()), replace(heir("last", "new"), aliases=("training",))
    lines = lineages([gone, heir(), last])
    assert lines[gone.ref].aliases == ("training",)
    assert gentlest(gone, [rule], lines[gone.ref]) is rule
    assert gentlest(gone, [rule]) is None
    circle = lineages([old(tags={SUCCESSOR_OF: "new"}), heir()])
    assert {line.aliases for line in circle.values()} == {(), ("training",)}


def test_only_an_alias_is_moved_back() -> None:
    assert inverse(MOVE) == replace(MOVE, kind=RemediationKind.RESTORE_ALIAS)
    assert [kind for kind in RemediationKind if inverse(Remediation(kind, old().ref)) is not None] == [
        RemediationKind.MOVE_ALIAS
    ]
    assert {RemediationKind.CREATE_SUCCESSOR} == SUCCESSION & FINAL


def test_a_list_that_is_not_whole_says_nothing_of_who_follows() -> None:
    """The key that was made, and whose answer got lost, may be on the page that is missing."""
    missing = Gap(old().ref.shard, "inventory", GapKind.TRUNCATED, "the second page")
    with pytest.raises(UnavailableError, match="second page"):
        followed(KeyInventory(old().ref.shard, (old(),), (missing,)), old().ref)
    unread = replace(missing, what="details")
    found = followed(KeyInventory(old().ref.shard, (old(), heir()), (unread,)), old().ref)
    assert found is not None
    assert found.line.heir == heir()
    assert followed(KeyInventory(old().ref.shard, ()), old().ref) is None


# the steps of a move


class Wire:
    """A cloud where an alias is with `at`; `fails` are the steps, by number, that say no."""

    def __init__(self, at: EncryptionKey, *fails: int, lags: bool = False) -> None:
        self.at = self.first = at
        self.fails, self.lags = fails, lags
        self.steps: list[str] = []

    def _step(self, what: str) -> bool:
        self.steps.append(what)
        return len(self.steps) not in self.fails

    def seal(self, named: str, key: EncryptionKey) -> Sealed:
        by = (self.first if self.lags else self.at) if named.startswith("alias/") else key
        self._step(f"seal {named}")
        return Sealed(by.ref.native_id, "canary")

    def holds(self, key: EncryptionKey, sealed: Sealed) -> bool:
        return self._step(f"{key.ref.native_id} opens {sealed.by}")

    def point(self, alias: str, key: EncryptionKey) -> Receipt:
        self._step(f"{alias} to {key.ref.native_id}")
        self.at = key
        return Receipt("r")


TRIED = ["seal alias/training", "seal new", "1234abcd opens 1234abcd", "new opens new"]
MOVED = [*TRIED, "alias/training to new", "1234abcd opens 1234abcd", "seal alias/training", "new opens new"]


def move(wire: Wire) -> list[str]:
    with contextlib.suppress(RefusedError):
        moved(wire, "training", old(), heir(), {"aws"})
    return wire.steps


def test_a_move_is_tried_before_and_after() -> None:
    assert move(Wire(old())) == MOVED


@pytest.mark.parametrize("step", [3, 4])
def test_a_key_that_does_not_take_back_what_it_made_is_seen_before_the_move(step: int) -> None:
    assert not any("to new" in each for each in move(Wire(old(), step)))


@pytest.mark.parametrize("step", [6, 8])
def test_after_it_either_failure_brings_the_alias_back(step: int) -> None:
    wire = Wire(old(), step)
    assert move(wire)[-1] == "alias/training to 1234abcd"
    assert wire.at == old()


def test_a_cloud_that_takes_its_time_to_show_a_move_is_no_failure() -> None:
    """AWS: an alias may go on naming the old key for minutes."""
    wire = Wire(old(), lags=True)
    assert move(wire)[-1] == "1234abcd opens 1234abcd"
    assert wire.at == heir()


def test_an_alias_that_is_with_a_third_key_is_not_moved() -> None:
    with pytest.raises(RefusedError, match="is with third"):
        moved(Wire(heir("third")), "training", old(), heir(), {"aws"})


# who may do it


def test_on_aws_a_role_of_its_own_decrypts_only_canaries_and_makes_only_successors() -> None:
    statements = {
        one["Sid"]: one for one in aws_documents.policy_document([Feature.SUCCEED], partition="aws-cn")["Statement"]
    }
    assert set(statements) == {
        "ReadKeyPolicies",
        "MakeSuccessors",
        "TagSuccessors",
        "MoveAliases",
        "EncryptCanaries",
        "SignCanaries",
    }
    context = {"StringEquals": {"kms:EncryptionContext:costguard-canary": "alias-move"}}
    decrypts = [one for one in statements.values() if "kms:Decrypt" in one["Action"]]
    assert [one["Condition"] for one in decrypts] == [context]
    for name in ("MakeSuccessors", "TagSuccessors"):
        assert statements[name]["Condition"]["Null"] == {f"aws:RequestTag/{SUCCESSOR_OF}": "false"}
    assert statements["MoveAliases"]["Resource"] == ["arn:aws-cn:kms:*:*:alias/*", "arn:aws-cn:kms:*:*:key/*"]


def test_on_alibaba_cloud_it_has_these_permissions_and_no_others() -> None:
    statements = alibaba_documents.policy_document([Feature.SUCCEED])["Statement"]
    assert {action for one in statements for action in one["Action"]} == {
        f"kms:{name}" for name in ("CreateKey", "Decrypt", "Encrypt", "GetKeyPolicy", "TagResource", "UpdateAlias")
    }


@pytest.mark.parametrize(
    ("provider", "documents"), [(aws, aws_documents), (alibaba, alibaba_documents)], ids=["aws", "alibaba"]
)
def test_no_other_part_can_make_keys_move_aliases_or_decrypt(provider: Any, documents: Any) -> None:
    own = {name for name, one in provider.REACH[Purpose.SUCCEED].items() if one.feature is Feature.SUCCEED}
    for purpose, table in provider.REACH.items():
        assert purpose is Purpose.SUCCEED or not own & set(table), purpose
    rest = [feature for feature in Feature if feature is not Feature.SUCCEED]
    assert "kms:Decrypt" not in str(documents.policy_document(rest))


# where it is connected


def test_a_policy_may_name_it() -> None:
    text = "version: 1\nmode: enforce\nkms_rotation:\n  - {name: a, mode: enforce, means: [successor]}\n"
    (rule,) = load_policy(PolicyText({"costguard.yaml": text}, "r1")).kms_rotation
    assert rule.means == {SUCCESSOR}


@pytest.mark.parametrize(
    ("rule", "clouds"),
    [
        (RULE, {"aws", "alibaba"}),
        (replace(RULE, mode=Mode.WARN), set()),
        (replace(RULE, means=frozenset({AUTOMATIC, ON_DEMAND})), set()),
    ],
    ids=["named", "not enforced", "not named"],
)
def test_it_is_opened_only_where_a_rule_enforces_and_names_it(rule: KeyRule, clouds: set[str]) -> None:
    under = replace(policy(), kms_rotation=(rule, replace(RULE, name="other", mode=Mode.OBSERVE)))
    with Connections(load_settings({}), under, MovedClock(NOW)) as connections:
        connections.open([Target(cloud) for cloud in ("aws", "alibaba", "tencent")])
        assert set(connections.successors()) == clouds
