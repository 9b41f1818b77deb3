"""Robots of Feishu, DingTalk and WeCom on loopback, in one process: they check what the vendors document, and no more.

Signatures are worked out here anew from the documents, not by the code that makes them. Every refusal is HTTP 200 with
a code in JSON, as the vendors do it.
"""

from __future__ import annotations

import base64
import hmac
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from typing_extensions import Self

from cloudstand.clock import Clock

DEFAULT_TOKEN = "sandbox-robot-token"  # noqa: S105 - a made-up one
DEFAULT_SECRET = "SECsandboxrobotsecret"  # noqa: S105 - a made-up one
HOOKS: Mapping[str, str] = {
    "feishu": "/open-apis/bot/v2/hook/{token}",
    "dingtalk": "/robot/send?access_token={token}",
    "wecom": "/cgi-bin/webhook/send?key={token}",
}
_HOUR = 3600  # seconds that a signature may be off, either way, at Feishu and DingTalk
_MOST_BYTES = {"feishu": 20_480, "dingtalk": 20_000, "wecom": 65_536}
_MOST_MARKDOWN = 4096  # of WeCom
_Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Posted:
    """One message that a group was shown: by which vendor's robot, what it reads like, and the document."""

    kind: str
    title: str
    words: str
    document: dict[str, Any]
    body: bytes


@dataclass(slots=True)
class RobotFaults:
    """What goes wrong from now on; empty: nothing.

    `answer` is what every call is answered with, with `status`. `disabled` robots were switched off in their group,
    `keyword` has to be in every message, `busy` says that there were too many calls. `down` ends connections without an
    answer, `lost` shows the message and answers nothing.
    """

    status: int = 200
    answer: bytes | None = None
    disabled: bool = False
    keyword: str = ""
    busy: bool = False
    down: bool = False
    lost: bool = False


_FEISHU_ANSWERS = {
    "busy": {"code": 11232, "data": {}, "msg": "frequency limited psm[lark.oapi.app_platform_runtime]appID[1500]"},
    "disabled": {"StatusCode": 0, "StatusMessage": "", "code": 19007, "msg": "Bot Not Enabled"},
    "hook": {"code": 19001, "data": {}, "msg": "param invalid: incoming webhook access token invalid"},
    "sign": {
        "code": 19021,
        "data": {},
        "msg": "sign match fail or timestamp is not within one hour from current time",
    },
    "keyword": {"code": 19024, "data": {}, "msg": "Key Words Not Found"},
    "form": {"code": 9499, "data": {}, "msg": "Bad Request"},
    "good": {"StatusCode": 0, "StatusMessage": "success", "code": 0, "data": {}, "msg": "success"},
}
_DINGTALK_ANSWERS = {
    "busy": {"errcode": 130101, "errmsg": "send too fast, exceed 20 times per minute"},
    "disabled": {"errcode": 400102, "errmsg": "robot is disabled"},
    "hook": {"errcode": 300005, "errmsg": "token is not exist"},
    "time": {"errcode": 310000, "errmsg": "invalid timestamp"},
    "sign": {"errcode": 310000, "errmsg": "sign not match"},
    "keyword": {"errcode": 310000, "errmsg": "keywords not in content"},
    "form": {"errcode": 40035, "errmsg": "param error"},
    "long": {"errcode": 460101, "errmsg": "message too long, exceed 20000 bytes"},
    "good": {"errcode": 0, "errmsg": "ok"},
}
_WECOM_ANSWERS = {
    "busy": {"errcode": 45009, "errmsg": "api freq out of limit"},
    "disabled": {"errcode": 93004, "errmsg": "robot is disabled"},
    "hook": {"errcode": 93000, "errmsg": "invalid webhook url"},
    "form": {"errcode": 40008, "errmsg": "invalid message type"},
    "empty": {"errcode": 44004, "errmsg": "empty content"},
    "long": {"errcode": 40058, "errmsg": "markdown.content exceed max length 4096"},
    "good": {"errcode": 0, "errmsg": "ok"},
}
_ANSWERS: Mapping[str, Mapping[str, _Answer]] = {
    "feishu": _FEISHU_ANSWERS,
    "dingtalk": _DINGTALK_ANSWERS,
    "wecom": _WECOM_ANSWERS,
}


