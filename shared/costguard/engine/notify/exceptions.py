"""Exceptions that end within seven days, told once to whom each concerns: afterwards its machine is judged again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from costguard.domain.findings import Finding
from costguard.domain.reasons import ReasonCode
from costguard.engine.ledger.notices import OutboxNotice, news
from costguard.engine.run.run_context import RunContext
from costguard.guards.rules.common import Mode, Selector
from costguard.policy.model.ownership import channel_of
from costguard.policy.model.policy import IN_LEDGER, Exemption
from costguard.policy.model.terms import digest_of
from costguard.report.notices.policy import exception_ends
from costguard.report.words.sentences import Language

ENDING = timedelta(days=7)
"""So long before it ends it is said to end."""


def ending_exceptions(world: RunContext, findings: Iterable[Finding] = ()) -> Iterator[OutboxNotice]:
    """Those to be told of now; the outbox keeps each once, and drops it once the exception has ended.

    Those of the ledger are known by the `findings` of a run, which they are shown in.

    Nobody is told while no rule of machines tells anybody anything. One that is renewed has another end: it is another.
    """
    policy, now = world.policy, world.clock.now()
    if all(rule.mode is Mode.OBSERVE for rule in policy.idle_gpu):
        return
    zone = policy.calendar.zone if policy.calendar else "UTC"
    lasting = {
        (digest_of(each.owns), each.owner): each.expires_at
        for each in sorted(policy.exemptions, key=lambda one: one.expires_at)
    }
    for each in (*policy.active_exemptions(now), *_of_the_ledger(findings)):
        if each.expires_at > now + ENDING or lasting.get((digest_of(each.owns), each.owner), now) > each.expires_at:
            continue
        worded = exception_ends(each, zone, Language(world.language))
        notice_id, channel = f"exception-ends-{digest_of(each)[:32]}", channel_of(each.owner, policy)
        yield news(notice_id, channel, worded, now, holds_until=each.expires_at)


def _of_the_ledger(findings: Iterable[Finding]) -> Iterator[Exemption]:
    for finding in findings:
        facts = finding.reason.facts
        if finding.reason.code is ReasonCode.EXCEPTION and facts.get("kept_in") == IN_LEDGER:
            until = datetime.fromisoformat(str(facts["until"]))
            whose = Selector(resources=(str(finding.subject),))
            yield Exemption(whose, finding.owner, str(facts["reason"]), str(facts["approver"]), until, IN_LEDGER)
