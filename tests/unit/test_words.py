"""Every reason has words in every language, and outside text cannot harm a terminal or a sentence."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import ModuleType

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import SHARD, usd
from tests.words.catalogues import compiled, forms, is_stale, messages, read, texts

from costguard.domain.actions import Saving, Verb
from costguard.domain.findings import Verdict
from costguard.domain.money import Money
from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.domain.resources import AcceleratorKind, Gap, GapKind
from costguard.report.waste.day_one import UNMEASURED
from costguard.report.words import catalogue
from costguard.report.words.catalogue import template
from costguard.report.words.sentences import (
    Language,
    clean,
    explain,
    fill,
    fix,
    gap,
    net_saving,
    phrase,
    saving_lines,
    sentence,
    short,
    span,
)

FIELD = re.compile(r"\{([a-z0-9_|]+)(?::[a-z_]+)?\}")
LANGUAGES = pytest.mark.parametrize("language", list(Language))
CODES = pytest.mark.parametrize("code", list(ReasonCode), ids=lambda code: code.value)


@LANGUAGES
@CODES
def test_every_reason_has_a_whole_sentence_without_any_fact(code: ReasonCode, language: Language) -> None:
    said = sentence(Reason(code), language)

    assert said.endswith("." if language is Language.EN else "。")
    assert not re.search(r"[\[\]{}?]", said)


@LANGUAGES
@CODES
def test_every_reason_uses_every_fact_its_template_names(code: ReasonCode, language: Language) -> None:
    """With all facts known nothing is left out, and no brackets or braces remain."""
    written = texts(language.value)
    template = "".join((*written["reasons", code.value], *written.get(("fixes", code.value), ())))
    names = [name.split("|")[0] for name in re.findall(r"\{([a-z0-9_|]+)\}", template)]
    facts = {name: f"<{name}>" for name in names}

    said = explain(Reason(code, facts), language)

    assert [name for name in names if f"<{name}>" not in said] == []
    assert not re.search(r"[\[\]{}]", said)


@LANGUAGES
def test_every_message_can_be_said_with_all_its_facts_and_with_none(language: Language) -> None:
    for (group, key), written in texts(language.value).items():
        for count in (None, 1, 2, 5):
            text = template(group, key, language.value, count)
            assert text in written, (group, key)
            names = {name for choice in FIELD.findall(text) for name in choice.split("|")}
            for facts in ({name: f"<{name}>" for name in names}, {}):
                assert not re.search(r"[\[\]{}]", fill(text, facts, language)), (group, key)


def test_both_languages_say_everything_with_the_same_facts() -> None:
    """But for how things are counted, which is a matter of each language."""
    english, chinese = (
        {key: said for key, said in texts(each.value).items() if key[0] != "counts"} for each in Language
    )

    assert english.keys() == chinese.keys()
    for key, said in english.items():
        named, named_in_chinese = ({*FIELD.findall("".join(one))} for one in (said, chinese[key]))
        assert named == named_in_chinese, key


@LANGUAGES
def test_no_message_is_empty_or_marked_as_doubtful(language: Language) -> None:
    assert [key for key, one in messages(read(language.value)).items() if one.fuzzy or not all(forms(one))] == []


@LANGUAGES
def test_the_compiled_catalogue_is_what_its_source_says(language: Language) -> None:
    """`python -m tests.words` compiles it again."""
    assert not is_stale(language.value)


@LANGUAGES
def test_closed_lists_are_complete(language: Language) -> None:
    written = texts(language.value)
    lists: Mapping[str, type[Enum]] = {
        "reasons": ReasonCode,
        "verdicts": Verdict,
        "verbs": Verb,
        "gap_kinds": GapKind,
        "device_fixes": AcceleratorKind,
    }
    for group, members in lists.items():
        assert {key for of, key in written if of == group} == {each.value for each in members}


@pytest.fixture
def catalogues(tmp_path: Path) -> Iterator[ModuleType]:
    """The module that reads catalogues, with a whole English one and none in Chinese."""
    package = tmp_path / "package_of_words"
    for language in Language:
        (package / "locale" / language.value / "LC_MESSAGES").mkdir(parents=True)
    (package / "locale/en/LC_MESSAGES/costguard.mo").write_bytes(compiled("en"))
    source = Path(catalogue.__file__)
    copy = package / source.name
    copy.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("package_of_words", copy)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["package_of_words"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["package_of_words"]


_CHINESE = compiled("zh")
_BROKEN = {
    "missing": None,
    "empty": b"",
    "another file": b"no catalogue at all",
    "cut short": _CHINESE[:2000],
    "no text": _CHINESE.replace("。".encode(), b"\xff\xfe\xfd"),  # as many bytes, and no UTF-8
    "no charset": _CHINESE.replace(b"charset=utf-8", b"charset=utf-x"),
    "no plural": _CHINESE.replace(b"plural=0", b"plural=$"),
    "no plural form": _CHINESE.replace(b"; plural=0;", b"; neither 0;"),
}


@pytest.mark.parametrize("broken", _BROKEN.values(), ids=_BROKEN)
def test_a_language_whose_catalogue_is_missing_or_broken_is_said_in_english(
    catalogues: ModuleType, tmp_path: Path, broken: bytes | None
) -> None:
    if broken is not None:
        (tmp_path / "package_of_words/locale/zh/LC_MESSAGES/costguard.mo").write_bytes(broken)

    assert catalogues.template("phrases", "saves_unknown", "zh") == texts("en")["phrases", "saves_unknown"][0]


def test_a_message_that_a_language_lacks_is_said_in_english(catalogues: ModuleType, tmp_path: Path) -> None:
    nearly_nothing = Catalog("zh")
    nearly_nothing.add("saves_unknown", "不知道", context="phrases")
    with (tmp_path / "package_of_words/locale/zh/LC_MESSAGES/costguard.mo").open("wb") as file:
        write_mo(file, nearly_nothing)

    assert catalogues.template("phrases", "saves_unknown", "zh") == "不知道"
    assert catalogues.template("phrases", "net", "zh") == texts("en")["phrases", "net"][0]


@pytest.mark.parametrize(
    ("rules", "files", "said"),
    [
        (1, 1, "The policy is valid: 1 rule in 1 file."),
        (2, 1, "The policy is valid: 2 rules in 1 file."),
        (0, 3, "The policy is valid: 0 rules in 3 files."),
        (1.0, 1.5, "The policy is valid: 1 rule in 1.5 files."),
        ("1", "1,001", "The policy is valid: 1 rule in 1,001 files."),
    ],
)
def test_two_counts_in_a_sentence_have_a_plural_each(rules: FactValue, files: FactValue, said: str) -> None:
    assert phrase("policy_valid", rules=rules, files=files) == said
    assert phrase("policy_valid", Language.ZH, rules=2, files=1) == "策略有效：1 个文件，2 条规则。"


def test_a_whole_sentence_follows_what_it_counts() -> None:
    assert phrase("letter_mended", count=1) == "1 setting was changed"
    assert phrase("letter_mended", count=2, owner="search") == "2 settings of search were changed"


def test_a_count_that_is_unknown_leaves_its_part_out() -> None:
    assert fill("Refused[ {failures:times}].", {"failures": ""}) == "Refused."
    assert fill("Refused {failures:times}.", {}) == "Refused ? times."


def test_a_message_that_nobody_wrote_is_shown_as_its_id() -> None:
    assert phrase("nobody_wrote_this", Language.ZH) == "phrases.nobody_wrote_this"


@LANGUAGES
@pytest.mark.parametrize("code", sorted(UNMEASURED, key=str))
def test_everything_unmeasured_says_what_to_do(code: ReasonCode, language: Language) -> None:
    assert fix(Reason(code), language)


def test_a_missing_device_metric_names_what_to_install_for_the_family() -> None:
    assert "nvidia_gpu" in fix(Reason(ReasonCode.NO_DEVICE_METRIC, {"kind": "nvidia_gpu"}))
    assert "nvidia" not in fix(Reason(ReasonCode.NO_DEVICE_METRIC, {"kind": "gaudi"}))


def test_measurements_are_said_with_their_unit() -> None:
    network = Reason(ReasonCode.BUSY, {"signal": "network", "device": "", "maximum": 102400.0, "bound": 51200.0})

    assert sentence(network) == "In use: network reached 100 KiB/s, the bound is 50."


def test_an_unknown_size_is_left_out_and_never_said_as_minus_one() -> None:
    assert sentence(Reason(ReasonCode.LOCAL_DISK, {"local_disk_gib": -1.0})) == (
        "Held: stopping would destroy its local disks."
    )


def test_a_machine_never_touched_says_how_it_was_used() -> None:
    node = Reason(ReasonCode.KUBERNETES, {"manager": "training", "utilisation": "idle"})

    assert sentence(node) == "Is a Kubernetes node of training. Shown, never touched. It was idle."


def test_a_held_case_says_what_is_missing_in_its_measurement() -> None:
    held = Reason(ReasonCode.UNMEASURED, {"cause": "low_coverage", "coverage_percent": 80.0})

    assert "80 % arrived" in sentence(held)


def test_units_are_converted_once_inside_a_held_case() -> None:
    held = Reason(ReasonCode.UNMEASURED, {"cause": "busy", "signal": "network", "maximum": 102400.0, "bound": 51200.0})

    assert "network reached 100 KiB/s, the bound is 50" in sentence(held)


@pytest.mark.parametrize(
    ("outside", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;owned title\x07name", "name"),
        ("\x1b]8;;http://example.invalid\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mred", "red"),
        ("a\nb\tc\rd", "a b c d"),
        ("abc\u202egnp.exe", "abcgnp.exe"),
        ("\u2066in\u2069\u200b\ufeff", "in"),
        ("nul\x00bell\x07del\x7f", "nulbelldel"),
        ("half\ud800pair", "halfpair"),
        ("训练集群", "训练集群"),
    ],
)
def test_outside_text_is_made_safe(outside: str, shown: str) -> None:
    assert clean(outside) == shown


def test_outside_text_has_a_length_limit() -> None:
    assert len(clean("x" * 10_000)) == 200
    assert clean("x" * 10_000, limit=10) == "xxxxxxxxx…"


@given(st.text())
def test_cleaned_text_is_printable_and_stays_clean(text: str) -> None:
    once = clean(text)

    assert once.isprintable() or all(char.isspace() for char in once if not char.isprintable())
    assert clean(once) == once


@given(st.text(), st.sampled_from(ReasonCode), st.sampled_from(Language))
def test_facts_cannot_change_the_sentence_they_stand_in(text: str, code: ReasonCode, language: Language) -> None:
    """Braces, brackets and escapes in a fact are only text: filling happens once."""
    names = FIELD.findall(texts(language.value)["reasons", code.value][0])
    hostile = f"{{x}}[{{y}}]{text}"

    said = sentence(Reason(code, {name.split("|")[0]: hostile for name in names}), language)

    assert "\x1b" not in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("hours", "written"), [(1, "1h"), (24, "24h"), (48, "48h"), (72, "3d"), (168, "7d"), (1.5, "90m"), (0, "0s")]
)
def test_durations_read_as_policies_write_them(hours: float, written: str) -> None:
    assert span(timedelta(hours=hours)) == written


def test_a_part_with_an_unknown_fact_is_left_out() -> None:
    assert fill("Idle[ for {hours} h][ ({what})].", {"hours": 24.0}) == "Idle for 24 h."


def test_a_gap_says_where_why_and_what_to_grant() -> None:
    denied = Gap(SHARD, "inventory", GapKind.DENIED, "UnauthorizedOperation", "allow ec2:DescribeInstances")

    assert gap(denied) == (
        "aws:111122223333:us-east-1: instances not read (permission denied): UnauthorizedOperation; "
        "nothing is done there. To fix: allow ec2:DescribeInstances."
    )


def test_savings_say_what_stays_billed_and_the_net() -> None:
    saving = Saving(usd("32.77"), (("volume", usd("0.0110")), ("public_address", usd("0.005"))), ("local_disk_lost",))

    assert saving_lines(saving, Verb.STOP) == (
        "saves 32.77 USD an hour",
        "still billed: disks 0.0110 USD an hour",
        "still billed: public addresses 0.0050 USD an hour",
        "net 32.75 USD an hour",
        "risk: data on its local disks is lost",
    )


def test_an_unknown_price_is_said_and_gives_no_net() -> None:
    saving = Saving(usd("1"), (("volume", None),))

    assert net_saving(saving) is None
    assert saving_lines(saving, Verb.STOP) == ("saves 1.00 USD an hour", "still billed: disks price unknown")
    assert saving_lines(Saving(None), Verb.STOP) == ("saves an unknown amount: its price is unknown",)


def test_currencies_are_never_netted_against_each_other() -> None:
    assert net_saving(Saving(usd("1"), (("volume", Money(Decimal(1), "CNY")),))) is None


def test_a_terminate_is_not_said_to_save_an_unknown_amount() -> None:
    """The instance's hours ended with the stop; what ends now are its disks."""
    lines = saving_lines(Saving(None, (("volume", usd("0.5")),)), Verb.TERMINATE)

    assert "unknown" not in " ".join(lines)


def test_a_word_that_is_no_code_is_shown_cleaned() -> None:
    assert short("something\x1b[2Jnew") == "somethingnew"
    assert short("kill_switch") == "Held: Costguard is paused"
