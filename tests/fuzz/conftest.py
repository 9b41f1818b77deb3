"""Says at the end how much was tried."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fuzz import bounds


def pytest_configure() -> None:
    """Standard error as it is before pytest captures it."""
    bounds.HANGS_TO.append(os.dup(2))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Inputs are meant to be large here; hypothesis warns of showing them."""
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.filterwarnings("ignore:Generating overly large repr"))


@pytest.fixture(autouse=True)
def _unwatched() -> Iterator[None]:
    """Hangs are looked out for while inputs are tried, not in whatever test comes next."""
    yield
    bounds.unwatched()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if bounds.TRIED:
        terminalreporter.section("inputs tried")
        for parser, tried in sorted(bounds.TRIED.items()):
            terminalreporter.write_line(f"{parser:<24}{tried:>9}, refused {bounds.REFUSED[parser]:>9}")
