"""A share of the stories of exceptions that people ask for; each planted bug still fits and is on the page."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests.simulation.asks import BUGS, play
from tests.simulation.planting import Bug, edited

PAGE = Path(__file__).parent / "README.md"


def test_no_exception_of_the_share_breaks_a_rule() -> None:
    stories = [play(seed) for seed in (2, 5)]
    assert [story.violations for story in stories] == [[], []]
    assert sum(story.agreements for story in stories) >= 6, "a share in which nobody agrees proves nothing"
    assert sum(story.stops for story in stories) >= 6, "nor one in which nothing is stopped"


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_every_planted_bug_fits_the_code_and_is_on_the_page(bug: Bug) -> None:
    for edit in bug.edits:
        spec = importlib.util.find_spec(edit.module)
        assert spec is not None
        assert spec.origin is not None
        edited(Path(spec.origin).read_text(encoding="utf-8"), [edit])
    assert f"`{bug.name}`" in PAGE.read_text(encoding="utf-8")
