"""What a digest is made with on this host: charts where the plotting library is, and the place that keeps pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from costguard.connections.objects import open_objects
from costguard.report.page.page import Drawing

if TYPE_CHECKING:
    from costguard.engine.digest import Means
    from costguard.engine.ledger.memory import Memory
    from costguard.policy.model.policy import Policy
    from costguard.ports import Clock
    from costguard.settings import Settings

_CHARTS_NEED = frozenset({"matplotlib", "numpy"})


def drawing() -> Drawing:
    """What draws charts here; without the plotting library none, and a page says so."""
    try:
        from costguard.adapters.charts import svg
    except ModuleNotFoundError as err:
        if (err.name or "").partition(".")[0] not in _CHARTS_NEED:
            raise
        return Drawing(None, f"{err.name} is not installed: pip install 'gpu-costguard[charts]'")
    return Drawing(svg)


def means_of(settings: Settings, clock: Clock) -> Means:
    """The means that these settings and this host's packages give.

    Raises:
        InvalidInputError: COSTGUARD_REPORTS is no place to keep files.
    """
    from costguard.engine.digest import Means

    objects, draws = open_objects(settings, clock), drawing()
    if draws.draw is None:
        return Means(draws, None, objects)
    from costguard.adapters.charts import png

    return Means(draws, png, objects)


def tell_digest(settings: Settings, policy: Policy, memory: Memory, run_id: str, clock: Clock) -> dict[str, Any]:
    """One scheduled digest, as a function host asks for it; returns its figures.

    Raises:
        LedgerError: memory failed.
    """
    from costguard.connections.people import notifier_over
    from costguard.engine.digest import digest_summary, run_digest
    from costguard.report.words.sentences import Language

    notifier, means = notifier_over(settings, clock.now), means_of(settings, clock)
    language = Language(settings.language)
    return digest_summary(run_digest(memory, policy, notifier, clock, run_id, means, language))
