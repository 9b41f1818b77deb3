"""A back-test as the JSON that `costguard policy backtest --json` documents; its shape is `backtest.schema.json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from costguard.domain.backtests import ASSUMPTIONS, HORIZONS, BackTest, Point, Tallied, Tally
from costguard.report.json_values import moment, money_json
from costguard.report.words.sentences import Language, clean
from costguard.report.words.sentences import in_backtest as say

if TYPE_CHECKING:
    from costguard.report.backtest import shapes

BACKTEST_SCHEMA: Final = 1


def backtest_json(test: BackTest, language: Language = Language.EN) -> shapes.Replayed:
    """The whole back-test for machines; amounts are exact decimal strings, one for each currency."""
    return {
        "schema": BACKTEST_SCHEMA,
        "since": moment(test.terms.since),
        "until": moment(test.terms.until),
        "every_seconds": int(test.terms.every.total_seconds()),
        "horizons": list(HORIZONS),
        "rows": test.basis.rows,
        "doubted": test.basis.doubted,
        "unlisted": test.basis.unlisted,
        "assumptions": [{"code": name, "words": say(f"assumes_{name}", language)} for name in ASSUMPTIONS],
        "new": _tallied(test.new),
        "current": None if test.current is None else _tallied(test.current),
        "grid": [_point(each) for each in test.points],
    }


def _tallied(found: Tallied) -> shapes.Tallied:
    return {
        "policy_digest": found.policy_digest,
        "unmatched": found.unmatched,
        "total": _tally(found.total),
        "by_rule": [{"name": clean(each.name), **_tally(each)} for each in found.by_rule],
        "by_team": [{"name": clean(each.name), **_tally(each)} for each in found.by_team],
    }


def _tally(tally: Tally) -> shapes.Tally:
    return {
        "machines": tally.machines,
        "exempt": tally.exempt,
        "unmeasured": tally.unmeasured,
        "recorded_hours": tally.recorded_hours,
        "idle_hours": tally.idle_hours,
        "unmeasured_hours": tally.unmeasured_hours,
        "stopped": tally.stopped,
        "stops": tally.stops,
        "terminations": tally.terminations,
        "came_back_terminated": tally.came_back_terminated,
        "reclaimed_hours": tally.reclaimed_hours,
        "uncounted_hours": tally.uncounted_hours,
        "unpriced_hours": tally.unpriced_hours,
        "reclaimed": [money_json(each) for each in tally.reclaimed],
        "regret": [
            {
                "within_hours": each.hours,
                "yes": each.yes,
                "no": each.no,
                "undetermined": each.undetermined,
                "reclaimed_hours_per_regret": tally.hours_per_regret(each.hours),
            }
            for each in tally.regrets
        ],
    }


def _point(point: Point) -> shapes.Point:
    return {
        "gpu_max_below_percent": point.threshold,
        "window_seconds": None if point.window is None else int(point.window.total_seconds()),
        "best": point.best,
        **_tally(point.tally),
    }
