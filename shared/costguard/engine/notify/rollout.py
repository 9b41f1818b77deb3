"""The next steps of a rollout, announced to the people they concern: none is taken before that was delivered."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from costguard.engine.ledger.notices import NoticeState, OutboxNotice, news
from costguard.engine.run.run_context import RunContext, rollout_now
from costguard.planning.rollout import REST, RolloutStanding
from costguard.policy.model.ownership import channel_of
from costguard.policy.model.policy import Policy
from costguard.report.notices.rollout import announcement
from costguard.report.words.sentences import Language


def announcements(world: RunContext) -> Iterator[OutboxNotice]:
    """What is to be announced now; the outbox keeps each once."""
    if not world.policy.rollout:
        return
    now = world.clock.now()
    for standing in rollout_now(world.memory, world.policy, now).standings:
        channel = channel_for(standing, world.policy)
        if standing.announce and channel:
            yield _announced(world, standing, channel, now)


def channel_for(standing: RolloutStanding, policy: Policy) -> str:
    """Where a step is announced: to its team, else to whom its account belongs, else where all others are told."""
    entry = standing.entry
    owned = next((each.owner for each in policy.accounts if each.id == entry.account), "")
    return channel_of(entry.team if entry.team not in {"", REST} else owned, policy)


def _announced(world: RunContext, standing: RolloutStanding, channel: str, now: datetime) -> OutboxNotice:
    zone = world.policy.calendar.zone if world.policy.calendar else "UTC"
    worded = announcement(standing, zone, Language(world.language))
    refused = world.memory.outbox.get(standing.notice_id)
    if refused is not None and refused.state is NoticeState.DEAD:
        world.memory.outbox.revive(standing.notice_id, now)  # people repair channels; each run asks once more
    return news(standing.notice_id, channel, worded, now)
