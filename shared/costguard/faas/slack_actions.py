"""The function `slack_actions`: what people answer, proven, written to the ledger, and only then acknowledged.

Slack waits three seconds. A click costs a handful of ledger reads and two writes; nothing scans a cloud, and nothing is
left to be done after the answer: hosts freeze a function that has answered.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime, time, timedelta, timezone
from typing import Any

from costguard.adapters.notifiers.slack.blocks import FALLBACK_MAX, build_blocks, escape
from costguard.adapters.notifiers.slack.requests import (
    BECAUSE,
    LONGEST_REASON,
    UNTIL,
    Click,
    Command,
    ForgedRequestError,
    Nothing,
    Proof,
    Submission,
    UnreadableRequestError,
    parse,
    until_window,
    verify,
)
from costguard.cases.answering import LONGEST_KEEP, Accepted, Refused, Weighed
from costguard.domain.answers import ASKED, Answer, AnswerCode, AnswerKind
from costguard.domain.errors import CostguardError, NoticeError
from costguard.engine.answers.replies import look, reply
from costguard.engine.ledger.approvals import nonce_of
from costguard.engine.ledger.publications import seq_of
from costguard.faas.desk import FEEDBACK, RequestContext, open_desk
from costguard.faas.http import HttpReply, HttpRequest
from costguard.ports import Clock
from costguard.report.notices.answers import answer_words
from costguard.report.words.sentences import Language, phrase
from costguard.settings import Settings

log = logging.getLogger(__name__)


def within(most: timedelta, call: Callable[[], object]) -> None:
    """Wait for `call`, but never longer: a slow network may use up its time several times over."""

    def carefully() -> None:
        try:
            call()
        except NoticeError as err:
            log.warning("not shown", extra={"cause": str(err)})

    showing = threading.Thread(target=carefully, daemon=True)
    showing.start()
    showing.join(most.total_seconds())
    if showing.is_alive():
        log.warning("not shown", extra={"cause": "no answer in time"})


SLACK_PATHS, KEEP_PATH = frozenset({"/", "/slack"}), "/keep"
_JSON = "application/json; charset=utf-8"
_TITLE_MAX, _LABEL_MAX = 24, 150
_A_DAY = timedelta(days=1)


def answer_request(request: HttpRequest, settings: Settings, clock: Clock) -> HttpReply:
    """The answer to one request from outside."""
    path = request.path.rstrip("/") or "/"
    if path == KEEP_PATH:
        return _keep_page(request, settings, clock)
    if path not in SLACK_PATHS:
        return HttpReply(404, "not found\n")
    if request.method != "POST":
        return HttpReply(405, "Slack sends POST\n", headers={"Allow": "POST"})
    secret, language = settings.slack_signing_secret.reveal(), Language(settings.language)
    return answer_slack(request, secret, language, clock, lambda: open_desk(settings, clock))


def answer_slack(
    request: HttpRequest,
    secret: str,
    language: Language,
    clock: Clock,
    desk: Callable[[], AbstractContextManager[RequestContext]],
) -> HttpReply:
    """Prove, read, and take what Slack sent; `desk` opens what that needs, and is opened for nobody unproven."""
    try:
        proof = verify(request.headers, request.body, secret, clock.now())
    except ForgedRequestError as err:
        log.warning("request refused", extra={"cause": str(err)})
        return HttpReply(401, phrase("answer_unreadable", language) + "\n")
    try:
        said = parse(request.body)
    except UnreadableRequestError as err:
        log.warning("request not understood", extra={"cause": str(err)})
        return HttpReply(400, phrase("answer_unreadable", language) + "\n")
    if isinstance(said, Nothing):
        return HttpReply(200)
    try:
        with desk() as opened:
            return _taken(said, proof, opened)
    except CostguardError:
        log.exception("answer not taken")
        return _busy(said, language)


def _taken(said: Click | Submission | Command, proof: Proof, desk: RequestContext) -> HttpReply:
    if not desk.memory.nonces.take(nonce_of(proof.signature, proof.timestamp), desk.clock.now()):
        log.warning("request received before", extra={"retried": proof.retried})
        return HttpReply(200) if isinstance(said, Submission) else _told(phrase("answer_replayed", desk.language))
    if isinstance(said, Command):
        return _commanded(said, desk)
    if isinstance(said, Submission):
        return _submitted(said, desk)
    return _clicked(said, desk)


def _clicked(click: Click, desk: RequestContext) -> HttpReply:
    now = desk.clock.now()
    if seq_of(click.of) is not None:
        return _approved_policy(click, desk)
    if click.kind in {AnswerKind.KEEP, AnswerKind.EXCEPT} and click.length is None:
        return _asked_how_long(click, desk)
    if click.of.decision_id.startswith(ASKED):
        return _agreed(click, desk)
    answer = Answer(click.kind, click.of, click.by, now, click.length)
    weighed = reply(desk.memory, desk.policy, answer, now, came_through=click.channel, policy_usable=desk.policy_usable)
    _note(answer, weighed)
    _show(desk, click.response_url, answer_words(weighed, desk.language))
    return HttpReply(200)


def _approved_policy(click: Click, desk: RequestContext) -> HttpReply:
    """An approver's word for a published policy that loosens."""
    from costguard.engine.policy import agreeing  # here: a click about a machine needs none of it
    from costguard.report.policy.publishing import WordCode

    if click.kind is not AnswerKind.APPROVE or desk.bundles is None:
        said = agreeing.PressResult(WordCode.UNKNOWN)
    elif not desk.policy_usable:
        said = agreeing.PressResult(WordCode.BROKEN)
    else:
        press = agreeing.Press(click.of, click.by, click.channel)
        said = agreeing.agree_by_button(
            desk.bundles(), desk.memory, desk.policy, press, desk.clock.now(), desk.language
        )
    counts = said.code in (WordCode.COUNTS, WordCode.ENOUGH)
    facts = {"kind": "approve_policy", "code": said.code.value, "of": str(click.of), "by": str(click.by)}
    log.info("answer taken" if counts else "answer refused", extra=facts)
    _show(desk, click.response_url, phrase(said.code.value, desk.language, **said.facts))
    return HttpReply(200)


