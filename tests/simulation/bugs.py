"""The planted bugs: every guard taken out or weakened once."""

from __future__ import annotations

from tests.simulation.bugs_acting import ACTING
from tests.simulation.bugs_answering import ANSWERING
from tests.simulation.bugs_budget import BUDGETS
from tests.simulation.bugs_deciding import DECIDING
from tests.simulation.bugs_settings import SETTINGS
from tests.simulation.bugs_wires import WIRES
from tests.simulation.planting import Bug

BUGS: tuple[Bug, ...] = (*DECIDING, *ACTING, *ANSWERING, *BUDGETS, *SETTINGS, *WIRES)


def bug_named(name: str) -> Bug:
    """One of them.

    Raises:
        KeyError: there is none of this name.
    """
    return {bug.name: bug for bug in BUGS}[name]
