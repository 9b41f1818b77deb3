"""What came of the tests of a policy, for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from costguard.policy.trial.documents import TrialOutcome
from costguard.report.policy.trial import Came, Trial
from costguard.report.words.sentences import Language, clean, phrase, sentence, verdict

if TYPE_CHECKING:
    from costguard.report.policy import shapes


def trial_lines(trials: Sequence[Trial], language: Language = Language.EN) -> tuple[str, ...]:
    """A line for each that passed; of each that failed what was expected, what was found, and what came of it."""
    return tuple(line for trial in trials for line in _lines(trial, language))


def trials_total(trials: Sequence[Trial], language: Language = Language.EN) -> str:
    """How many passed and failed."""
    failed = sum(not trial.passed for trial in trials)
    return phrase("policy_test_total", language, count=len(trials), passed=len(trials) - failed, failed=failed)


def trials_json(trials: Sequence[Trial], language: Language = Language.EN) -> shapes.PolicyTest:
    """The document of `costguard policy test --json`."""
    failed = sum(not trial.passed for trial in trials)
    return {
        "schema": 1,
        "passed": len(trials) - failed,
        "failed": failed,
        "tests": [
            {
                "path": trial.path,
                "line": trial.line,
                "name": clean(trial.name),
                "passed": trial.passed,
                "problem": trial.came.problem or None,
                "missed": [
                    {"key": each.key, "expected": clean(each.expected), "found": clean(each.found)}
                    for each in trial.missed
                ],
                "came": _came_json(trial.came, language),
            }
            for trial in trials
        ],
    }


def _lines(trial: Trial, language: Language) -> Iterator[str]:
    word = phrase("policy_test_passed" if trial.passed else "policy_test_failed", language)
    yield f"{word}  {trial.path}:{trial.line}: {clean(trial.name)}"
    if trial.passed:
        return
    if trial.came.problem:
        yield "    " + phrase(f"policy_test_{trial.came.problem}", language)
    for missed in trial.missed:
        facts = {"what": missed.key, "expected": clean(missed.expected), "found": clean(missed.found)}
        yield "    " + phrase("policy_test_missed", language, **facts)
    yield "    " + phrase("policy_test_came", language, words=came_words(trial.came, language))


def came_words(came: Came, language: Language = Language.EN) -> str:
    """What came of the machine: rule, verdict and why, then its next step."""
    finding = came.finding
    rule = clean(finding.rule) or phrase("policy_test_no_rule", language)
    said = f"{rule}: {verdict(finding.verdict, language)}. {sentence(finding.reason, language)}"
    if came.outcome is TrialOutcome.NONE:
        return said
    at = came.next_at.isoformat(timespec="minutes") if came.next_at is not None else ""
    step = phrase(f"policy_test_{came.outcome.value}", language, step=came.step, at=at)
    why = sentence(came.held, language) if came.held is not None else ""
    return " ".join(part for part in (said, step, why) if part)


def _came_json(came: Came, language: Language) -> shapes.Came:
    finding = came.finding
    return {
        "rule": clean(finding.rule) or None,
        "verdict": finding.verdict.value,
        "reason": finding.reason.code.value,
        "owner": clean(finding.owner) or None,
        "owner_source": finding.owner_source,
        "next": came.step or None,
        "outcome": came.outcome.value,
        "held_by": came.held.code.value if came.held is not None else None,
        "next_at": came.next_at.isoformat() if came.next_at is not None else None,
        "words": came_words(came, language),
    }
