"""What holds for the whole suite."""

from __future__ import annotations

import gc
from importlib import import_module
from typing import Any

import pytest


def pytest_configure() -> None:
    """Look for no garbage while modules are imported and tests collected: next to all of that stays to the end."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of every later garbage collection, of which there are fewer."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 50)  # looking for garbage every 700 objects took a tenth of the suite's time


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Who has nothing left to do takes from the other, unless somebody chose: else one was done a quarter sooner."""
    if config.getoption("dist") != "load":
        return None
    return import_module("xdist.scheduler").WorkStealingScheduling(config, log)