@dataclass(slots=True)
class _Asked:
    kind: str
    query: Mapping[str, str]
    body: bytes
    document: dict[str, Any] = field(default_factory=dict)


class RobotStandIns:
    """Used as a context manager; `posted` holds every message in order, `calls` counts every request.

    One robot a vendor, whose token is `token`; those of Feishu and DingTalk check signatures made with `secret`, unless
    it is empty.
    """

    def __init__(self, clock: Clock, *, token: str = DEFAULT_TOKEN, secret: str = DEFAULT_SECRET) -> None:
        self.faults = RobotFaults()
        self.posted: list[Posted] = []
        self.calls = 0
        self.token, self.secret = token, secret
        self._clock = clock
        self._closed = False
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def hook(self, kind: str) -> str:
        """The address of one vendor's robot."""
        return f"http://127.0.0.1:{self._server.server_address[1]}{HOOKS[kind].format(token=self.token)}"

    @property
    def setting(self) -> str:
        """What to write into COSTGUARD_ROBOTS: one robot a vendor, each called `ops`."""
        signing = {"secret": self.secret} if self.secret else {}
        return json.dumps(
            {f"{kind}:ops": {"hook": self.hook(kind), **({} if kind == "wecom" else signing)} for kind in HOOKS}
        )

    def close(self) -> None:
        """Stop answering and release the port; may be repeated."""
        if not self._closed:
            self._closed = True
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def take(self, target: str, content_type: str, body: bytes) -> _Answer | None:
        """The answer to one request; None where no robot has this path."""
        asked = _asked(target, self.token, body)
        if asked is None:
            return None
        answers = _ANSWERS[asked.kind]
        why = self._problem(asked, content_type)
        if why:
            return answers[why]
        self.posted.append(_shown(asked))
        return answers["good"]

    def _problem(self, asked: _Asked, content_type: str) -> str:
        if asked.query.get("token") != self.token:
            return "hook"
        if self.faults.disabled:
            return "disabled"
        if self.faults.busy:
            return "busy"
        if len(asked.body) > _MOST_BYTES[asked.kind]:
            return "form" if asked.kind == "feishu" else "long"
        try:
            asked.document = json.loads(asked.body)
        except ValueError:
            return "form"
        if not content_type.startswith("application/json") or not isinstance(asked.document, dict):
            return "form"
        unsigned = self._unsigned(asked)
        wrong = unsigned or _wrong_form(asked)
        if not wrong and self.faults.keyword and self.faults.keyword not in asked.body.decode():
            return "keyword" if asked.kind != "wecom" else "disabled"
        return wrong

    def _unsigned(self, asked: _Asked) -> str:
        """By the documents' own algorithms; WeCom has none."""
        if not self.secret or asked.kind == "wecom":
            return ""
        now = self._clock.now().timestamp()
        if asked.kind == "feishu":
            stamp, sign = asked.document.get("timestamp"), asked.document.get("sign")
            if not isinstance(stamp, str) or not isinstance(sign, str) or not stamp.isdigit():
                return "sign"
            key = (stamp + "\n" + self.secret).encode("utf-8")
            expected = base64.b64encode(hmac.new(key, digestmod=sha256).digest()).decode()
            late = abs(int(stamp) - now) > _HOUR
            return "sign" if late or not hmac.compare_digest(expected, sign) else ""
        stamp, sign = asked.query.get("timestamp", ""), asked.query.get("sign", "")
        if not stamp.isdigit() or abs(int(stamp) / 1000 - now) > _HOUR:
            return "time"
        made = hmac.new(self.secret.encode("utf-8"), (stamp + "\n" + self.secret).encode("utf-8"), sha256)
        return "" if hmac.compare_digest(base64.b64encode(made.digest()).decode(), sign) else "sign"


