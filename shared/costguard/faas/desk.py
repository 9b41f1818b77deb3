"""What an answer from outside is taken at: the ledger, the policy to weigh it by, and what shows people something."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol
from zoneinfo import ZoneInfo

from costguard.bootstrap import open_memory, published_policy, read_policy
from costguard.domain.errors import InvalidInputError, LedgerError, ProviderError
from costguard.engine.ledger.memory import Memory
from costguard.policy.documents.bundle import Usable, usable
from costguard.policy.model.policy import Policy
from costguard.ports import Clock, PolicyText
from costguard.report.words.sentences import Language
from costguard.settings import Settings

if TYPE_CHECKING:
    from costguard.engine.policy.published import Bundles

log = logging.getLogger(__name__)

FEEDBACK = timedelta(seconds=1.2)  # of the three that Slack waits; the next run's edit shows it in any case


class SlackScreen(Protocol):
    """What shows people in Slack something at once."""

    def open_view(self, trigger_id: str, view: Mapping[str, Any]) -> str:
        """Open a window for whoever clicked."""

    def respond(self, response_url: str, body: Mapping[str, Any]) -> None:
        """Answer a click where Slack said to."""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """What one answer is taken at. `bundles` opens the published policies, None where none are published."""

    memory: Memory
    policy: Policy
    policy_usable: bool
    language: Language
    clock: Clock
    screen: SlackScreen | None
    bundles: Callable[[], Bundles] | None = None

    @property
    def zone(self) -> ZoneInfo:
        """Where people's days begin and end."""
        calendar = self.policy.calendar
        return ZoneInfo(calendar.zone if calendar is not None else "UTC")


@contextmanager
def open_desk(settings: Settings, clock: Clock) -> Iterator[RequestContext]:
    """What an answer is taken at, as the settings say.

    Raises:
        InvalidInputError: a ledger that forgets with this process, or no policy at all.
    """
    memory = open_memory(settings)
    with closing(memory.store):
        if settings.host != "local" and not memory.store.durable:
            raise InvalidInputError("answers need a ledger that outlives the function's instance: COSTGUARD_LEDGER")
        policy, good = _policy(settings, memory, clock)
        yield RequestContext(
            memory, policy, good, Language(settings.language), clock, _screen(settings), _bundles(settings, clock)
        )


def _bundles(settings: Settings, clock: Clock) -> Callable[[], Bundles] | None:
    """Opened for an approval of a published policy and nothing else: most clicks are about machines."""
    from costguard.connections.policies import is_published, open_bundles

    return (lambda: open_bundles(settings, settings.policy, clock)) if is_published(settings.policy) else None


def _policy(settings: Settings, memory: Memory, clock: Clock) -> tuple[Policy, bool]:
    """The policy to decide by, and whether it may be acted on: where it is broken, the last good one for seven days."""
    from costguard.connections.policies import is_published, policy_source

    if not settings.policy:
        return read_policy(settings), True
    published = is_published(settings.policy)
    try:
        if published:
            return published_policy(settings, memory, clock), True
        return _loaded(policy_source(settings, settings.policy).read()), True
    except (InvalidInputError, ProviderError, LedgerError):
        good = memory.policies.last_good(published=published)
        if good is None:
            raise
        log.warning("policy is broken: answers are weighed by the last good one")
        return _loaded(good.text), usable(good.read_at, clock.now()) is Usable.OK


def _loaded(text: PolicyText) -> Policy:
    return _compiled(tuple(sorted(text.files.items())), text.origin)


@lru_cache(maxsize=2)
def _compiled(files: tuple[tuple[str, str], ...], origin: str) -> Policy:
    """Kept by its very text: reading YAML with places takes longer than all the rest of a click."""
    from costguard.policy.documents.loader import load_policy

    return load_policy(PolicyText(dict(files), "", origin))


def _screen(settings: Settings) -> SlackScreen | None:
    if not settings.slack_token:
        return None
    from costguard.adapters.notifiers.slack.notifier import SlackNotifier

    return SlackNotifier(settings.slack_token.reveal(), base_url=settings.slack_url, timeout=FEEDBACK)