def _agreed(click: Click, desk: RequestContext) -> HttpReply:
    """An approver's word for an exception that somebody asked for."""
    from costguard.engine.answers import excepting  # here: most clicks need none of it

    said = Answer(click.kind, click.of, click.by, desk.clock.now())
    weighed: Weighed = Refused(AnswerCode.UNKNOWN)
    if click.kind is AnswerKind.APPROVE:
        weighed = excepting.agree(
            desk.memory,
            desk.policy,
            click.of,
            click.by,
            said.at,
            came_through=click.channel,
            policy_usable=desk.policy_usable,
            language=desk.language,
        )
    _note(said, weighed)
    _show(desk, click.response_url, answer_words(weighed, desk.language))
    return HttpReply(200)


def _longest(kind: AnswerKind, desk: RequestContext) -> timedelta:
    return LONGEST_KEEP if kind is AnswerKind.KEEP else desk.policy.longest_exception


def _asked_how_long(click: Click, desk: RequestContext) -> HttpReply:
    """Open the window, unless the answer would not count anyway."""
    now, screen, longest = desk.clock.now(), desk.screen, _longest(click.kind, desk)
    case, weighed = look(
        desk.memory,
        desk.policy,
        Answer(click.kind, click.of, click.by, now, longest),
        now,
        came_through=click.channel,
    )
    if case is None or not isinstance(weighed, Accepted):
        _show(desk, click.response_url, answer_words(weighed, desk.language))
        return HttpReply(200)
    today = now.astimezone(desk.zone).date()
    excepts = "except_" if click.kind is AnswerKind.EXCEPT else ""
    words = {name: phrase(f"window_{name}", desk.language) for name in ("cancel", "until", "because")}
    words |= {name: phrase(f"window_{excepts}{name}", desk.language) for name in ("title", "submit")}
    words["what"] = phrase(f"window_{excepts}what", desk.language, what=case.name or case.subject.native_id)
    shown = {name: escape(text, _TITLE_MAX if name == "title" else _LABEL_MAX) for name, text in words.items()}
    view = until_window(click.kind, click.of, click.channel, shown, today + timedelta(days=2), today + longest)
    if screen is not None and click.trigger_id:
        within(FEEDBACK, lambda: screen.open_view(click.trigger_id, view))
    return HttpReply(200)