def _asked(target: str, token: str, body: bytes) -> _Asked | None:
    parts = urlsplit(target)
    query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    for kind, pattern in HOOKS.items():
        path, _, named = pattern.format(token=token).partition("?")
        if named and parts.path == path:
            return _Asked(kind, {**query, "token": query.get(named.partition("=")[0], "")}, body)
        if not named and parts.path.rpartition("/")[0] == path.rpartition("/")[0]:
            return _Asked(kind, {**query, "token": parts.path.rpartition("/")[2]}, body)
    return None


def _wrong_form(asked: _Asked) -> str:
    if asked.kind == "feishu":
        return "" if _is_card(asked.document) else "form"
    kind = asked.document.get("msgtype")
    markdown = asked.document.get("markdown")
    if kind != "markdown" or not isinstance(markdown, dict):
        return "form"
    if asked.kind == "dingtalk":
        return (
            "" if all(isinstance(markdown.get(name), str) and markdown[name] for name in ("title", "text")) else "form"
        )
    content = markdown.get("content")
    if not isinstance(content, str) or not content.strip():
        return "empty"
    return "long" if len(content.encode()) > _MOST_MARKDOWN else ""


_TEXTS = {"plain_text", "lark_md"}


def _is_card(document: dict[str, Any]) -> bool:
    """Whether it is a card as the documents describe them, made of the elements used here."""
    allowed = {"timestamp", "sign", "msg_type", "card"}
    card = document.get("card")
    if document.get("msg_type") != "interactive" or not isinstance(card, dict) or not document.keys() <= allowed:
        return False
    header = card.get("header")
    elements = card.get("elements")
    if not isinstance(header, dict) or not _is_text(header.get("title")) or not isinstance(elements, list):
        return False
    return bool(elements) and all(isinstance(element, dict) and _is_element(element) for element in elements)


def _is_element(element: dict[str, Any]) -> bool:
    tag = element.get("tag")
    if tag == "hr":
        return element.keys() == {"tag"}
    if tag == "div":
        return _is_text(element.get("text"))
    if tag == "note":
        inner = element.get("elements")
        return isinstance(inner, list) and bool(inner) and all(map(_is_text, inner))
    actions = element.get("actions")
    return tag == "action" and isinstance(actions, list) and bool(actions) and all(map(_is_button, actions))


def _is_button(button: object) -> bool:
    if not isinstance(button, dict) or button.get("tag") != "button" or not _is_text(button.get("text")):
        return False
    return isinstance(button.get("url"), str) and button["url"].startswith(("https://", "http://"))


def _is_text(text: object) -> bool:
    return isinstance(text, dict) and text.get("tag") in _TEXTS and isinstance(text.get("content"), str)


def _shown(asked: _Asked) -> Posted:
    document = asked.document
    if asked.kind == "feishu":
        card = document["card"]
        return Posted(
            "feishu", card["header"]["title"]["content"], "\n".join(_words(card["elements"])), document, asked.body
        )
    markdown = document["markdown"]
    if asked.kind == "dingtalk":
        return Posted("dingtalk", markdown["title"], markdown["text"], document, asked.body)
    title, _, _ = markdown["content"].partition("\n")
    return Posted("wecom", title.lstrip("# "), markdown["content"], document, asked.body)


def _words(element: object) -> list[str]:
    """Every word and address of a card, in order."""
    if isinstance(element, list):
        return [word for each in element for word in _words(each)]
    if not isinstance(element, dict):
        return []
    own = [element[name] for name in ("content", "url") if isinstance(element.get(name), str)]
    return [*own, *(word for each in element.values() for word in _words(each))]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, robots: RobotStandIns) -> None:
        self.robots = robots
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay quiet: a client that gave up waiting is one of the faults on offer."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        robots = self.server.robots
        faults = robots.faults
        robots.calls += 1
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if faults.down:
            return  # the connection closes without an answer
        if faults.answer is not None:
            self._reply(faults.status, faults.answer)
            return
        answer = robots.take(self.path, self.headers.get("Content-Type") or "", body)
        if faults.lost:
            return
        if answer is None:
            self._reply(404, b"404 page not found")
            return
        self._reply(faults.status, json.dumps(answer, ensure_ascii=False).encode())

    def _reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing on the terminal."""
