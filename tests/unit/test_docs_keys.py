"""docs/keys.md shows the matrices that the code looks keys up in."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from costguard.domain.keys import KeyManager, KeyOrigin, KeyUsage, MultiRegion, Rotatability, RotationMeans
from costguard.providers.kit.kms.answers import IN_NO_ROW, KeyFacts, MatrixRow, rotatability_of
from costguard.report.notices.remediations import rotation_cost_words

PAGE = Path(__file__).parents[2] / "docs" / "keys.md"
BEGINS, ENDS = "<!-- matrices -->\n", "<!-- end of matrices -->\n"
VENDORS = {"aws": "AWS", "alibaba": "Alibaba Cloud", "tencent": "Tencent Cloud"}
KNOWN = {
    usage: (spec, symmetric)
    for usage, spec, symmetric in (
        (KeyUsage.ENCRYPT, "SYMMETRIC", True),
        (KeyUsage.SIGN, "PAIR", False),
        (KeyUsage.AGREE, "PAIR", False),
        (KeyUsage.MAC, "HMAC", True),
    )
}


def matrices() -> dict[str, Sequence[MatrixRow]]:
    modules = {name: f"costguard.providers.{provider}.kms.answers" for provider, name in VENDORS.items()}
    return {
        name: importlib.import_module(module).MATRIX
        for name, module in modules.items()
        if importlib.util.find_spec(module) is not None
    }


def every_kind() -> list[KeyFacts]:
    flags = (False, True)
    return [
        KeyFacts(spec, symmetric, usage, origin, manager, region, default, in_instance, in_hardware, told)
        for (usage, (spec, symmetric)), origin, manager, region, default, in_instance, in_hardware, told in (
            itertools.product(
                KNOWN.items(), KeyOrigin, KeyManager, MultiRegion, flags, flags, flags, (None, False, True)
            )
        )
    ]


def table(matrix: Sequence[MatrixRow]) -> str:
    """The rows as a Markdown table, in the order in which they are looked up."""
    names = ("key", "set to rotate", "on demand", "by a successor", "a rotation costs", "note", "source")
    head = f"| {' | '.join(names)} |\n|{'---|' * len(names)}\n"
    return head + "".join(_line(row) for row in matrix)


def tables(matrices: Mapping[str, Sequence[MatrixRow]]) -> str:
    """One table under a heading for each vendor, by its name for people."""
    return "\n".join(f"### {vendor}\n\n{table(matrix)}" for vendor, matrix in matrices.items())


def _line(row: MatrixRow) -> str:
    allows = row.allows
    on_demand = "yes" if RotationMeans.ON_DEMAND in allows.means else "no"
    cost = rotation_cost_words(allows.cost)
    told = f"{cost} ({allows.cost.as_of})" if allows.cost.as_of else cost
    cells = (row.when, _set_to_rotate(allows), on_demand, _by_successor(allows), told, allows.note, allows.source)
    return f"| {' | '.join(cells)} |\n"


def _by_successor(allows: Rotatability) -> str:
    if RotationMeans.SUCCESSOR not in allows.means:
        return "no"
    return "yes" if allows.succeeds else "by its owner"


def _set_to_rotate(allows: Rotatability) -> str:
    if RotationMeans.AUTOMATIC not in allows.means:
        return "no"
    if allows.shortest_days == allows.longest_days:
        return f"every {allows.shortest_days} days exactly"
    return f"every {allows.shortest_days} to {allows.longest_days} days"


@pytest.mark.release
def test_the_page_shows_the_matrices_as_the_code_has_them() -> None:
    """Where this fails: put what it expects between the two marks of the page."""
    shown = PAGE.read_text(encoding="utf-8").partition(BEGINS)[2].partition(ENDS)[0]
    written = f"\n{tables(matrices())}\n"
    assert shown == written, json.dumps(written)


def test_every_row_can_be_reached_and_is_one_line_with_a_source() -> None:
    kinds = every_kind()
    for vendor, matrix in matrices().items():
        reached = {id(next((row for row in matrix if row.holds(kind)), None)) for kind in kinds}
        assert [row.when for row in matrix if id(row) not in reached] == [], vendor
        words = [text for row in matrix for text in (row.when, row.allows.note, row.allows.source)]
        assert [text for text in words if "\n" in text or "|" in text] == [], vendor
        assert all(row.when and row.allows.source for row in matrix), vendor


def test_days_are_told_exactly_where_a_key_can_rotate_by_itself() -> None:
    for vendor, matrix in matrices().items():
        for row in matrix:
            allows = row.allows
            automatic = RotationMeans.AUTOMATIC in allows.means
            assert (allows.shortest_days is not None, allows.longest_days is not None) == (automatic, automatic), vendor
            if allows.shortest_days is not None and allows.longest_days is not None:
                assert 0 < allows.shortest_days <= allows.longest_days, vendor


def test_nothing_is_allowed_of_a_key_whose_kind_is_not_known() -> None:
    """A new usage or origin of a vendor must not be taken for one that rotates."""
    for vendor, matrix in matrices().items():
        for origin, usage in ((KeyOrigin.UNKNOWN, KeyUsage.ENCRYPT), (KeyOrigin.CLOUD, KeyUsage.UNKNOWN)):
            facts = KeyFacts("NEW", symmetric=True, usage=usage, origin=origin, manager=KeyManager.CUSTOMER)
            assert rotatability_of(matrix, facts).means <= {RotationMeans.SUCCESSOR}, vendor
    assert IN_NO_ROW.means == frozenset()
