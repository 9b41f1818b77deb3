"""JSON as it leaves the program: in parts, and to the letter what the standard library would have printed."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costguard.cli.output import json_parts, to_json

KEYS = st.text(st.characters(), max_size=4)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
UNSAFE = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_it_is_what_the_standard_library_prints_with_what_misleads_escaped(data: dict[str, Any]) -> None:
    whole = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    assert to_json(data) == UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", whole)


def test_numbers_that_name_something_are_texts_as_everywhere_in_json() -> None:
    assert json.loads(to_json({"by_day": {3: 1}})) == {"by_day": {"3": 1}}


def test_a_long_list_is_never_one_text() -> None:
    data = {"schema": 1, "actions": [{"name": "x" * 50, "kept": [1, 2]}] * 2_000}
    assert max(map(len, json_parts(data))) < 200


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object()])
def test_what_is_no_json_is_refused(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        to_json({"one": [{"deep": value}]})