def _submitted(sent: Submission, desk: RequestContext) -> HttpReply:
    now = desk.clock.now()
    if not sent.reason or len(sent.reason) > LONGEST_REASON:
        return _wrong(BECAUSE, phrase("answer_reason_missing", desk.language))
    if sent.until is None:
        return _wrong(UNTIL, phrase("answer_not_a_date", desk.language))
    today, longest = now.astimezone(desk.zone).date(), _longest(sent.kind, desk)
    if not today <= sent.until < today + longest:
        excepts = sent.kind is AnswerKind.EXCEPT
        wrong = "answer_exception_too_long" if excepts else "answer_not_a_date"
        return _wrong(UNTIL, phrase(wrong, desk.language, days=longest.days))
    ends = datetime.combine(sent.until + _A_DAY, time(), desk.zone).astimezone(timezone.utc)
    answer = Answer(sent.kind, sent.of, sent.by, now, ends - now, sent.reason)
    weighed = _asked(answer, sent.channel, desk)
    _note(answer, weighed)
    title = "window_except_title" if sent.kind is AnswerKind.EXCEPT else "window_title"
    words = {"title": escape(phrase(title, desk.language), _TITLE_MAX)}
    said = {"type": "plain_text", "text": escape(answer_words(weighed, desk.language))}
    view = {
        "type": "modal",
        "title": {"type": "plain_text", "text": words["title"]},
        "close": {"type": "plain_text", "text": "OK"},
        "blocks": [{"type": "section", "text": said}],
    }
    return _json({"response_action": "update", "view": view})


def _asked(answer: Answer, channel: str, desk: RequestContext) -> Weighed:
    """A Keep is taken, a question for an exception taken and told to approvers."""
    now, usable = answer.at, desk.policy_usable
    if answer.kind is not AnswerKind.EXCEPT:
        return reply(desk.memory, desk.policy, answer, now, came_through=channel, policy_usable=usable)
    from costguard.engine.answers import excepting

    return excepting.ask(
        desk.memory, desk.policy, answer, now, came_through=channel, policy_usable=usable, language=desk.language
    )


def _commanded(command: Command, desk: RequestContext) -> HttpReply:
    from costguard.engine.answers import (
        keep_pages as slash,  # here: a click, which is what is waited for, needs none of it
    )

    asked = slash.SlashCommand(command.by, command.channel, command.text)
    told = slash.told(desk.memory, desk.policy, asked, desk.language, desk.clock.now())
    log.info("command answered", extra={"by": str(command.by), "title": told.title})
    text = escape("\n".join((told.title, *told.lines)), FALLBACK_MAX, lines=True)
    return _json({"response_type": "ephemeral", "text": text, "blocks": build_blocks(told.title, (), told.lines)})


def _keep_page(request: HttpRequest, settings: Settings, clock: Clock) -> HttpReply:
    """The page behind a Keep link, for channels that have no buttons."""
    from costguard.engine.answers.keep_pages import answer_keep
    from costguard.report.notices.keep_page import HEADERS

    secret = settings.link_secret.reveal()
    if not secret:
        return HttpReply(404, "not found\n")
    with open_desk(settings, clock) as desk:
        status, page = answer_keep(
            request.method,
            request.query,
            request.body,
            memory=desk.memory,
            policy=desk.policy,
            secret=secret,
            now=clock.now(),
            language=desk.language,
        )
    body = "" if request.method == "HEAD" else page
    return HttpReply(status, body, HEADERS["Content-Type"], HEADERS)


def _show(desk: RequestContext, response_url: str, words: str) -> None:
    """Tell whoever clicked, and nobody else; it is written already, so that nothing depends on this."""
    screen = desk.screen
    if screen is None or not response_url:
        return
    body = {"response_type": "ephemeral", "replace_original": False, "text": escape(words)}
    within(FEEDBACK, lambda: screen.respond(response_url, body))


def _note(answer: Answer, weighed: Weighed) -> None:
    facts = {"kind": answer.kind.value, "code": weighed.code.value, "of": str(answer.of), "by": str(answer.by)}
    log.info("answer taken" if isinstance(weighed, Accepted) else "answer refused", extra=facts)


def _busy(said: Click | Submission | Command, language: Language) -> HttpReply:
    words = phrase("answer_busy", language)
    if isinstance(said, Submission):
        return _wrong(BECAUSE, words)
    return _told(words) if isinstance(said, Command) else HttpReply(503, words + "\n")


def _told(words: str) -> HttpReply:
    return _json({"response_type": "ephemeral", "text": escape(words)})


def _wrong(block: str, words: str) -> HttpReply:
    return _json({"response_action": "errors", "errors": {block: escape(words, _LABEL_MAX)}})


def _json(document: Mapping[str, Any]) -> HttpReply:
    return HttpReply(200, json.dumps(document, ensure_ascii=False), _JSON)
