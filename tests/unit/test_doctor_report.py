"""Every answer of the doctor has words in both languages, a place in the schema, and one in the documentation."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from rich.console import Console
from tests.builders import NOW, SHARD
from tests.words.catalogues import texts

from costguard.cli.look.doctor import tell
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.resources import Gap, GapKind
from costguard.policy.sections import RunWait
from costguard.ports import CallCount
from costguard.report.doctor.checks import (
    VERDICTS,
    Code,
    Detail,
    Diagnosis,
    DoctorCheck,
    DoctorQuestion,
    Health,
    RunFault,
    RunTold,
)
from costguard.report.doctor.views import (
    MOST_SHOWN,
    calls_words,
    check_fix,
    check_lines,
    check_words,
    doctor_json,
    health_words,
    verdict_words,
)
from costguard.report.words.sentences import Language, phrase

SCHEMA = json.loads(files("costguard.report").joinpath("schemas/doctor.schema.json").read_text(encoding="utf-8"))
DOCS = Path(__file__).parents[2] / "docs" / "doctor.md"
LANGUAGES = pytest.mark.parametrize("language", list(Language))
CODES = pytest.mark.parametrize("code", list(Code), ids=lambda code: code.value)
DETAILS = (
    Detail("aws:1:r ec2:StopInstances", "UnauthorizedOperation\x1b[2J", "grant ec2:StopInstances"),
    Detail("aws:1:r:instance:i-1", Reason(ReasonCode.NO_DEVICE_METRIC, {"kind": "nvidia_gpu"})),
    Detail(str(SHARD), Gap(SHARD, "inventory", GapKind.DENIED, "no", "grant ec2:DescribeInstances")),
    Detail("idle_gpu", RunTold(RunFault.NOT_LATELY, NOW)),
)


def full(code: Code) -> DoctorCheck:
    """With every fact that its words name, and no other."""
    templates = [texts(language.value)["phrases", f"doctor_{code.value}"][0] for language in Language]
    names = {name for text in templates for name in re.findall(r"\{([a-z_]+)\}", text)}
    facts = {name: "behind" if name == "direction" else f"<{name}>" for name in names}
    return DoctorCheck(code, "aws:111122223333", facts, DETAILS)


def called(operation: str, *, changes: bool) -> CallCount:
    return CallCount(operation, "ec2:X", 2, changes_something=changes)


def test_every_code_has_a_verdict_and_every_question_a_good_answer() -> None:
    assert set(VERDICTS) == set(Code)
    assert {question for question, health in VERDICTS.values() if health is Health.OK} == set(DoctorQuestion)


@LANGUAGES
@CODES
def test_every_answer_is_a_whole_sentence_with_all_its_facts(code: Code, language: Language) -> None:
    check = full(code)

    said = check_words(check, language)

    assert said.endswith("." if language is Language.EN else "。")
    assert [name for name in check.facts if name != "direction" and f"<{name}>" not in said] == []
    assert not re.search(r"[\[\]{}]", said)


@LANGUAGES
@CODES
def test_whatever_is_not_in_order_says_what_mends_it(code: Code, language: Language) -> None:
    assert bool(check_fix(full(code), language)) is (VERDICTS[code][1] is not Health.OK)


@LANGUAGES
def test_no_words_are_left_over(language: Language) -> None:
    said = {name for _, name in texts(language.value) if name.startswith("doctor_fix_")}

    assert said == {f"doctor_fix_{code.value}" for code, (_, health) in VERDICTS.items() if health is not Health.OK}


@LANGUAGES
@pytest.mark.parametrize("code", [Code.LEDGER_READY, Code.CLOCK_OFF, Code.LEDGER_UNUSABLE, Code.CLOCK_WRONG])
def test_each_verdict_is_said_in_a_sentence(code: Code, language: Language) -> None:
    found = Diagnosis(NOW, (DoctorCheck(Code.SWITCH_OPEN), DoctorCheck(code)))

    assert "2" in verdict_words(found, language)
    assert not re.search(r"[\[\]{}?]", verdict_words(found, language))
    assert health_words(found.verdict, language)


def test_the_json_is_as_its_schema_says_whatever_the_answer() -> None:
    found = Diagnosis(NOW, tuple(full(code) for code in Code), (called("ec2:X (dry run)", changes=False),))

    document = doctor_json(found)

    for language in Language:
        jsonschema.validate(doctor_json(found, language), SCHEMA)
    assert document["verdict"] == "bars_enforcing"
    assert document["safe_to_enforce"] is False
    assert (document["proof"]["calls"], document["proof"]["dry_runs"], document["proof"]["changing_calls"]) == (2, 2, 0)
    assert "\x1b" not in json.dumps(document)


def test_a_schema_lets_no_changing_call_pass() -> None:
    changed = Diagnosis(NOW, (DoctorCheck(Code.SWITCH_OPEN),), (called("ec2:X", changes=True),))

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(doctor_json(changed), SCHEMA)
    assert "can change something: ec2:X" in calls_words(changed)


def test_people_are_shown_the_first_few_and_told_where_the_rest_is() -> None:
    many = DoctorCheck(
        Code.MEASURED_PARTLY, details=tuple(Detail(f"i-{number}", "x") for number in range(MOST_SHOWN + 5))
    )

    lines = list(check_lines(many))

    assert phrase("doctor_detail", where="i-0", said="x") in lines
    assert phrase("doctor_detail", where=f"i-{MOST_SHOWN}", said="x") not in lines
    assert lines[-1] == phrase("doctor_more", count=5)


LONGER = RunWait("idle_gpu", "research", "stop", timedelta(hours=36), timedelta(hours=24), timedelta(hours=48))


@pytest.mark.parametrize("fault", list(RunFault))
def test_what_is_wrong_with_runs_is_said_in_the_readers_language(fault: RunFault) -> None:
    check = DoctorCheck(Code.RUNS_MISSED, details=(Detail("idle_gpu", RunTold(fault, NOW, "0123456789ab", LONGER)),))

    english, chinese = (list(check_lines(check, language))[-1] for language in (Language.EN, Language.ZH))

    assert english.startswith("idle_gpu: ")
    assert chinese.startswith("idle_gpu：")
    known = ("idle_gpu", "0123456789ab", "UTC")
    assert not re.search("[a-z]{2}", re.sub("|".join(known), "", chinese)), "no English left"
    for fact in ("2026-03-02 09:00 UTC", "0123456789ab", "36h", "24h", "48h"):
        assert (fact in english) is (fact in chinese)


def test_several_names_stand_as_each_language_lists_them() -> None:
    check = DoctorCheck(Code.RUNS_NONE, facts={"functions": "idle_gpu, kms_rotation"})

    assert "idle_gpu, kms_rotation" in check_words(check)
    assert "idle_gpu、kms_rotation" in check_words(check, Language.ZH)


def test_a_terminal_gets_colour_and_lines_of_its_width(capfd: pytest.CaptureFixture[str]) -> None:
    found = Diagnosis(
        NOW, (DoctorCheck(Code.SWITCH_OPEN), DoctorCheck(Code.LEDGER_FORGETFUL, facts={"kind": "[red]memory"}))
    )

    tell(found, Language.EN, Console(width=50, force_terminal=True, color_system="standard", highlight=False))

    assert capfd.readouterr().out.splitlines() == [
        "\x1b[32mok              \x1b[0mThe kill switch can be read, and",
        "                nobody has pulled it.",
        "\x1b[1;31mDO NOT ENFORCE  \x1b[0mThe ledger ([red]memory) does not",
        "                outlive the process, so nothing",
        "                may be enforced.",
        "                  To mend it: Name a file or",
        "                  database with `--ledger` or",
        "                  COSTGUARD_LEDGER.",
        "0 calls; 0 that can change anything.",
        "\x1b[1;31mDo not enforce: 1 of 2 checks bars it.\x1b[0m",
    ]


def test_a_file_gets_whole_lines_without_colour(capfd: pytest.CaptureFixture[str]) -> None:
    tell(Diagnosis(NOW, (DoctorCheck(Code.LEDGER_FORGETFUL, facts={"kind": "memory\x1b[2J"}),)), Language.ZH)

    assert capfd.readouterr().out.splitlines() == [
        "不可执行  账本（memory）会随进程消失，因此不可执行。",
        "            处理办法：请用 `--ledger` 或 COSTGUARD_LEDGER 指定文件或数据库。",
        "共 0 次调用；可更改资源的调用 0 次。",
        "请勿执行（enforce）：1 项检查中有 1 项不允许。",
    ]


def test_an_unmeasured_machine_is_told_with_what_to_install() -> None:
    lines = list(check_lines(DoctorCheck(Code.MEASURED_PARTLY, details=DETAILS[1:2])))

    assert "Not measured" in lines[-1]
    assert "CloudWatch agent" in lines[-1]


@CODES
def test_every_code_is_documented_with_its_verdict(code: Code) -> None:
    question, health = VERDICTS[code]

    assert f"| `{question.value}` | `{code.value}` | `{health.value}` |" in DOCS.read_text(encoding="utf-8")
