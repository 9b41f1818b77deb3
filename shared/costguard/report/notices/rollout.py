"""The announcement of a step of a rollout."""

from __future__ import annotations

from costguard.planning.rollout import REST, RolloutStanding
from costguard.report.notices.machines import Notice, local_time
from costguard.report.words.sentences import Language, clean, number, phrase


def scope_words(standing: RolloutStanding, language: Language = Language.EN) -> str:
    """Whom an entry is about."""
    return phrase("rollout_rest", language) if standing.entry.team == REST else clean(standing.entry.scope)


def announcement(standing: RolloutStanding, zone: str, language: Language = Language.EN) -> Notice:
    """What the next step means, from when on, and what would take it back."""
    step, at = standing.step, standing.at
    if step is None or at is None:
        message = f"{standing.entry.scope}: no step is left to announce"
        raise ValueError(message)
    day = local_time(at, zone, language)
    title = phrase(
        f"rollout_announced_{step.mode.name.lower()}", language, day=day, scope=scope_words(standing, language)
    )
    lines = [phrase("rollout_announced_when", language, day=day), phrase("rollout_announced_each", language)]
    if step.regret_below is not None:
        percent = number(float(step.regret_below * 100))
        lines.append(phrase("rollout_announced_condition", language, percent=percent, rule=clean(step.in_shadow)))
    return Notice(title, (), tuple(lines))
