"""What a verdict rests on, in one line for people and in full for machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from itertools import zip_longest
from math import isfinite
from typing import TYPE_CHECKING

from costguard.domain.findings import Evidence
from costguard.domain.signals import SignalName, SignalSummary
from costguard.report.json_values import moment
from costguard.report.words.sentences import UNITS, Language, choice, number, phrase, readable

if TYPE_CHECKING:
    from costguard.report.plan import shapes


def evidence_json(evidence: Evidence | None) -> shapes.Evidence | None:
    """Window, worst coverage and oldest of the newest samples of what was judged, and every signal."""
    if evidence is None:
        return None
    return {
        "since": moment(evidence.since),
        "until": moment(evidence.until),
        "coverage": None if evidence.coverage is None else round(evidence.coverage, 4),
        "newest_at": moment(evidence.newest_at),
        "signals": [
            _signal_json(signal, judged=judged)
            for signals, judged in ((evidence.signals, True), (evidence.shown, False))
            for signal in signals
        ],
    }


def _signal_json(signal: SignalSummary, *, judged: bool) -> shapes.Signal:
    return {
        "name": signal.name.value,
        "device": signal.device,
        "maximum": None if signal.maximum is None else round(signal.maximum, 4),
        "unit": UNITS[signal.name],
        "samples": signal.samples,
        "expected": signal.expected,
        "newest_at": moment(signal.newest_at),
        "statistic": signal.statistic.value,
        "source": signal.source,
        "outline": [None if value is None else round(value, 4) for value in signal.outline],
        "sustained": None if signal.sustained is None else round(signal.sustained, 4),
        "judged": judged,
    }


def evidence_words(evidence: Evidence | None, language: Language = Language.EN) -> str:
    """`GPU 8x ≤ 1.2 %, CPU ≤ 3 %; 100 % of samples; newest …; beside it: power 8x ≤ 31 W`; empty without evidence."""
    if evidence is None:
        return ""
    lines = _lines(evidence.signals, language)
    newest = evidence.newest_at
    if not lines:
        return ""
    return phrase(
        "evidence",
        language,
        signals=", ".join(lines),
        coverage_percent="" if evidence.coverage is None else number(evidence.coverage * 100),
        newest_at="" if newest is None else utc_words(newest),
        shown=", ".join(
            _lines([one for one in evidence.shown if one.maximum is not None and isfinite(one.maximum)], language)
        ),
    )


def _lines(signals: Sequence[SignalSummary], language: Language) -> list[str]:
    found = {signal.name for signal in signals}
    names = [name for name in SignalName if name in found]  # the GPU first, whatever order a source tells them in
    return [_signal_words([one for one in signals if one.name is name], language) for name in names]


_BLOCKS = "▁▂▃▄▅▆▇█"
_UNSEEN = "·"
_FULL_PERCENT = 100.0
_DRAWN = (SignalName.GPU, SignalName.CPU)  # percent, so that one height means one thing; the first that was measured


def picture(evidence: Evidence | None) -> str:
    """Utilisation over the window as block characters, 0 to 100 %, the busiest device at each moment; empty without.

    `·` is a stretch without a sample.
    """
    if evidence is None:
        return ""
    for name in _DRAWN:
        seen = (*evidence.signals, *evidence.shown)
        outlines = [signal.outline for signal in seen if signal.name is name and signal.outline]
        if outlines and any(value is not None for outline in outlines for value in outline):
            return "".join(map(_block, _highest_by_stretch(outlines)))
    return ""


def _highest_by_stretch(outlines: Sequence[Sequence[float | None]]) -> Iterator[float | None]:
    for values in zip_longest(*outlines):
        yield max((value for value in values if value is not None), default=None)


def _block(value: float | None) -> str:
    if value is None:
        return _UNSEEN
    height = int(value / _FULL_PERCENT * len(_BLOCKS))
    return _BLOCKS[min(height, len(_BLOCKS) - 1)]


def _signal_words(signals: Iterable[SignalSummary], language: Language) -> str:
    same = tuple(signals)
    name = same[0].name
    maxima = [signal.maximum for signal in same if signal.maximum is not None]
    devices = len(same) if len(same) > 1 else ""
    said = choice(name.value, language)
    if not maxima:
        return phrase("evidence_silent", language, signal=said, devices=devices)
    value, unit = readable(name, max(maxima))
    return phrase("evidence_signal", language, signal=said, devices=devices, maximum=number(value), unit=unit)


def utc_words(value: datetime) -> str:
    """A time for tables: to the minute, UTC."""
    return value.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
