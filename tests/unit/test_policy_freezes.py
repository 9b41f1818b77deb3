"""Launch freezes as people write them: what they mean, and every mistake with its place and what to write instead."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest

from costguard.domain.actions import FreezeVia, LaunchFreeze
from costguard.domain.errors import InvalidInputError
from costguard.guards.budget.rules import BudgetStep, StepKind
from costguard.policy.budget.freeze_ids import FORMS, misfit
from costguard.policy.documents.loader import check_policy, load_policy
from costguard.policy.model.policy import Policy
from costguard.policy.remarks import remarks
from costguard.ports import PolicyText
from costguard.report.budget.rules import step_words
from costguard.report.words.sentences import Language

NOW = datetime(2026, 11, 20, 9, tzinfo=timezone.utc)
HEAD = 'version: 1\nmode: enforce\nidle_gpu: [{name: m}]\nnotify: {default: "slack:#a"}\n'
AWS = 'accounts: [{cloud: aws, id: "111122223333", regions: all}]\n'
SCP = 'cloud: aws, via: organisation, policy: p-a1b2c3d4, target: "111122223333"'
GROUP = 'cloud: aws, via: group, policy: "arn:aws:iam::111122223333:policy/frost", target: gpu-users'
RESEARCH = "name: research, monthly: 5000 USD"


def text(*freezes: str, at: str = "120%: [{freeze: {of: [a]}}]", head: str = HEAD + AWS) -> str:
    written = "".join(f"  - {{{freeze}}}\n" for freeze in freezes)
    listed = f"launch_freezes:\n{written}" if freezes else ""
    return f"{head}{listed}budgets:\n  - {{{RESEARCH}, at: {{{at}}}}}\n"


def policy(written: str, **others: str) -> Policy:
    files = {f"{name.replace('__', '/')}.yaml": other for name, other in others.items()}
    return load_policy(PolicyText({"costguard.yaml": written, **files}, "r1"))


def mistake(written: str) -> tuple[str, str, str]:
    """Of a policy with one mistake: where it is, what it says and what mends it; `»` marks the place."""
    place = written.index("»")
    line = written[:place].count("\n") + 1
    column = place - written.rfind("\n", 0, place)
    _, problems = check_policy(PolicyText({"costguard.yaml": written.replace("»", "")}, "r1"))
    (problem,) = problems
    assert (problem.mark.line, problem.mark.column) == (line, column)
    return problem.field, problem.message, problem.fix


def test_a_freeze_and_the_step_that_asks_for_it_are_read() -> None:
    read = policy(
        text(
            f"name: b, {GROUP}, account: '111122223333'",
            f"name: a, {SCP}",
            at="120%: [{freeze: {of: [b, a], wait: 8h}}]",
        )
    )
    assert read.launch_freezes == (
        LaunchFreeze("a", "aws", FreezeVia.ORGANISATION, "p-a1b2c3d4", "111122223333"),
        LaunchFreeze(
            "b", "aws", FreezeVia.GROUP, "arn:aws:iam::111122223333:policy/frost", "gpu-users", "111122223333"
        ),
    )
    (step,) = read.budgets[0].steps
    assert step == BudgetStep(Decimal("1.2"), StepKind.FREEZE, timedelta(hours=8), freezes=("a", "b"))
    assert step_words(step) == "120%: deny launches of GPU instances by a, b (+8h)"
    assert step_words(step, Language.ZH) == "120%：由 a、b 禁止新开 GPU 实例（+8h）"


def test_nothing_is_frozen_unless_written() -> None:
    read = policy(text(at="100%: [stop_idle]"))
    assert read.launch_freezes == ()
    assert all(step.freezes == () for step in read.budgets[0].steps)


def test_people_have_four_hours_unless_written_otherwise() -> None:
    assert policy(text(f"name: a, {SCP}")).budgets[0].steps[0].wait == timedelta(hours=4)


def test_a_long_wait_is_no_matter_of_working_hours() -> None:
    hours = 'calendar: {zone: UTC, days: mon, hours: "10:00-11:00"}\n'
    at = "120%: [{freeze: {of: [a], wait: 80d}}]"
    assert policy(text(f"name: a, {SCP}", at=at, head=HEAD + AWS + hours)).budgets[0].steps[0].wait.days == 80


def test_two_shares_may_freeze_more_and_more() -> None:
    at = "110%: [{freeze: {of: [b]}}], 120%: [{freeze: {of: [a]}}]"
    steps = policy(text(f"name: a, {SCP}", f"name: b, {GROUP}", at=at)).budgets[0].steps
    assert [step.freezes for step in steps] == [("b",), ("a",)]


def test_the_digest_knows_every_word_of_a_freeze_and_not_their_order() -> None:
    plain = policy(text(f"name: a, {SCP}", f"name: b, {GROUP}"))
    turned = policy(text(f"name: b, {GROUP}", f"name: a, {SCP}"))
    moved = policy(text(f"name: a, {SCP}".replace("p-a1", "p-b2"), f"name: b, {GROUP}"))
    waits = policy(text(f"name: a, {SCP}", f"name: b, {GROUP}", at="120%: [{freeze: {of: [a], wait: 5h}}]"))
    more = policy(text(f"name: a, {SCP}", f"name: b, {GROUP}", at="120%: [{freeze: {of: [a, b]}}]"))
    assert plain.digest == turned.digest
    assert len({plain.digest, moved.digest}) == 2
    assert len({plain.budgets[0].digest, waits.budgets[0].digest, more.budgets[0].digest}) == 3


def test_a_freeze_that_nobody_asks_for_is_remarked_on() -> None:
    read = policy(text(f"name: a, {SCP}", f"name: b, {GROUP}"))
    assert ("launch freeze b", "no budget asks for it") in [(each.where, each.message) for each in remarks(read, NOW)]


MISTAKES = {
    "bare": (text(f"name: a, {SCP}", f"name: b, {GROUP}", at="120%: [»freeze]"), "never means all", "of: [a, b]"),
    "bare without any": (text(at="120%: [»freeze]"), "does not say which", "under launch_freezes in costguard.yaml"),
    "wait alone": (text(f"name: a, {SCP}", at="120%: [»{freeze: {wait: 4h}}]"), "does not say which", "of: [a]"),
    "nobody's": (text(f"name: a, {SCP}", at="120%: [{freeze: {of: [»aa]}}]"), "no launch freeze 'aa'", "mean a?"),
    "none at all": (text(at="120%: [{freeze: {of: [»a]}}]"), "no launch freeze 'a'", "describe it under"),
    "empty": (text(f"name: a, {SCP}", at="120%: [{freeze: {of: »[]}}]"), "freezes nothing", "{freeze: {of: ["),
    "text": (text(f"name: a, {SCP}", at="120%: [{freeze: {of: »a}}]"), "a list of launch freezes", "write [a]"),
    "number": (text(f"name: a, {SCP}", at="120%: [{freeze: {of: [»7]}}]"), "a launch freeze, found 7", "listed in"),
    "short": (text(f"name: a, {SCP}", at="120%: [{freeze: »4h}]"), "not what freeze takes", "{freeze: {of: ["),
    "option": (text(f"name: a, {SCP}", at="120%: [{freeze: {»for: 4h}}]"), "unknown key", "freeze takes of and wait"),
    "short wait": (
        text(f"name: a, {SCP}", at="120%: [{freeze: {of: [a], wait: »59m}}]"),
        "too short a wait before freeze; at least 1h",
        "1h or more",
    ),
    "in force": (
        text(f"name: a, {SCP}", at="110%: [{freeze: {of: [a]}}], 120%: [{freeze: {of: [»a]}}]"),
        "a is in force from 110% on already",
        "keep one",
    ),
    "gentler later": (
        text(f"name: a, {SCP}", at="110%: [{freeze: {of: [a]}}], 120%: [»stop_idle]"),
        "comes after freeze at 110%, which is harsher",
        "110% or below",
    ),
    "same name": (
        text(f"name: a, {SCP}").replace("budgets:", f"  - »{{name: a, {GROUP}}}\nbudgets:"),
        "a second",
        "another",
    ),
    "same attachment": (
        text(f"name: a, {SCP}").replace("budgets:", f"  - »{{name: b, {SCP}}}\nbudgets:"),
        "the same policy to the same target as a",
        "name it in both budgets",
    ),
    "unguarded cloud": (
        text("name: a, cloud: »alibaba, via: group, policy: frost, target: gpu"),
        "no account of alibaba is guarded",
        "or write aws",
    ),
    "unguarded account": (
        text(f"name: a, {SCP}, account: »'999988887777'"),
        "is not among the accounts of aws",
        "list it under accounts",
    ),
    "no account": (text(f"name: a, {SCP}, account: »'12'"), "has 12 digits", ""),
    "way": (text(f"name: a, {SCP}".replace("organisation", "»role")), "not a way of attaching", "organisation"),
    "vendor's own": (text(f"name: a, {SCP}".replace("p-a1b2c3d4", "»p-FullAWSAccess")), "that people write", "p-a1b2"),
    "group's policy by name": (
        text(f"name: a, {GROUP}".replace('"arn:aws:iam::111122223333:policy/frost"', "»frost")),
        "people write",
        "arn:aws",
    ),
    "amazon's policy": (
        text(f"name: a, {GROUP}".replace('"arn:aws:iam::111122223333:policy/frost"', '»"arn:aws:iam::aws:policy/A"')),
        "people write",
        "arn:aws:iam::1111",
    ),
    "other partition": (
        text(f"name: a, {GROUP}".replace('"arn:aws:iam', '»"arn:aws-cn:iam')),
        "it is of aws-cn",
        "of this cloud",
    ),
    "other account": (
        text(f"name: a, {GROUP}".replace('"arn', '»"arn').replace("1111", "4444") + ", account: '111122223333'"),
        "in account 444422223333, and the freeze in 111122223333",
        "of one account",
    ),
    "target": (text(f"name: a, {SCP}".replace('"111122223333"', "»research")), "no target", "ou-ab12"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_told_with_its_place_and_the_fix(case: str) -> None:
    written, says, fix = MISTAKES[case]
    _, message, mends = mistake(written)
    assert says in message
    assert fix in mends


@pytest.mark.parametrize("place", ["policies/more.yaml"])
def test_freezes_are_described_in_the_main_file(place: str) -> None:
    with pytest.raises(InvalidInputError, match=r"belongs in costguard\.yaml"):
        load_policy(PolicyText({"costguard.yaml": HEAD, place: f"launch_freezes: [{{name: a, {SCP}}}]\n"}, "r1"))


def test_a_budget_in_another_file_may_ask_for_one() -> None:
    budget = f"budgets: [{{{RESEARCH}, at: {{120%: [{{freeze: {{of: [a]}}}}]}}}}]\n"
    main = HEAD + AWS + f"launch_freezes: [{{name: a, {SCP}}}]\n"
    assert policy(main, policies__b=budget).budgets[0].steps[0].freezes == ("a",)


def test_without_accounts_any_cloud_may_be_the_callers() -> None:
    assert policy(text("name: a, cloud: tencent, via: group, policy: '12', target: '7'", head=HEAD)).launch_freezes


FITTING = [
    ("aws", FreezeVia.ORGANISATION, "p-a1b2c3d4", "r-ab12"),
    ("aws-cn", FreezeVia.ORGANISATION, "p-a1b2c3d4", "ou-ab12-34cd56ef"),
    ("aws-us-gov", FreezeVia.GROUP, "arn:aws-us-gov:iam::111122223333:policy/path/frost", "gpu.users@lab"),
    ("alibaba", FreezeVia.ORGANISATION, "cp-jExXAqIYkwHN", "1234567890123456"),
    ("alibaba-intl", FreezeVia.ORGANISATION, "cp-jExXAqIYkwHN", "fd-Ab12Cd34Ef"),
    ("alibaba", FreezeVia.GROUP, "costguard-freeze", "gpu-users"),
    ("tencent", FreezeVia.ORGANISATION, "1234567", "node/10001"),
    ("tencent-intl", FreezeVia.GROUP, "1234567", "98765"),
]
UNFIT = [
    ("aws", FreezeVia.ORGANISATION, "p-a1b2c3d4", "gpu-users"),
    ("aws", FreezeVia.ORGANISATION, "p-a1b2c3d4\n", "111122223333"),
    ("aws", FreezeVia.GROUP, "arn:aws:iam::aws:policy/AdministratorAccess", "gpu-users"),
    ("alibaba", FreezeVia.ORGANISATION, "FullAliyunAccess", "fd-Ab12Cd34Ef"),
    ("alibaba", FreezeVia.GROUP, "AliyunECSFullAccess", "gpu-users"),
    ("alibaba", FreezeVia.GROUP, "AdministratorAccess", "gpu-users"),
    ("tencent", FreezeVia.ORGANISATION, "1234567", "100000000002"),
    ("tencent", FreezeVia.GROUP, "0", "98765"),
    ("tencent", FreezeVia.GROUP, "QcloudCVMFullAccess", "98765"),
]


@pytest.mark.parametrize(("cloud", "via", "named", "target"), FITTING)
def test_what_a_vendor_gives_out_fits(cloud: str, via: FreezeVia, named: str, target: str) -> None:
    assert misfit(LaunchFreeze("a", cloud, via, named, target)) is None


@pytest.mark.parametrize(("cloud", "via", "named", "target"), UNFIT)
def test_what_no_vendor_gives_out_or_no_person_wrote_does_not(
    cloud: str, via: FreezeVia, named: str, target: str
) -> None:
    assert misfit(LaunchFreeze("a", cloud, via, named, target)) is not None


def test_every_cloud_has_both_ways() -> None:
    assert set(FORMS) == {(provider, via) for provider in ("aws", "alibaba", "tencent") for via in FreezeVia}


def test_a_role_of_its_own_is_read_with_the_account_it_is_in() -> None:
    read = policy(text(f"name: a, {SCP}, account: '111122223333', role: costguard-freeze"))
    assert read.launch_freezes[0].role == "costguard-freeze"


def test_a_role_without_its_account_is_a_mistake() -> None:
    assert "goes with the account" in mistake(text(f"name: a, {SCP}, role: »costguard-freeze"))[1]


def test_two_roles_in_one_account_are_a_mistake() -> None:
    first = f"name: a, {SCP}, account: '111122223333', role: costguard-freeze"
    written = text(first, f"»name: b, {GROUP}, account: '111122223333'").replace("{»", "»{")
    assert "another role in the same account" in mistake(written)[1]
