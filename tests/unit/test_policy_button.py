"""The button below "a published policy waits": whose press counts, for what, how often, and what people see."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from tests.builders import NOW
from tests.published_rig import DAY, ENFORCES, FIRST, HOUR, LOOSER, SECOND, THIRD, TIGHTER, Office, gpu_bound, text
from tests.slack_rig import Office as Workspace
from tests.slack_rig import http

from cloudstand.slack.stand_in import SlackRequest
from costguard.adapters.notifiers.router import NotifierRouter
from costguard.domain.errors import InvalidInputError, ProviderError
from costguard.engine.ledger.audit.audit import ENTRY
from costguard.engine.ledger.audit.people import told_again
from costguard.engine.ledger.publications import ApproverWord, Publication
from costguard.engine.notify.delivery import deliver_due
from costguard.engine.policy.in_force import tell_of_policy
from costguard.faas.desk import RequestContext
from costguard.faas.http import HttpReply
from costguard.faas.slack_actions import answer_slack
from costguard.policy.documents.loader import load_policy
from costguard.ports import PolicyText
from costguard.report.policy.publishing import WordCode
from costguard.report.words.sentences import Language, phrase

TOMORROW = NOW + DAY + HOUR
APPROVE = "costguard:approve"
STRANGER = "U0STRANGER"


@dataclass
class Rig:
    """A deployment that decides by a published policy, and the workspace where its people are."""

    office: Office
    workspace: Workspace
    language: Language = Language.EN
    usable: bool = True

    def at(self, moment: Any) -> None:
        self.office.now = self.workspace.clock.at = moment

    def runs(self) -> None:
        """As every function does first, and last: which policy, who is told of it, what is delivered and changed."""
        memory, now = self.office.memory, self.office.now
        tell_of_policy(memory, self.office.runs(), self.language.value, now)
        router = NotifierRouter({"slack": self.workspace.notifier}, default="slack")
        deliver_due(memory.outbox, router, self.workspace.clock, max_wait=timedelta(0), language=self.language)

    def asks(self, effective_at: Any = TOMORROW) -> Publication:
        made = self.office.publish(LOOSER, effective_at).publication
        self.runs()
        return made

    def ts(self, channel: str = "#gpu") -> str:
        return next(posted.ts for posted in reversed(self.workspace.slack.posted) if posted.channel == channel)

    def shown(self, channel: str = "#gpu") -> str:
        posted = next(posted for posted in reversed(self.workspace.slack.posted) if posted.channel == channel)
        return json.dumps(posted.blocks, ensure_ascii=False)

    def press(self, user: str, channel: str = "#gpu", **more: str) -> str:
        """The words that whoever pressed was told."""
        before = len(self.workspace.slack.whispers)
        reply = self.send(self.workspace.slack.press(self.ts(channel), APPROVE, user, **more))
        assert (reply.status, reply.body) == (200, "")
        (said,) = self.workspace.slack.whispers[before:]
        return said.text

    def send(self, request: SlackRequest) -> HttpReply:
        found = self.office.runs()
        desk = RequestContext(
            memory=self.office.memory,
            policy=found.policy,
            policy_usable=self.usable,
            language=self.language,
            clock=self.workspace.clock,
            screen=self.workspace.notifier,
            bundles=lambda: self.office.bundles,
        )
        secret = self.workspace.slack.signing_secret
        return answer_slack(http(request), secret, self.language, self.workspace.clock, lambda: nullcontext(desk))

    @property
    def agreed(self) -> list[tuple[str, str]]:
        """Whose words the ledger holds for the last publication, and how they were proven."""
        last = self.office.memory.policies.published.latest()
        assert last is not None
        return [(each.by, each.via) for each in last.agreed]


@pytest.fixture(scope="module")
def workspace() -> Iterator[Workspace]:
    shared = Workspace()
    yield shared
    shared.slack.close()


@pytest.fixture
def rig(tmp_path: Path, workspace: Workspace) -> Iterator[Rig]:
    made = Rig(Office(tmp_path / "bundles").enforcing(), workspace.tidied())
    yield made
    made.office.memory.store.close()


def said(code: WordCode, rig: Rig, missing: int = 0) -> str:
    last = rig.office.memory.policies.published.get(2)
    assert last is not None
    facts: dict[str, Any] = {"digest": last.digest[:12], "missing": missing, "days": 7, "when": "2026-03-11 13:30 UTC"}
    return phrase(code.value, rig.language, **facts)


def test_the_message_says_what_loosens_from_when_and_how_many_must_agree(rig: Rig) -> None:
    made = rig.asks()
    shown = rig.shown()

    for words in (
        f"Published policy {made.digest[:12]} waits: it loosens what is in force",
        "idle_gpu all: idle_when_all.every_gpu_max_below: 5%, now 9%",
        "2026-03-11 13:30 UTC",
        "*Approvals needed*\\n2",
        f"publication2/{made.digest}",
        "Approvers agree by the button Approve",
    ):
        assert words in shown
    assert [posted.channel for posted in rig.workspace.slack.posted] == [
        "#gpu",
        *(f"#{person}" for person in (FIRST, SECOND, THIRD)),
    ], "the channel, and each approver: not everybody reads the channel"


def test_two_approvers_press_and_it_decides_when_its_moment_comes(rig: Rig) -> None:
    rig.asks()

    assert rig.press(FIRST) == said(WordCode.COUNTS, rig, missing=1)
    assert rig.press(SECOND, f"#{SECOND}") == said(WordCode.ENOUGH, rig)
    assert rig.agreed == [(FIRST, "slack_button"), (SECOND, "slack_button")]

    assert gpu_bound(rig.office.runs()) == 5.0
    rig.at(TOMORROW)
    assert gpu_bound(rig.office.runs()) == 9.0


def test_the_messages_say_so_once_enough_have_agreed_and_offer_nothing_more(rig: Rig) -> None:
    rig.asks()
    rig.press(FIRST)
    rig.runs()
    assert APPROVE in rig.shown(), "one is still missing"

    rig.press(SECOND)
    rig.runs()

    for channel in ("#gpu", f"#{FIRST}", f"#{SECOND}", f"#{THIRD}"):
        assert f"Approved by {FIRST}, {SECOND}. It decides from 2026-03-11 13:30 UTC on." in rig.shown(channel)
        assert APPROVE not in rig.shown(channel)


def test_two_presses_of_one_person_count_once(rig: Rig) -> None:
    rig.asks()
    rig.press(FIRST)

    assert rig.press(FIRST, f"#{FIRST}") == said(WordCode.SAID_BEFORE, rig, missing=1)
    assert rig.agreed == [(FIRST, "slack_button")]


def test_two_presses_of_one_person_at_the_same_moment_count_once(rig: Rig) -> None:
    """Both were weighed before either was written."""
    made = rig.asks()
    for _ in range(2):
        rig.office.memory.policies.published.agree(made.seq, ApproverWord(FIRST, NOW, "slack_button"))

    assert rig.agreed == [(FIRST, "slack_button")]
    assert rig.press(SECOND) == said(WordCode.ENOUGH, rig)


def test_a_code_and_a_press_of_one_person_count_once(rig: Rig) -> None:
    made = rig.asks()
    rig.office.approve(made.digest, FIRST)

    assert rig.press(FIRST) == said(WordCode.SAID_BEFORE, rig, missing=1)
    assert rig.press(SECOND) == said(WordCode.ENOUGH, rig)
    assert rig.agreed == [(FIRST, "slack_code"), (SECOND, "slack_button")]


def test_a_press_once_enough_have_agreed_is_not_needed(rig: Rig) -> None:
    rig.asks()
    rig.press(FIRST)
    rig.press(SECOND)

    assert rig.press(THIRD) == said(WordCode.NOT_NEEDED, rig)
    assert len(rig.agreed) == 2


def test_a_press_after_it_decides_changes_nothing(rig: Rig) -> None:
    rig.asks()
    rig.press(FIRST)
    rig.press(SECOND)
    rig.at(TOMORROW)
    rig.office.runs()

    assert rig.press(THIRD) == said(WordCode.NOT_NEEDED, rig)
    assert len(rig.agreed) == 2


def test_nobody_but_an_approver_of_the_policy_in_force_counts(rig: Rig) -> None:
    """Not a stranger, and not somebody whom the change itself names."""
    rig.office.publish(LOOSER.replace(f"{FIRST}, {SECOND}, {THIRD}", f"{STRANGER}, U0FRIEND1"), TOMORROW)
    rig.runs()

    assert rig.press(STRANGER) == said(WordCode.NO_APPROVER, rig)
    assert rig.agreed == []


def test_somebody_of_another_workspace_does_not_count(rig: Rig) -> None:
    """Their id may be an approver's: ids are of a workspace."""
    rig.asks()

    assert rig.press(FIRST, team="T0STRANGE") == said(WordCode.FOREIGN_TEAM, rig)
    assert rig.agreed == []


