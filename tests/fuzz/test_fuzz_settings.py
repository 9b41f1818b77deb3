"""Environments of every kind: settings in full, or one refusal that repeats no secret."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.bounds import attempt, fuzz
from tests.fuzz.mutations import texts

from costguard.domain.errors import InvalidInputError
from costguard.domain.refs import CLOUDS
from costguard.settings import LANGUAGES, LOG_LEVELS, VARIABLES, Settings, load_settings

NAMES = [variable.name for variable in VARIABLES]
SECRETS = {variable.name for variable in VARIABLES if variable.secret}
NEAR = st.sampled_from(
    ["en", "zh", "EN", "debug", "aws-cn", "0", "no", "1", "off", "sqlite:///x", "postgresql://u:pa55word@h/d",
     "http://127.0.0.1:5000", "http://h:99999", "http://h:port", "https://u:pa55word@h", "http://[::1", "http://[::1]",
     "https://h/\x00", "https://h h", "file:///etc/passwd", "http://é.example", "memory:", "\udcff"]
)  # fmt: skip


def read(environ: dict[str, str]) -> Settings | None:
    return attempt("settings", lambda: load_settings(environ), InvalidInputError)


@fuzz(quick=125)
@given(st.dictionaries(st.one_of(st.sampled_from(NAMES), texts().map("COSTGUARD_{}".format), texts()), NEAR | texts()))
def test_any_environment_is_understood_or_refused(environ: dict[str, str]) -> None:
    settings = read(environ)
    if settings is None:
        return
    assert settings.language in LANGUAGES
    assert settings.log_level in LOG_LEVELS
    assert settings.cloud in CLOUDS
    assert not [name for name in environ if name.startswith("COSTGUARD_") and name not in NAMES], "a typo was ignored"
    assert settings.paused or environ.get("COSTGUARD_PAUSED", "").strip().lower() in {"", "0", "false", "no"}
    repr(settings).encode("utf-8", "surrogatepass")


@fuzz(quick=50)
@given(
    st.one_of(
        st.sampled_from(["off", "of", "null", "0.0", "00", "nope", "ture", "-1", "yes", "False", " no "]), texts()
    )
)
def test_a_kill_switch_is_off_only_where_it_says_so(text: str) -> None:
    """Rule 20: what cannot be read is set."""
    settings = read({"COSTGUARD_PAUSED": text})
    assert settings is not None
    assert settings.paused or text.strip().lower() in {"", "0", "false", "no"}


@fuzz(quick=40)
@given(st.sampled_from(sorted(SECRETS)), st.text(alphabet="abcdefgh@:/?#[]\\ ", min_size=4, max_size=30), st.data())
def test_no_refusal_and_no_repr_repeats_a_secret(name: str, noise: str, data: st.DataObject) -> None:
    secret = f"QX{noise}ZQ"
    others: dict[str, Any] = data.draw(st.dictionaries(st.sampled_from(NAMES), NEAR, max_size=4))
    environ = {**others, name: secret}
    words = []
    try:
        words.append(repr(load_settings(environ)))
    except InvalidInputError as err:
        words.append(str(err))
    assert secret not in words[0]


def test_a_very_long_name_is_refused_at_once() -> None:
    assert read({"COSTGUARD_" + "A" * 65_000: "1"}) is None
    assert read({"COSTGUARD_PAUSED\x1b[31m": "1", "COSTGUARD_\udcff": "1"}) is None


def test_every_value_may_be_very_long() -> None:
    for name in NAMES:
        read({name: "x" * 60_000})
        read({name: "http://" + "[" * 60_000})
        read({name: "http://" + "a." * 30_000})
