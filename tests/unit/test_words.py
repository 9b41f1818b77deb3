"""Every reason has words in every language, and outside text cannot harm a terminal or a sentence."""

from __future__ import annotations

import re
from dataclasses import fields
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import SHARD, usd

from costguard.domain.actions import Saving, Verb
from costguard.domain.findings import Verdict
from costguard.domain.money import Money
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.resources import AcceleratorKind, Gap, GapKind
from costguard.report.waste.day_one import UNMEASURED
from costguard.report.words.message_catalog import MessageCatalog
from costguard.report.words.sentences import (
    Language,
    book_in,
    clean,
    explain,
    fill,
    fix,
    gap,
    net_saving,
    saving_lines,
    sentence,
    short,
    span,
)

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
    book = book_in(language)
    template = book.reasons[code] + book.fixes.get(code, "")
    names = [name.split("|")[0] for name in re.findall(r"\{([a-z0-9_|]+)\}", template)]
    facts = {name: f"<{name}>" for name in names}

    said = explain(Reason(code, facts), language)

    assert [name for name in names if f"<{name}>" not in said] == []
    assert not re.search(r"[\[\]{}]", said)


@CODES
def test_both_languages_use_the_same_facts(code: ReasonCode) -> None:
    used = [set(re.findall(r"\{[a-z0-9_|]+\}", book_in(language).reasons[code])) for language in Language]

    assert used[0] == used[1]


@pytest.mark.parametrize(
    "name", [field.name for field in fields(MessageCatalog) if field.name not in {"space", "list_separator"}]
)
def test_both_books_have_the_same_entries(name: str) -> None:
    english, chinese = (getattr(book_in(language), name) for language in Language)

    assert set(english) == set(chinese)
    assert all(str(text).strip() or name == "gap_effects" for text in [*english.values(), *chinese.values()])


@LANGUAGES
def test_closed_lists_are_complete(language: Language) -> None:
    book = book_in(language)

    assert set(book.reasons) == set(ReasonCode)
    assert set(book.verdicts) == set(Verdict)
    assert set(book.verbs) == set(Verb)
    assert set(book.gap_kinds) == set(GapKind)
    assert set(book.device_fixes) == set(AcceleratorKind)


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
    names = re.findall(r"\{([a-z0-9_|]+)\}", book_in(language).reasons[code])
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
