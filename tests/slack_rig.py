"""A workspace, a ledger file and a policy, with one machine whose owner was told: for tests of what people answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from tests.builders import NOW, case, rule

from cloudstand.slack.stand_in import Faults, SlackRequest, SlackStandIn
from costguard.adapters.ledgers.open import open_ledger
from costguard.adapters.notifiers.slack.notifier import SlackNotifier
from costguard.cases import Case, CaseStatus, ClimbedRung, decision_id
from costguard.domain.actions import Verb
from costguard.domain.answers import AnswerKind, AnswerRef
from costguard.domain.money import Money
from costguard.domain.reasons import Reason, ReasonCode
from costguard.engine.answers.answers import notice_decision
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.notices import NoticeState, OutboxNotice
from costguard.faas.desk import RequestContext
from costguard.faas.http import HttpReply, HttpRequest
from costguard.faas.slack_actions import answer_request, answer_slack
from costguard.guards.rules.common import Step
from costguard.policy.documents.loader import load_policy
from costguard.policy.model.policy import Policy
from costguard.policy.model.terms import terms
from costguard.ports import Choice, Message, MessagePart, PolicyText
from costguard.report.words.sentences import Language
from costguard.settings import Secret, Settings

HOUR = timedelta(hours=1)
OWNER, ANOTHER, APPROVER, SECOND = "U0OWNER01", "U0OWNER02", "U0APPROV1", "U0APPROV2"
STRANGER, NEIGHBOUR = "U0STRANGER", "U0VISION01"  # who owns nothing, and who owns something else
POLICY = f"""
version: 1
mode: enforce
notify:
  default: "slack:#gpu-costs"
  answers: {{slack_team: T0SANDBOX, approvers: [{APPROVER}, {SECOND}], two_approvers_above: [20 USD, 140 CNY]}}
owners:
  - {{name: nlp, owns: {{tags: {{team: nlp}}}}, channel: "slack:#nlp", people: [{OWNER}, {ANOTHER}]}}
  - {{name: vision, owns: {{tags: {{team: vision}}}}, channel: "slack:#nlp", people: [{NEIGHBOUR}]}}
idle_gpu:
  - {{name: research}}
