"""What was asked for in a chat becomes a change of the policy's repository, by the forge's API: stand-ins of two."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from tests.builders import NOW, case, policy

from cloudstand.clock import MovedClock
from costguard.adapters.ledgers import open_ledger
from costguard.adapters.policy_sources.forges import Forge
from costguard.bootstrap import open_phase
from costguard.cases.excepting import ExceptionAsk
from costguard.connections.changes import LEAST_TIME, open_changes_asked, opener, repository_of
from costguard.domain.errors import AccessDeniedError, InvalidInputError
from costguard.engine.answers.excepting import open_changes
from costguard.engine.ledger.memory import Memory
from costguard.policy.exceptions import ExceptionRequest, with_exception
from costguard.policy.model.policy import AnswerTerms, Policy
from costguard.settings import Secret, Settings, load_settings

WRITTEN = (
    "# agreed\n- {resource: i-9, owner: vision, reason: demo, approver: finops, expires: '2026-12-01T00:00:00Z'}\n"
)
ABOUT = case(owner="research")
ASKED = ExceptionRequest(str(ABOUT.subject), "research", "release", "U0KIM", NOW + timedelta(days=30), "U0LEE")
UNDER = policy(answers=AnswerTerms("T01", ("U0KIM", "U0LEE")))
KINDS = ("github", "gitlab")


@dataclass
class StandIn:
    """One project: its branches, each with the text of the one file it has."""

    kind: str
    url: str = ""
    branches: dict[str, str | None] = field(default_factory=lambda: {"main": WRITTEN})
    requests: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    denies: bool = False
    races: str = ""
    text: str = ""

    @property
    def forge(self) -> Forge:
        return Forge(self.kind, self.url, "acme/gpu-policy")

    def answered(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        self.calls.append(f"{method} {urlsplit(path).path}")
        if self.denies:
            return 403, {"message": "no"}
        root = "/repos/acme/gpu-policy" if self.kind == "github" else "/projects/acme%2Fgpu-policy"
        rest, query = urlsplit(path).path.removeprefix(root), parse_qs(urlsplit(path).query)
        return (
            self.github(method, rest, query, body) if self.kind == "github" else self.gitlab(method, rest, query, body)
        )

    def file(self, query: dict[str, list[str]]) -> tuple[int, Any]:
        text = self.branches[query["ref"][0].removeprefix("tip-of-")]
        if text is None:
            return 404, {"message": "Not Found"}
        return 200, {"content": base64.encodebytes(text.encode()).decode(), "encoding": "base64"}

    def made(self, branch: str, text: str) -> tuple[int, Any]:
        if self.races == branch:
            self.races, self.branches[branch] = "", "somebody else's\n"
        if branch in self.branches:
            return (422 if self.kind == "github" else 400), {"message": "already exists"}
        self.branches[branch] = text
        return 201, {}

    def pulled(self, method: str, branch: str) -> tuple[int, Any]:
        if method == "GET":
            return 200, [{"html_url": "https://f.example/1", "web_url": "https://f.example/1"}]
        if branch in self.requests:
            return (422 if self.kind == "github" else 409), {}
        self.requests.append(branch)
        return 201, {"html_url": "https://f.example/1", "web_url": "https://f.example/1"}

    def github(self, method: str, rest: str, query: dict[str, list[str]], body: dict[str, Any]) -> tuple[int, Any]:
        if rest == "":
            return 200, {"default_branch": "main"}
        if rest.startswith("/git/ref/heads/"):
            branch = rest.removeprefix("/git/ref/heads/")
            return (200, {"object": {"sha": f"tip-of-{branch}"}}) if branch in self.branches else (404, {})
        if rest.startswith("/contents/"):
            return self.file(query)
        if rest == "/git/trees":
            assert body["base_tree"] == "tip-of-main"
            self.text = body["tree"][0]["content"]
            return 201, {"sha": "tree"}
        if rest == "/git/commits":
            assert (body["tree"], body["parents"]) == ("tree", ["tip-of-main"])
            return 201, {"sha": "commit"}
        if rest == "/git/refs":
            return self.made(body["ref"].removeprefix("refs/heads/"), self.text)
        return self.pulled(method, body.get("head", ""))

    def gitlab(self, method: str, rest: str, query: dict[str, list[str]], body: dict[str, Any]) -> tuple[int, Any]:
        if rest == "":
            return 200, {"default_branch": "main"}
        if rest.startswith("/repository/branches/"):
            branch = unquote(rest.removeprefix("/repository/branches/"))
            return (200, {"commit": {"id": f"tip-of-{branch}"}}) if branch in self.branches else (404, {})
        if rest.startswith("/repository/files/"):
            return self.file(query)
        if rest == "/repository/commits":
            (action,) = body["actions"]
            assert body["start_sha"] == "tip-of-main"
            assert action["action"] == ("create" if self.branches["main"] is None else "update")
            return self.made(body["branch"], action["content"])
        return self.pulled(method, body.get("source_branch", ""))


@contextmanager
def serving(kind: str) -> Iterator[StandIn]:
    stand_in = StandIn(kind)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, body = stand_in.answered(self.command, self.path, json.loads(asked or b"{}"))
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_POST = do_GET  # noqa: N815 - as the server calls it

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        stand_in.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield stand_in
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(params=KINDS)
def stand_in(request: pytest.FixtureRequest) -> Iterator[StandIn]:
    with serving(request.param) as made:
        yield made


@pytest.fixture
def memory() -> Iterator[Memory]:
    store = open_ledger("memory:")
    made = Memory.over(store)
    known = made.cases.commit(None, ABOUT, now=NOW)
    until = NOW + timedelta(days=30)
    made.exceptions.ask(
        ExceptionAsk(
            str(known.subject), known.key, known.case_id, known.rule, "research", "U0LEE", "release", until, NOW
        )
    )
    yield made
    store.close()


def opened(stand_in: StandIn) -> str:
    return opener(stand_in.forge, "a-made-up-token")(ASKED)


def test_a_branch_with_one_entry_more_and_a_request_and_twice_is_once(stand_in: StandIn) -> None:
    assert opened(stand_in) == opened(stand_in) == "https://f.example/1"
    assert stand_in.branches == {"main": WRITTEN, ASKED.branch: with_exception(WRITTEN, ASKED)}
    assert stand_in.requests == [ASKED.branch]


def test_a_file_that_is_not_there_gets_its_first_entry(stand_in: StandIn) -> None:
    stand_in.branches["main"] = None
    opened(stand_in)
    assert stand_in.branches[ASKED.branch] == with_exception(None, ASKED)


@pytest.mark.parametrize("how", ["was there", "was quicker"])
def test_a_branch_that_exists_is_never_moved(stand_in: StandIn, how: str) -> None:
    if how == "was there":
        stand_in.branches[ASKED.branch] = "somebody else's\n"
    else:
        stand_in.races = ASKED.branch
    opened(stand_in)
    assert stand_in.branches[ASKED.branch] == "somebody else's\n"
    assert stand_in.branches[f"{ASKED.branch}-2"] == with_exception(WRITTEN, ASKED)


def test_a_token_that_may_not_changes_nothing_and_says_so(stand_in: StandIn) -> None:
    stand_in.denies = True
    with pytest.raises(AccessDeniedError, match="grant it writing contents"):
        opened(stand_in)
    assert list(stand_in.branches) == ["main"]


def test_a_run_opens_what_was_asked_for_once_and_tells_where_it_is(memory: Memory, stand_in: StandIn) -> None:
    opens = opener(stand_in.forge, "a-made-up-token", "gpu")
    assert open_changes(memory, UNDER, opens, NOW) == 1
    calls = len(stand_in.calls)
    assert open_changes(memory, UNDER, opens, NOW) == 0
    assert len(stand_in.calls) == calls
    (notice,) = memory.outbox.beginning_with("exception-change")
    assert ("Change", "https://f.example/1") in notice.fields
    (asked,) = memory.exceptions.all()
    assert (asked.request, asked.is_open(NOW)) == ("https://f.example/1", True)
    assert memory.snoozes.active(NOW) == {}, "nothing is held by it"
    (branch,) = [name for name in stand_in.branches if name != "main"]
    assert 'approver: "U0KIM"' in str(stand_in.branches[branch]), "who asked is none of those who agree"


def test_what_a_crash_left_is_found_by_the_next_run(memory: Memory, stand_in: StandIn) -> None:
    opens = opener(stand_in.forge, "a-made-up-token")

    def dies(asked: ExceptionRequest) -> str:
        opens(asked)
        raise SystemExit

    with pytest.raises(SystemExit):
        open_changes(memory, UNDER, dies, NOW)
    assert open_changes(memory, UNDER, opens, NOW) == 1
    assert (len(stand_in.branches), len(stand_in.requests)) == (2, 1)


def test_a_forge_that_fails_ends_no_run_and_is_asked_again(memory: Memory, stand_in: StandIn) -> None:
    opens = opener(stand_in.forge, "a-made-up-token")
    stand_in.denies = True
    assert open_changes(memory, UNDER, opens, NOW) == 0
    stand_in.denies = False
    assert open_changes(memory, UNDER, opens, NOW) == 1


def test_what_is_over_or_too_long_by_now_is_not_opened(memory: Memory) -> None:
    def never(_: ExceptionRequest) -> str:
        raise AssertionError

    assert open_changes(memory, replace(UNDER, longest_exception=timedelta(days=7)), never, NOW) == 0
    assert open_changes(memory, UNDER, never, NOW + timedelta(days=7)) == 0


@pytest.mark.parametrize(
    ("repository", "token", "said"),
    [
        ("https://example.com/acme/gpu", "t", "expected https://github.com"),
        ("http://github.com/acme/gpu", "t", "expected https://github.com"),
        ("https://github.com/acme/gpu", "", "COSTGUARD_FORGE_TOKEN is not"),
    ],
)
def test_a_repository_that_cannot_be_used_says_why_and_ends_no_run(
    memory: Memory, repository: str, token: str, said: str
) -> None:
    settings = Settings(forge_repository=repository, forge_token=Secret(token))
    with pytest.raises(InvalidInputError, match=said):
        repository_of(settings)
    assert open_changes_asked(settings, memory, UNDER, MovedClock(NOW), None) == 0


def test_the_policys_folder_stands_behind_two_strokes(memory: Memory) -> None:
    settings = Settings(forge_repository="https://github.com/acme/gpu//policies/gpu", forge_token=Secret("t"))
    assert repository_of(settings) == (Forge("github", "https://api.github.com", "acme/gpu"), "policies/gpu")
    late: Policy = UNDER
    assert open_changes_asked(settings, memory, late, MovedClock(NOW), NOW + LEAST_TIME / 2) == 0, "no time is left"


@pytest.mark.parametrize("first", [True, False])
def test_the_first_phase_of_a_run_in_phases_opens_changes_as_a_whole_run_does(tmp_path: Path, *, first: bool) -> None:
    """It is asked by a setting that is wrong: that is said, and nothing else comes of it."""
    written = "version: 1\naccounts: [{cloud: aws, id: '111122223333', regions: [us-east-1]}]\nidle_gpu: [{name: a}]\n"
    (tmp_path / "costguard.yaml").write_text(written, encoding="utf-8")
    settings = replace(
        load_settings({"COSTGUARD_POLICY": str(tmp_path / "costguard.yaml")}),
        ledger=Secret(f"sqlite:///{tmp_path / 'ledger.db'}"),
        forge_repository="https://nowhere.test/acme/gpu",
    )
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("costguard.connections.changes")
    log.addHandler(handler)
    try:
        with open_phase(settings, "idle_gpu", None, MovedClock(NOW), first=first, may_act=False):
            pass
    finally:
        log.removeHandler(handler)
    assert said == (["no change is opened for exceptions"] if first else [])
