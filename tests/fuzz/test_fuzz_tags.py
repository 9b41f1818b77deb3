"""Tags of every spelling: what protects in one form protects in all, and no other tag takes it away."""

from __future__ import annotations

import unicodedata
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import builders as b
from tests.fuzz.bounds import attempt, fuzz
from tests.fuzz.mutations import texts

from costguard.domain.reasons import ReasonCode
from costguard.guards.rules.common import Protection, Selector
from costguard.planning.rails import exemption
from costguard.policy.model.ownership import owner_name
from costguard.policy.model.protection import protected_by_tag
from costguard.providers.aws.compute.instances import keeper_of

SHIPPED = Protection()
POLICY = b.policy()
NOW = b.NOW
TAGS = st.dictionaries(texts(), texts(), max_size=5)
DENIALS = {"false", "no", "0", "off"}


def exempt(tags: dict[str, str]) -> bool:
    """Whether an idle machine with these tags is left alone; what was asked stays fit to be kept."""
    instance = b.instance(tags=tags)
    reason = attempt("tags", lambda: (exemption(instance, POLICY, NOW),))
    assert reason is not None
    attempt("tags", lambda: owner_name(instance, POLICY))
    attempt("tags", lambda: Selector(tags={"team": "*"}).matches(instance))
    return reason[0] is not None


@st.composite
def spellings(draw: st.DrawFn, name: str) -> str:
    """`name` in another case, with other separators, in full width."""
    letters = []
    for letter in name:
        form = draw(st.sampled_from(["same", "upper", "wide"]))
        if letter == "-":
            letters.append(draw(st.sampled_from(["-", "_", "", " ", ".", ":", "--", "\uff0d"])))
        elif form == "wide" and "!" <= letter <= "~":
            letters.append(chr(ord(letter) + 0xFEE0))
        else:
            letters.append(letter.upper() if form == "upper" else letter)
    return draw(st.sampled_from(["", " "])) + "".join(letters) + draw(st.sampled_from(["", " ", "\u00a0"]))


NAMED = st.sampled_from(SHIPPED.tag_names).flatmap(spellings)
EXPIRING = st.sampled_from(SHIPPED.expiry_tag_names).flatmap(spellings)


def said(value: str) -> str:
    """A value as it is compared, told anew."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", value).casefold()).strip()


@fuzz(quick=60)
@given(NAMED, texts(), TAGS)
def test_a_protection_tag_protects_in_every_spelling_whatever_else_is_there(
    name: str, value: str, others: dict[str, str]
) -> None:
    assert exempt({**others, name: value}) or said(value) in DENIALS


@fuzz(quick=60)
@given(EXPIRING, st.one_of(texts(), st.from_regex(r"[0-9]{4}[-/.][0-9]{2}[-/.][0-9]{2}.{0,20}", fullmatch=True)), TAGS)
def test_an_expiry_nobody_can_read_protects(name: str, value: str, others: dict[str, str]) -> None:
    """Only a date that is past, in full form, stops to."""
    digits = said(value)[:10].replace("-", "")
    readable = digits.isascii() and digits.isdigit() and len(digits) == 8
    assert exempt({**others, name: value}) or (readable and digits < "20260312")


@fuzz(quick=40)
@given(
    EXPIRING,
    st.datetimes(),
    st.sampled_from(["date", "Z", "+14:00", "-12:00", "naive"]),
)
def test_an_expiry_protects_until_its_last_moment_anywhere(name: str, moment: datetime, form: str) -> None:
    """Year 1 and year 9999 included: no time zone leads over the edge of the calendar."""
    day = f"{moment.year:04}-{moment.month:02}-{moment.day:02}"
    clock = f"T{moment.hour:02}:{moment.minute:02}:{moment.second:02}"
    value = {"date": day, "naive": day + clock}.get(form, day + clock + form)
    kept = exempt({name: value})
    far = moment.replace(tzinfo=timezone.utc) - NOW
    assert kept or far < timedelta(days=2)
    assert kept or form != "naive"
    assert not kept or far > timedelta(days=-2) or form == "naive"


MANAGED = [
    "aws:autoscaling:groupName",
    "kubernetes.io/cluster/ml",
    "eks:cluster-name",
    "karpenter.sh/nodepool",
    "aws:elasticmapreduce:job-flow-id",
    "costguard:component",
    "aws:ecs:clusterName",
    "k8s.io/role/node",
]


@fuzz(quick=50)
@given(st.sampled_from(MANAGED), texts(), TAGS)
def test_a_managed_machine_is_managed_whatever_the_value_and_the_other_tags(
    key: str, value: str, others: dict[str, str]
) -> None:
    tags = {**others, key: value}
    found = attempt("tags", lambda: keeper_of(tags, None))
    assert found is not None


@fuzz(quick=50)
@given(TAGS)
def test_any_tags_are_judged(tags: dict[str, str]) -> None:
    exempt(tags)
    attempt("tags", lambda: keeper_of(tags, {}))


@pytest.mark.parametrize("piece", ["\u0344", "\ufdfa", "a\u0301", "İ", "ß", "\ud800", "\x00"])
def test_no_letter_makes_a_tag_slow(piece: str) -> None:
    """U+FDFA grows eighteen times when it is normalised."""
    long = piece * 20_000
    for tags in ({long: ""}, {"keep-until": long}, {"do-not-stop": long}):
        exempt(tags)
    assert exempt({"keep-until": long})


def test_the_reason_tells_the_tag() -> None:
    found = protected_by_tag({"Keep_Until": "someday"}, SHIPPED, NOW)
    assert found is not None
    assert found.code is ReasonCode.PROTECTED_TAG