"""
KEEP_24H, KEEP_7D, KEEP_ASK = "costguard:keep:24h", "costguard:keep:168h", "costguard:keep"
STOP, APPROVE, NOT_MINE = "costguard:stop_now", "costguard:approve", "costguard:not_mine"
EXCEPT = "costguard:except"


def stopping_case(**changes: Any) -> Case:
    """Warned an hour ago, its stop 23 hours ahead."""
    ladder = rule(ladder=(Step(Verb.WARN, timedelta(0)), Step(Verb.STOP, 24 * HOUR)))
    ordinary = case(
        case_id="case1",
        owner="nlp",
        rule_digest=ladder.digest,
        terms=terms(ladder),
        rung=1,
        attempt=2,
        climbed=(ClimbedRung(Verb.WARN, NOW - HOUR),),
        since=NOW - HOUR,
    )
    return replace(ordinary, **changes)


def held_case(**changes: Any) -> Case:
    """Its wait is over, and its local disk asks for leave."""
    held = stopping_case(status=CaseStatus.HELD, reason=Reason(ReasonCode.APPROVAL_NEEDED))
    held = replace(held, **changes)
    return replace(held, decision_id=decision_id(held))


class Watch:
    """A clock that tests move, and set back."""

    def __init__(self) -> None:
        self.at = NOW

    def now(self) -> datetime:
        return self.at

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


class Office:
    """A workspace that many tests share, and who posts there: a client of its own for each would take longest."""

    def __init__(self, clock: Watch | None = None) -> None:
        self.clock = clock or Watch()
        self.slack = SlackStandIn(self.clock)
        self.notifier = SlackNotifier(self.slack.token, base_url=self.slack.base_url)

    def tidied(self) -> Office:
        self.clock.at = NOW
        for said in (self.slack.posted, self.slack.whispers, self.slack.views):
            said.clear()
        self.slack.faults = Faults()
        return self


@dataclass
class Rig:
    """Use it as it is; `close` what was opened."""

    folder: Path
    office: Office = field(default_factory=Office)
    language: str = "en"
    policy: str = POLICY

    def __post_init__(self) -> None:
        self.clock, self.slack = self.office.clock, self.office.slack
        self.url = f"sqlite:///{self.folder / 'ledger.db'}"
        self.memory = Memory.over(open_ledger(self.url))
        (self.folder / "costguard.yaml").write_text(self.policy, "utf-8")

    def close(self) -> None:
        self.memory.store.close()

    @property
    def settings(self) -> Settings:
        return Settings(
            policy=str(self.folder / "costguard.yaml"),
            ledger=Secret(self.url),
            slack_token=Secret(self.slack.token),
            slack_url=self.slack.base_url,
            slack_signing_secret=Secret(self.slack.signing_secret),
            link_secret=Secret("0123456789abcdef0123456789abcdef"),
            answer_url="https://answers.example.com",
            language=self.language,
        )

    def told(self, known: Case, *, hourly: str = "1.2", channel: str = "#nlp", notice: str = "") -> str:
        """Commit a case and deliver its notice with every button there is; the message's ts."""
        stored = self.memory.cases.commit(None, known)
        held = stored.status is CaseStatus.HELD
        decision = stored.decision_id if held else notice_decision(stored)
        of = AnswerRef(stored.case_id, decision)
        choices = (
            Choice(AnswerKind.KEEP, "Keep 24 h", of, 24 * HOUR),
            Choice(AnswerKind.KEEP, "Keep 7 d", of, 168 * HOUR),
            Choice(AnswerKind.KEEP, "Keep until …", of),
            Choice(AnswerKind.STOP_NOW, "Stop now", of),
            Choice(AnswerKind.APPROVE, "Approve", of),
            Choice(AnswerKind.NOT_MINE, "Not mine", of),
            Choice(AnswerKind.EXCEPT, "Exception …", of),
        )
        parts = (MessagePart(decision, stored.name, choices=choices),)
        delivery = self.office.notifier.send(Message(channel, "A machine is idle", "idle", parts=parts))
        self.memory.outbox.enqueue(
            OutboxNotice(
                notice_id=notice or (f"{decision}-held" if held else decision),
                decision_id=decision,
                case_key=stored.key,
                channel=f"slack:{channel}",
                title="idle",
                text="idle",
                created_at=self.clock.at,
                state=NoticeState.DELIVERED,
                receipt=delivery.receipt,
                delivered_at=self.clock.at,
                proven=True,
                case_id=stored.case_id,
                owner=stored.owner,
                choices=choices,
                hourly=Money(Decimal(hourly), "USD") if hourly else None,
            )
        )
        return delivery.receipt.rpartition(":")[2]

    def press(self, ts: str, action: str, user: str = OWNER, **more: str) -> HttpReply:
        return self.send(self.slack.press(ts, action, user, **more))

    def slash(self, text: str, user: str = OWNER, **more: str) -> dict[str, Any]:
        reply = self.send(self.slack.slash("/costguard", text, user, **more))
        assert reply.status == 200
        document: dict[str, Any] = json.loads(reply.body)
        return document

    def send(self, request: SlackRequest, path: str = "/slack") -> HttpReply:
        """What is answered with this ledger and policy, without opening either; see `deliver` for the whole."""
        desk = RequestContext(
            memory=self.memory,
            policy=compiled(self.policy),
            policy_usable=True,
            language=Language(self.language),
            clock=self.clock,
            screen=self.office.notifier,
        )
        secret = self.slack.signing_secret
        return answer_slack(http(request, path), secret, desk.language, self.clock, lambda: nullcontext(desk))

    def deliver(self, request: SlackRequest, **changes: Any) -> HttpReply:
        """With the settings of this rig, or others: a file of a policy, and a ledger of its own."""
        return answer_request(http(request), replace(self.settings, **changes), self.clock)

    def said(self) -> str:
        """What whoever clicked last was told."""
        return str(self.slack.whispers[-1].text)

    def records(self) -> dict[str, Mapping[str, Any]]:
        """All that people's answers could have changed."""
        kinds = ("snooze", "haste", "approval", "disowned", "case", "exception_ask")
        query = self.memory.store.query
        return {f"{kind}/{record.key}": record.body for kind in kinds for record in query(kind)}


@cache
def compiled(text: str) -> Policy:
    return load_policy(PolicyText({"costguard.yaml": text}, "r"))


def http(request: SlackRequest, path: str = "/slack") -> HttpRequest:
    """As a host hands it over."""
    return HttpRequest("POST", path, "", {name.lower(): value for name, value in request.headers.items()}, request.body)
