"""How an owner answers in the demo: by the button below the notice, through the function that Slack calls."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING

from costguard.domain.answers import AnswerKind
from costguard.domain.errors import InvalidInputError
from costguard.report.words.sentences import Language

if TYPE_CHECKING:
    from costguard.cases import Case
    from costguard.cli.demo.story import Buttons
    from costguard.cli.sandbox.running import Sandbox
    from costguard.domain.refs import ResourceRef
    from costguard.engine.ledger.notices import OutboxNotice
    from costguard.engine.run.run_context import RunContext
    from costguard.faas.http import HttpReply
    from costguard.ports import Choice

_BECAUSE = "results for the paper are still on its disk"


def answering(sandbox: Sandbox, world: RunContext, language: Language) -> Buttons:
    """What owners do, and an approver where a local disk is to go: all of it by buttons of messages."""
    from costguard.adapters.notifiers.slack.notifier import SlackNotifier
    from costguard.cli.demo.story import Buttons
    from costguard.faas.desk import RequestContext
    from costguard.faas.http import HttpRequest
    from costguard.faas.slack_actions import answer_slack

    slack, clock = sandbox.slack, world.clock
    desk = RequestContext(
        world.memory,
        world.policy,
        policy_usable=True,
        language=language,
        clock=clock,
        screen=SlackNotifier(slack.token, base_url=slack.base_url),
    )

    def sent(headers: Mapping[str, str], body: bytes) -> HttpReply:
        arrived = HttpRequest("POST", "/slack", headers={name.lower(): headers[name] for name in headers}, body=body)
        return answer_slack(arrived, slack.signing_secret, language, clock, lambda: nullcontext(desk))

    def keep(machine: ResourceRef, lasting: timedelta) -> None:
        notice = _notice_of(world, machine)
        user = next(one.people[0] for one in world.policy.owners if one.name == notice.owner)
        asks = next(one for one in notice.choices if one.kind is AnswerKind.KEEP and one.length is None)
        opened = sent(*slack.press(notice.receipt.rpartition(":")[2], "costguard:keep", user, of=str(asks.of)))
        if not slack.views:
            message = f"the demo's owner was not asked how long to keep {machine}: {opened.status}"
            raise InvalidInputError(message)
        until = (clock.now() + lasting).date().isoformat()
        kept = sent(*slack.submit_view(slack.views[-1].view_id, {"until": until, "because": _BECAUSE}, user))
        if kept.status != 200 or "update" not in kept.body:  # noqa: PLR2004 - HTTP's own word for it
            message = f"the demo's owner could not keep {machine}: {kept.status} {kept.body}"
            raise InvalidInputError(message)

    def approve(machine: ResourceRef) -> None:
        notice = _notice_of(world, machine, asking=True)
        user = next(one.people[0] for one in world.policy.owners if one.name == notice.owner)
        asks = next(one for one in notice.choices if one.kind is AnswerKind.APPROVE)
        for who in (user, world.policy.answers.approvers[0]):
            sent(*slack.press(notice.receipt.rpartition(":")[2], "costguard:approve", who, of=str(asks.of)))
        if world.memory.approvals.valid(asks.of.decision_id, clock.now()) is None:
            message = f"the demo's owner could not approve {machine}"
            raise InvalidInputError(message)

    def start(machine: ResourceRef) -> None:
        notice, asks = _start_offered(world, machine)
        user = next(one.people[0] for one in world.policy.owners if one.name == notice.owner)
        sent(*slack.press(notice.receipt.rpartition(":")[2], "costguard:start", user, of=str(asks.of)))
        if world.memory.starts.of(str(machine))[0] is None:
            message = f"the demo's owner could not have {machine} started again"
            raise InvalidInputError(message)

    return Buttons(keep, approve, start)


def _case_of(world: RunContext, machine: ResourceRef) -> Case:
    return next(case for case in world.memory.cases.active(world.guard) if case.subject == machine)


def _start_offered(world: RunContext, machine: ResourceRef) -> tuple[OutboxNotice, Choice]:
    """The news of its stop, and the button below it."""
    case = _case_of(world, machine)
    for notice in world.memory.outbox.of_case(case.key, case.opened_at):
        for one in notice.choices:
            if one.kind is AnswerKind.START:
                return notice, one
    message = f"nobody was offered to start {machine} again in this demo"
    raise InvalidInputError(message)


def _notice_of(world: RunContext, machine: ResourceRef, *, asking: bool = False) -> OutboxNotice:
    """What its owner was told, or `asking` what waits for their yes."""
    from costguard.engine.answers.replies import HELD

    case = _case_of(world, machine)
    outbox = world.memory.outbox
    notice = outbox.get(case.decision_id + HELD) if asking else outbox.said_of(case.case_id)
    if notice is None:
        message = f"nobody was told of {machine} in this demo"
        raise InvalidInputError(message)
    return notice
