"""`rollout` as it is written: what it becomes, what is refused, and which change of it loosens."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal

import pytest

from costguard.guards.rules.common import Mode
from costguard.policy.diff.differences import Direction
from costguard.policy.diff.policies import policy_differences
from costguard.policy.documents.loader import check_policy, load_policy
from costguard.policy.model.policy import Policy, RolloutEntry, RolloutStep
from costguard.policy.remarks import remarks
from costguard.ports import PolicyText

HEAD = """\
version: 1
mode: enforce
accounts: [{cloud: aws, id: "111122223333", regions: all, owner: vision}]
owners: [{name: nlp, owns: {tags: {team: nlp}}}]
idle_gpu: [{name: research}, {name: try-out, shadow: true}]
notify: {default: "slack:#gpu"}
"""
WARN, ENFORCE = "{mode: warn, since: 2026-12-07}", "{mode: enforce, since: 2026-12-21}"
STEPS = f"steps: [{WARN}, {ENFORCE}]"
ASKS = "{mode: enforce, since: 2026-12-21, when: {regret_below: 10%, in_shadow: try-out}}"


def read(*entries: str, head: str = HEAD) -> tuple[Policy | None, str]:
    text = head + ("rollout:\n" + "".join(f"  - {{{entry}}}\n" for entry in entries) if entries else "")
    made, problems = check_policy(PolicyText({"costguard.yaml": text}, "p", "d"))
    return made, "\n".join(map(str, problems))


def made(*entries: str) -> Policy:
    found, problems = read(*entries)
    assert found is not None, problems
    return found


def test_steps_conditions_and_scopes_are_read() -> None:
    found = made(f"team: nlp, steps: [{WARN}, {ASKS}]", f'team: vision, account: "111122223333", {STEPS}')
    warn = RolloutStep(Mode.WARN, date(2026, 12, 7))
    asks = RolloutStep(Mode.ENFORCE, date(2026, 12, 21), Decimal("0.10"), "try-out", 10)
    assert found.rollout[0] == RolloutEntry("nlp", "", (warn, asks))
    assert (found.rollout[1].team, found.rollout[1].account) == ("vision", "111122223333")


def test_a_policy_without_a_rollout_keeps_its_digests() -> None:
    plain, with_one = made(), made(f"team: nlp, {STEPS}")
    assert plain.digest != with_one.digest
    assert [rule.digest for rule in plain.idle_gpu] == [rule.digest for rule in with_one.idle_gpu]
    oldest = load_policy(PolicyText({"costguard.yaml": "version: 1\nidle_gpu: [{name: default}]\n"}, "p", "d"))
    assert oldest.digest == "e5ad97bea3879e0e29d1c8f31125c7c542ffab99717a91fc70b984436dbf0a4c", "as it was before"


@pytest.mark.parametrize(
    ("entries", "says", "fix"),
    [
        (["team: nlp, steps: [{mode: warn, since: 2026-12-21}, {mode: enforce, since: 2026-12-07}]"],
         "2026-12-07 is not after 2026-12-21", "in the order of their days"),
        (["team: nlp, steps: [{mode: warn, since: 2026-12-07}, {mode: enforce, since: 2026-12-07}]"],
         "2026-12-07 is not after 2026-12-07", ""),
        ([f"team: nlp, steps: [{WARN}, {{mode: warn, since: 2026-12-21}}]"], "a step back or none", "remove the later"),
        ([f"team: nlp, steps: [{ENFORCE}]"], "warn is skipped", "begin with {mode: warn"),
        (["team: nlp, steps: [{mode: observe, since: 2026-12-07}]"], "everybody begins in observe", ""),
        (["team: nlp, steps: []"], "an empty list", "mode: warn"),
        ([STEPS], "neither team nor account", "team: nlp"),
        ([f"team: npl, {STEPS}"], "'npl' is no owner that this policy names", "nlp"),
        ([f'account: "111122223334", {STEPS}'], "111122223334 is not among the accounts", "111122223333"),
        ([f"team: nlp, {STEPS}", f"team: nlp, {STEPS}"], "a second entry for nlp", "keep one"),
        ([f'team: "*", account: "111122223333", {STEPS}'], "whatever no other entry covers", ""),
        (["team: nlp, steps: [{mode: warn, since: 2026-12-07, when: {regret_below: 10%, in_shadow: tryout}}]"],
         "'tryout' is no rule under idle_gpu with shadow: true", "try-out"),
        (["team: nlp, steps: [{mode: warn, since: 2026-12-07, when: {regret_below: 10, in_shadow: try-out}}]"],
         "'10'", "%"),
        ([f"team: nlp, steps: [{WARN}, {ASKS.replace('try-out}', 'try-out, of_at_least: 0}')}]"],
         "0 is too few", "1 or more"),
        (["team: nlp, steps: [{mode: warn, since: 2026-13-07}]"], "2026-13-07", ""),
    ],
)  # fmt: skip
def test_a_mistake_names_its_place_and_what_to_write(entries: list[str], says: str, fix: str) -> None:
    found, problems = read(*entries)
    assert found is None
    assert says in problems
    assert fix in problems
    assert "rollout[" in problems


@pytest.mark.parametrize(("day", "told"), [(6, []), (8, ["nlp warn 2026-12-07"])])
def test_a_day_in_the_past_is_remarked(day: int, told: list[str]) -> None:
    """No step is skipped: one of a day that is past begins a day after people were told, which may be tomorrow."""
    found = remarks(made(f"team: nlp, {STEPS}"), datetime(2026, 12, day, tzinfo=timezone.utc))
    mine = [each.message for each in found if each.where == "rollout"]
    assert len(mine) == len(told)
    assert all(each in message for each, message in zip(told, mine, strict=True))


@pytest.mark.parametrize(
    ("before", "after", "looser"),
    [
        ([], [f"team: nlp, {STEPS}"], False),
        ([f"team: nlp, {STEPS}"], [], True),
        ([f"team: nlp, steps: [{WARN}]"], [f"team: nlp, {STEPS}"], True),
        ([f"team: nlp, {STEPS}"], [f"team: nlp, steps: [{WARN}]"], False),
        ([f"team: nlp, {STEPS}"], [f"team: nlp, steps: [{WARN.replace('12-07', '12-06')}, {ENFORCE}]"], True),
        ([f"team: nlp, {STEPS}"], [f"team: nlp, steps: [{WARN.replace('12-07', '12-08')}, {ENFORCE}]"], False),
        ([f"team: nlp, steps: [{WARN}, {ASKS}]"], [f"team: nlp, {STEPS}"], True),
        ([f"team: nlp, {STEPS}"], [f"team: nlp, steps: [{WARN}, {ASKS}]"], False),
        ([f"team: nlp, steps: [{WARN}, {ASKS}]"], [f"team: nlp, steps: [{WARN}, {ASKS.replace('10%', '11%')}]"], True),
        ([f"team: nlp, {STEPS}"], [f"team: nlp, {STEPS}", f"team: vision, {STEPS}"], True),
        ([f"team: nlp, {STEPS}", f"team: vision, {STEPS}"], [f"team: nlp, {STEPS}"], True),
    ],
)
def test_only_a_later_or_stricter_step_is_a_tightening(before: list[str], after: list[str], *, looser: bool) -> None:
    (found,) = policy_differences(made(*before), made(*after))
    assert (found.key, found.direction) == ("rollout", Direction.LOOSER if looser else Direction.TIGHTER)


@pytest.mark.parametrize(
    ("written", "says"), [("1", "too few"), ("0", "too few"), ("-3", "negative"), ('"5"', "count")]
)
def test_the_cap_of_messages_leaves_room_for_a_digest(written: str, says: str) -> None:
    head = HEAD.replace('"slack:#gpu"}', f'"slack:#gpu", messages_per_day: {written}}}')
    assert says in read(head=head)[1]
    assert made().messages_per_day == 12