def changed(request: SlackRequest, rig: Rig, **changes: Any) -> SlackRequest:
    """The same press with other words in it, signed as Slack's: what Slack itself would never send."""
    document = json.loads(parse_qs(request.body.decode())["payload"][0])
    document = {**document, **{name: value for name, value in changes.items() if name != "value"}}
    if "value" in changes:
        document["actions"][0]["value"] = changes["value"]
    return rig.workspace.slack.signed({"payload": json.dumps(document)})


def test_a_press_in_a_channel_that_was_not_asked_does_not_count(rig: Rig) -> None:
    """Not even of the message that another approver got."""
    rig.asks()
    elsewhere = {"id": "C0ELSEWHERE", "name": "elsewhere"}
    rig.send(changed(rig.workspace.slack.press(rig.ts(), APPROVE, FIRST), rig, channel=elsewhere))
    assert rig.workspace.slack.whispers[-1].text == said(WordCode.FOREIGN_CHANNEL, rig)

    assert rig.press(FIRST, f"#{SECOND}") == said(WordCode.FOREIGN_CHANNEL, rig)
    assert rig.agreed == []


@pytest.mark.parametrize("of", ["publication1/{digest}", "publication3/{digest}", "publication2/" + "0" * 64])
def test_a_press_is_for_the_publication_that_it_names_and_for_no_other(rig: Rig, of: str) -> None:
    digest = rig.asks().digest
    press = rig.workspace.slack.press(rig.ts(), APPROVE, FIRST)

    rig.send(changed(press, rig, value=of.format(digest=digest)))

    assert rig.workspace.slack.whispers[-1].text == said(WordCode.UNKNOWN, rig)
    assert rig.agreed == []


