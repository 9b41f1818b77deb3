"""Ids and lengths given by hand: read exactly, or refused."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.bounds import attempt, fuzz
from tests.fuzz.mutations import scalars, texts

from costguard.domain.errors import InvalidInputError
from costguard.domain.refs import CLOUDS, ResourceRef
from costguard.policy.syntax import values
from costguard.policy.syntax.problems import BadValueError
from costguard.providers.aws.core.transport import parse_timestamp

PART = st.one_of(st.sampled_from([*CLOUDS, "111122223333", "us-east-1", "instance", "i-0abc", ""]), texts())


@fuzz(quick=100)
@given(st.one_of(st.lists(PART, max_size=8).map(":".join), texts()))
def test_an_id_is_read_exactly_or_refused(text: str) -> None:
    ref = attempt("ids", lambda: ResourceRef.parse(text), InvalidInputError)
    if ref is not None:
        assert str(ref) == text
        assert ResourceRef.parse(str(ref)) == ref
        assert ref.cloud in CLOUDS
        assert all((ref.account, ref.region, ref.kind, ref.native_id))


@fuzz(quick=50)
@given(st.sampled_from(CLOUDS), st.one_of(texts(), st.text(alphabet="0123456789*?٣²", max_size=20)))
def test_an_account_id_is_ascii_digits_or_refused(cloud: str, text: str) -> None:
    def check() -> str:
        try:
            values.account_pattern(text)
            values.resource_id(text)
            return values.check_account_id(cloud, text)
        except BadValueError as err:
            raise InvalidInputError("refused") from err

    found = attempt("ids", check, InvalidInputError)
    assert found is None or (found.isascii() and found.isdecimal() and 6 <= len(found) <= 16)


@fuzz(quick=75)
@given(
    st.one_of(scalars(), st.from_regex(r"[0-9]{1,5}-[0-9]{2}-[0-9]{2}T[0-9:]{0,12}(\.[0-9]{0,6})?(Z|\+[0-9:]{4,5})?"))
)
def test_a_time_of_aws_is_aware_or_one_of_two_errors(value: object) -> None:
    """The SDK's parsers call this; what they may meet, `vendor_faults` translates."""

    def read() -> object:
        try:
            return parse_timestamp(value)
        except (ValueError, RuntimeError, TypeError, OverflowError) as err:
            raise InvalidInputError("refused") from err

    found = attempt("aws times", read, InvalidInputError)
    assert found is None or found.utcoffset() is not None  # type: ignore[attr-defined]
