"""What holds for the whole suite."""

from __future__ import annotations

import gc
from importlib import import_module
from typing import Any

import pytest


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of every later garbage collection: it stays to the end."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Who has nothing left to do takes from the other, unless somebody chose: else one was done a quarter sooner."""
    if config.getoption("dist") != "load":
        return None
    return import_module("xdist.scheduler").WorkStealingScheduling(config, log)