def test_a_ledger_that_was_set_back_gives_an_old_button_no_other_meaning(rig: Rig) -> None:
    """Another policy is publication 2 by now: neither its hash nor that of the button counts below the old message."""
    rig.asks()
    press = rig.workspace.slack.press(rig.ts(), APPROVE, FIRST)
    other = rig.office.bundles.keep(text(LOOSER.replace("9%", "90%")).files)
    for kind, key in (("policy_publication", "00000002"), ("policy_pointer", "current")):
        record = rig.office.memory.store.get(kind, key)
        assert record is not None
        rig.office.memory.store.put(replace(record, body={**record.body, "digest": other}), record.version)

    for request in (press, changed(press, rig, value=f"publication2/{other}")):
        rig.send(request)
        assert rig.workspace.slack.whispers[-1].text == said(WordCode.UNKNOWN, rig)
    assert rig.agreed == []


def test_a_stranger_is_told_nothing_of_how_it_stands(rig: Rig) -> None:
    rig.asks()
    rig.press(FIRST)
    rig.press(SECOND)

    assert rig.press(STRANGER) == said(WordCode.NO_APPROVER, rig)


def test_the_button_of_a_publication_is_no_other_answer(rig: Rig) -> None:
    digest = rig.asks().digest
    press = rig.workspace.slack.press(rig.ts(), APPROVE, FIRST)
    stop = {"type": "button", "action_id": "costguard:stop_now", "value": f"publication2/{digest}"}

    rig.send(changed(press, rig, actions=[stop]))

    assert rig.workspace.slack.whispers[-1].text == said(WordCode.UNKNOWN, rig)
    assert rig.agreed == []


def test_a_press_for_a_publication_that_another_followed_is_over(rig: Rig) -> None:
    rig.asks()
    rig.office.publish(LOOSER, TOMORROW + DAY)

    assert rig.press(FIRST) == said(WordCode.SUPERSEDED, rig)
    assert rig.agreed == []

    rig.runs()
    old = rig.workspace.slack.posted[0]
    assert "Another policy was published after this one" in json.dumps(old.blocks)
    assert APPROVE not in json.dumps(old.blocks)
    assert APPROVE in rig.shown()


def test_a_press_long_after_its_moment_does_not_count(rig: Rig) -> None:
    """Nobody remembers by then what was to be loosened, and it would be at once."""
    digest = rig.asks().digest
    rig.at(TOMORROW + 7 * DAY)
    assert rig.press(FIRST) == said(WordCode.COUNTS, rig, missing=1)

    rig.at(TOMORROW + 7 * DAY + timedelta(minutes=1))
    assert rig.press(SECOND) == said(WordCode.EXPIRED, rig)
    with pytest.raises(InvalidInputError, match="more than 7 days ago; publish it again"):
        rig.office.approve(digest, SECOND)
    assert rig.agreed == [(FIRST, "slack_button")]


def test_a_forged_a_late_and_a_replayed_press_change_nothing(rig: Rig) -> None:
    rig.asks()
    press = rig.workspace.slack.press(rig.ts(), APPROVE, FIRST)
    other = press._replace(body=press.body.replace(FIRST.encode(), SECOND.encode()))

    assert rig.send(other).status == 401
    rig.at(NOW + timedelta(minutes=6))
    assert rig.send(press).status == 401
    assert rig.agreed == []

    rig.at(NOW)
    assert rig.send(press).status == 200
    assert "received before" in rig.send(press).body
    assert rig.agreed == [(FIRST, "slack_button")]


