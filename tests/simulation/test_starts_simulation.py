"""A share of the stories of machines that are started again; each planted bug still fits and is on the page."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests.simulation.planting import Bug, edited
from tests.simulation.starts import BUGS, play

PAGE = Path(__file__).parent / "README.md"


def test_no_start_of_the_share_breaks_a_rule() -> None:
    stories = [play(seed) for seed in (4, 5)]
    assert [story.violations for story in stories] == [[], []]
    assert sum(len(story.started) for story in stories) >= 3, "a share in which nothing starts proves nothing"


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_every_planted_bug_fits_the_code_and_is_on_the_page(bug: Bug) -> None:
    for edit in bug.edits:
        spec = importlib.util.find_spec(edit.module)
        assert spec is not None
        assert spec.origin is not None
        edited(Path(spec.origin).read_text(encoding="utf-8"), [edit])
    assert f"`{bug.name}`" in PAGE.read_text(encoding="utf-8")
