"""docs/recipes.md as it stands: a notice becomes one ticket in each of three systems, which stand-ins play."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from costguard.adapters.notifiers.webhook import WebhookNotifier
from costguard.domain.errors import NoticeError, RejectedNoticeError
from costguard.ports import Message

PAGE = Path(__file__).parents[2] / "docs" / "recipes.md"
SECRET = "a-made-up-secret-of-webhooks"
SYSTEMS = ("pagerduty", "jira", "servicenow")


@dataclass
class Desk:
    """The three systems behind one address: what each was sent, what it keeps, and whether it is there."""

    kept: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {name: [] for name in SYSTEMS})
    authorised: list[str] = field(default_factory=list)
    down: bool = False

    def answer(self, method: str, target: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        parts = urlsplit(target)
        if self.down:
            return 500, {}
        if (method, parts.path) == ("POST", "/v2/enqueue"):
            if body["dedup_key"] not in {one["dedup_key"] for one in self.kept["pagerduty"]}:
                self.kept["pagerduty"].append(body)
            return 202, {"status": "success", "dedup_key": body["dedup_key"]}
        if (method, parts.path) == ("POST", "/rest/api/3/search/jql"):
            found = [one for one in self.kept["jira"] if body["jql"] == f'labels = "{one["labels"][1]}"']
            return 200, {"issues": [{"id": "1"} for _ in found]}
        if (method, parts.path) == ("POST", "/rest/api/3/issue"):
            self.kept["jira"].append(body["fields"])
            return 201, {"key": "GPU-1"}
        if (method, parts.path) == ("GET", "/api/now/table/incident"):
            wanted = parse_qs(parts.query)["sysparm_query"][0].removeprefix("correlation_id=")
            found = [one for one in self.kept["servicenow"] if one["correlation_id"] == wanted]
            return 200, {"result": [{"sys_id": "1"} for _ in found]}
        if (method, parts.path) == ("POST", "/api/now/table/incident"):
            self.kept["servicenow"].append(body)
            return 201, {"result": {"sys_id": "1"}}
        return 404, {}


@contextmanager
def listening(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def receiver(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    class Systems(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            desk.authorised.append(self.headers.get("Authorization") or "")
            status, said = desk.answer(self.command, self.path, json.loads(raw or b"{}"))
            body = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))
    named: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), named)  # noqa: S102 - the page's own code
    served = type("Served", (named["Receiver"],), {"log_message": lambda *_: None})
    with ExitStack() as stack:
        systems = stack.enter_context(listening(Systems))
        for name in ("PAGERDUTY_URL", "JIRA_URL", "SERVICENOW_URL"):
            monkeypatch.setenv(name, systems)
        said = {
            "COSTGUARD_WEBHOOK_SECRET": SECRET,
            "PAGERDUTY_ROUTING_KEY": "R0",
            "JIRA_USER": "robot@example.com",
            "JIRA_TOKEN": "t",
            "JIRA_PROJECT": "GPU",
            "SERVICENOW_USER": "robot",
            "SERVICENOW_PASSWORD": "p",
        }
        for name, value in said.items():
            monkeypatch.setenv(name, value)
        yield stack.enter_context(listening(served))


def notifier(secret: str = SECRET, at: datetime | None = None) -> WebhookNotifier:
    return WebhookNotifier(secret, now=lambda: at or datetime.now(timezone.utc), private=True)


def notice(where: str, notice_id: str = "n1") -> Message:
    return Message(where, "i-0abc stops at 18:00", "i-0abc stops at 18:00\nOwner: nlp", notice_id=notice_id)


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_notice_is_one_ticket_however_often_it_is_sent(desk: Desk, receiver: str, system: str) -> None:
    for _ in range(2):
        assert notifier().send(notice(f"{receiver}/{system}")).proves_delivery
    notifier().send(notice(f"{receiver}/{system}", "n2"))

    first, second = desk.kept[system]
    assert "i-0abc stops at 18:00" in json.dumps(first)
    assert "Owner: nlp" in json.dumps(first)
    assert first != second
    assert all(not others for name, others in desk.kept.items() if name != system)
    basic = f"Basic {base64.b64encode(b'robot@example.com:t').decode()}"
    assert system != "jira" or set(desk.authorised) == {basic}


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_system_that_is_down_is_no_delivery_and_loses_nothing(desk: Desk, receiver: str, system: str) -> None:
    desk.down = True
    with pytest.raises(NoticeError) as refused:
        notifier().send(notice(f"{receiver}/{system}"))
    assert not isinstance(refused.value, RejectedNoticeError), "it is tried again"
    desk.down = False
    notifier().send(notice(f"{receiver}/{system}"))
    assert len(desk.kept[system]) == 1


@pytest.mark.parametrize(
    ("secret", "at", "path"),
    [
        ("another-secret-of-webhooks", None, "jira"),
        (SECRET, datetime(2026, 1, 1, tzinfo=timezone.utc), "jira"),
        (SECRET, None, "elsewhere"),
    ],
)
def test_what_is_forged_old_or_for_nobody_makes_no_ticket(
    desk: Desk, receiver: str, secret: str, at: datetime | None, path: str
) -> None:
    with pytest.raises(RejectedNoticeError):
        notifier(secret, at).send(notice(f"{receiver}/{path}"))
    assert not any(desk.kept.values())