def test_a_form_that_is_no_press_of_ours_is_not_understood(rig: Rig) -> None:
    rig.asks()
    press = rig.workspace.slack.press(rig.ts(), APPROVE, FIRST)

    for value in ("publication2", "publication2/a/b", "publication2/", 2, None):
        assert rig.send(changed(press, rig, value=value)).status == 400
    for value in ("publication02/abc", "publication-2/abc", "Publication2/abc"):
        assert rig.send(changed(press, rig, value=value)).status in {200, 400}
    assert rig.agreed == []


def test_it_is_written_before_it_is_acknowledged_whatever_becomes_of_the_answer(rig: Rig) -> None:
    rig.asks()
    press = rig.workspace.slack.press(rig.ts(), APPROVE, FIRST)
    rig.workspace.slack.faults.status = 500

    assert rig.send(press).status == 200
    assert rig.agreed == [(FIRST, "slack_button")]


def test_every_press_that_counts_is_audited(rig: Rig) -> None:
    rig.asks()
    rig.press(FIRST)
    store = rig.office.memory.store
    told = [told_again(store, record) for record in store.query(ENTRY, "operator/policy/")]

    assert (told[-1]["did"], told[-1]["by"], told[-1]["via"]) == ("agreed", FIRST, "slack_button")


def test_nothing_is_approved_while_the_policy_cannot_be_relied_on(rig: Rig) -> None:
    rig.asks()
    rig.usable = False

    assert rig.press(FIRST) == said(WordCode.BROKEN, rig)
    assert rig.agreed == []


def test_nothing_is_approved_while_a_bundle_cannot_be_read(rig: Rig) -> None:
    made = rig.asks()

    class Unreadable:
        origin = "here"

        def fetch(self, digest: str) -> PolicyText:
            raise ProviderError(digest)

        def keep(self, files: dict[str, str]) -> str:
            raise AssertionError(files)

    desk = RequestContext(
        memory=rig.office.memory,
        policy=load_policy(text(ENFORCES)),
        policy_usable=True,
        language=rig.language,
        clock=rig.workspace.clock,
        screen=rig.workspace.notifier,
        bundles=Unreadable,
    )
    press = rig.workspace.slack.press(rig.ts(), APPROVE, FIRST)
    secret = rig.workspace.slack.signing_secret
    answer_slack(http(press), secret, rig.language, rig.workspace.clock, lambda: nullcontext(desk))

    assert rig.workspace.slack.whispers[-1].text == said(WordCode.BROKEN, rig)
    rig.send(rig.workspace.slack.press(rig.ts(), APPROVE, FIRST))
    assert rig.agreed == [(FIRST, "slack_button")], made


def test_where_policies_are_files_such_a_press_means_nothing(rig: Rig) -> None:
    rig.asks()
    desk = RequestContext(
        rig.office.memory,
        load_policy(text(ENFORCES)),
        policy_usable=True,
        language=rig.language,
        clock=rig.workspace.clock,
        screen=rig.workspace.notifier,
    )
    press = rig.workspace.slack.press(rig.ts(), APPROVE, FIRST)
    secret = rig.workspace.slack.signing_secret
    answer_slack(http(press), secret, rig.language, rig.workspace.clock, lambda: nullcontext(desk))

    assert rig.workspace.slack.whispers[-1].text == said(WordCode.UNKNOWN, rig)
    assert rig.agreed == []


def test_people_read_chinese_where_they_do(rig: Rig) -> None:
    rig.language = Language.ZH
    rig.asks()
    assert "批准" in rig.shown()
    assert rig.press(STRANGER) == phrase("answer_not_among_approvers", Language.ZH)
    assert rig.press(FIRST) == said(WordCode.COUNTS, rig, missing=1)
    rig.press(SECOND)
    rig.runs()
    assert f"已由 {FIRST}, {SECOND} 批准。从 2026-03-11 13:30 UTC 起生效。" in rig.shown()


def test_a_tightening_that_waits_for_its_moment_asks_nobody(rig: Rig) -> None:
    rig.office.publish(TIGHTER, TOMORROW)
    rig.runs()

    (told,) = rig.workspace.slack.posted
    assert APPROVE not in json.dumps(told.blocks)


def test_approvers_are_asked_in_slack_wherever_all_others_are_told(tmp_path: Path) -> None:
    policy = ENFORCES.replace('"slack:#gpu"', '"mailto:gpu@example.com"')
    office = Office(tmp_path / "bundles")
    office.memory.policies.remember(text(policy), NOW)
    office.publish(policy)
    office.runs()
    office.publish(policy.replace("5%", "9%"), TOMORROW)
    tell_of_policy(office.memory, office.runs(), "en", NOW)

    told, *asked = office.memory.outbox.due(NOW)
    assert (told.channel, told.choices) == ("mailto:gpu@example.com", ())
    assert "costguard policy approve" in told.lines[-1]
    assert [(each.channel, len(each.choices)) for each in asked] == [
        (f"slack:{person}", 1) for person in (FIRST, SECOND, THIRD)
    ]
    office.memory.store.close()
