"""An exception that is asked for: what is refused, and what stands in the file afterwards."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as some

from costguard.domain.errors import InvalidInputError
from costguard.policy.documents.loader import load_policy
from costguard.policy.exceptions import ExceptionRequest, check_request, with_exception
from costguard.policy.model.policy import LONGEST_EXCEPTION, Policy
from costguard.policy.syntax.yaml12 import read_yaml
from costguard.policy.syntax.yaml_nodes import plain
from costguard.ports import PolicyText

NOW = datetime(2026, 11, 23, 9, tzinfo=timezone.utc)
ASKED = ExceptionRequest(
    "aws:111122223333:us-east-1:instance:i-0123456789abcdef0",
    "research",
    "evaluation of the release",
    "finops",
    NOW + timedelta(days=30),
    "lee",
)
WRITTEN = """\
# What was agreed.
- resource: i-0000000000000001   # the demo
  owner: vision
  reason: 'holds the demo'
  approver: finops
  expires: "2026-12-01T18:00:00+08:00"

# - resource: none
"""


def test_comments_order_and_quotes_stay_and_the_entry_comes_last() -> None:
    after = with_exception(WRITTEN, ASKED)
    assert after.startswith(WRITTEN)
    assert after.removeprefix(WRITTEN) == (
        '- resource: "aws:111122223333:us-east-1:instance:i-0123456789abcdef0"\n'
        '  owner: "research"\n  reason: "evaluation of the release"\n  approver: "finops"\n'
        '  expires: "2026-12-23T09:00:00Z"\n'
    )


@pytest.mark.parametrize("before", [None, "", "# nothing yet\n", "# nothing yet\n[]\n", "[ ]  # none\n", "# a\n[]"])
def test_a_file_without_entries_gets_its_first(before: str | None) -> None:
    after = with_exception(before, ASKED)
    root = read_yaml("exceptions.yaml", after).root
    assert root is not None
    assert plain(root) == (dict(ASKED.entry),)
    assert after.count("#") == (before or "").count("#") or "# none" in (before or "")


def test_an_indented_list_is_gone_on_with() -> None:
    after = with_exception("".join(f"  {line}\n" if line else "\n" for line in WRITTEN.splitlines()), ASKED)
    assert '\n  - resource: "aws:' in after


def test_a_policy_with_it_is_valid_and_excepts_that_machine() -> None:
    rule = "{name: all, idle_when_all: {lasting: 24h, every_gpu_max_below: 5%}, then: [warn]}"
    rules = f"version: 1\nmode: observe\nidle_gpu: [{rule}]\n"
    files = {"costguard.yaml": rules, "exceptions.yaml": with_exception(WRITTEN, ASKED)}
    (_, added) = load_policy(PolicyText(files, "r", "here")).exemptions
    assert (added.reason, added.expires_at, added.approver) == (ASKED.reason, ASKED.expires, "finops")


def test_the_longest_exception_is_what_the_policy_says_and_180_days_where_it_says_nothing() -> None:
    def policy(more: str = "") -> Policy:
        return load_policy(
            PolicyText({"costguard.yaml": f"version: 1\nidle_gpu: [{{name: all}}]\n{more}"}, "r", "here")
        )

    silent, said, longer = policy(), policy("longest_exception: 180d\n"), policy("longest_exception: 365d\n")
    assert silent.longest_exception == timedelta(days=180)
    assert said.digest == silent.digest, "what is left out means what it always meant"
    year = replace(ASKED, expires=NOW + timedelta(days=365))
    check_request(year, NOW, longer.longest_exception)
    with pytest.raises(InvalidInputError, match="lasts 180 days at most"):
        check_request(year, NOW, silent.longest_exception)


@pytest.mark.parametrize(
    ("written", "said"), [("0d", "at least 1d"), ("12h", "at least 1d"), ("731d", "at most 730d"), ("90", "unit")]
)
def test_a_longest_exception_that_makes_no_sense_is_refused_by_its_line(written: str, said: str) -> None:
    text = f"version: 1\nidle_gpu: [{{name: all}}]\nlongest_exception: {written}\n"
    with pytest.raises(InvalidInputError, match=said) as refused:
        load_policy(PolicyText({"costguard.yaml": text}, "r", "here"))
    assert "costguard.yaml:3" in str(refused.value)


@given(some.text(min_size=1, max_size=60))
def test_no_letters_of_a_reason_change_what_the_file_says(reason: str) -> None:
    """YAML in a reason stays text: it is refused, or read back letter by letter."""
    asked = replace(ASKED, reason=reason)
    try:
        check_request(asked, NOW)
        after = with_exception(WRITTEN, asked)
    except InvalidInputError:
        return
    root = read_yaml("exceptions.yaml", after).root
    assert root is not None
    (first, added) = plain(root)
    assert first["reason"] == "holds the demo"
    assert added == dict(asked.entry)


@pytest.mark.parametrize(
    "reason", ['x"\n- resource: "*"', "a: {b: c}", "- - &a *a", "!!python/object", "# gone", "'\"\\", "理由：演示"]
)
def test_yaml_in_a_reason_stays_a_reason(reason: str) -> None:
    asked = replace(ASKED, reason=reason)
    if "\n" in reason:
        with pytest.raises(InvalidInputError, match="write one line"):
            check_request(asked, NOW)
    root = read_yaml("exceptions.yaml", with_exception(WRITTEN, asked)).root
    assert root is not None
    assert [each["reason"] for each in plain(root)] == ["holds the demo", reason]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"reason": " "}, "the reason is empty: say why"),
        ({"reason": "x" * 301}, "longer than 300"),
        ({"owner": ""}, "the owner is empty"),
        ({"approver": ""}, "the approver is empty"),
        ({"approver": "LEE "}, "somebody else has to agree"),
        ({"expires": NOW}, "is past"),
        ({"expires": NOW - timedelta(days=1)}, "is past"),
        ({"expires": NOW + LONGEST_EXCEPTION + timedelta(seconds=1)}, "lasts 180 days at most, until 2027-05-22"),
    ],
)
def test_what_may_not_be_asked_for_says_what_may(changed: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        check_request(replace(ASKED, **changed), NOW)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[{resource: i-1, owner: a, reason: b, approver: c, expires: '2026-12-01T00:00:00Z'}]\n",
            "written in brackets",
        ),
        ("resource: i-1\n", "not a list"),
        ("- resource: [\n", "exceptions.yaml"),
    ],
)
def test_a_file_that_cannot_be_added_to_is_left_alone(text: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        with_exception(text, ASKED)


def test_what_is_excepted_as_long_already_is_not_asked_for_again() -> None:
    once = with_exception(WRITTEN, ASKED)
    with pytest.raises(InvalidInputError, match="is excepted already, until 2026-12-23T09:00:00Z"):
        with_exception(once, ASKED)
    longer = replace(ASKED, expires=ASKED.expires + timedelta(days=1))
    assert with_exception(once, longer).startswith(once)


def test_the_same_request_has_the_same_branch() -> None:
    assert ASKED.branch == "costguard/exception-i-0123456789abcdef0-20261223"
    assert replace(ASKED, resource="a:b:c:d:../../x y").branch == "costguard/exception-x-y-20261223"
