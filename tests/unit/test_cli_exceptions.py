"""`costguard exception ask` and `costguard exceptions`: real repositories, and stand-ins for GitHub and GitLab."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from tests.builders import case
from tests.git_rig import ENVIRONMENT, Repository

from cloudstand.clock import MovedClock
from costguard.adapters.policy_sources.changes import PolicyRepository
from costguard.bootstrap import open_memory
from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.program import Program
from costguard.domain.money import Money
from costguard.domain.refs import ResourceRef, Shard
from costguard.estimates.burn import Metered, MeteredRun, MeterSheet
from costguard.settings import load_settings

NOW = datetime(2026, 11, 23, 9, tzinfo=timezone.utc)
REF = ResourceRef.parse("aws:111122223333:us-east-1:instance:i-0123456789abcdef0")
POLICY = b"""\
version: 1
mode: observe
idle_gpu:
  - name: all
    idle_when_all: {lasting: 24h, every_gpu_max_below: 5%}
    then: [warn]
"""
EXCEPTIONS = b"""\
# agreed
- resource: i-0123456789abcdef0  # a comment
  owner: research
  reason: was a demo
  approver: finops
  expires: "2026-11-26T00:00:00Z"
- resource: i-0999
  owner: vision
  reason: nobody knows it
  approver: finops
  expires: "2026-11-01T00:00:00Z"
"""
BRANCH = "costguard/exception-i-0123456789abcdef0-20261225"


@dataclass
class Desk:
    """A bare repository, a checkout of it, a ledger, and what the environment says."""

    root: Path
    remote: Repository
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def checkout(self) -> Path:
        return self.root / "checkout"

    def git(self, *words: str) -> str:
        command = ["git", "-C", str(self.checkout), *words]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=True)  # noqa: S603 - what tests say
        return done.stdout.decode().strip()

    def run(self, *words: str) -> int:
        ledger = f"sqlite:///{self.root}/ledger.sqlite3"
        settings = load_settings(
            {"COSTGUARD_LEDGER": ledger, "COSTGUARD_POLICY": str(self.checkout), **self.environment}
        )
        return run(list(words), program=Program(settings=lambda: settings, clock=MovedClock(NOW)))

    def ask(
        self, *more: str, resource: str = "i-0123456789abcdef0", until: str = "2026-12-24", because: str = "release"
    ) -> int:
        given = ["--until", until, "--because", because, "--approver", "finops", "--owner", "research", "--by", "lee"]
        return self.run("exception", "ask", resource, *given, "--in", str(self.checkout), *more)

    def branches(self) -> list[str]:
        return self.remote.git("for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()

    def file(self, branch: str = BRANCH) -> str:
        return self.remote.git("show", f"{branch}:exceptions.yaml")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    for name, value in {**ENVIRONMENT, "GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig")}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "gitconfig").write_text("[user]\n  name = lee\n  email = lee@example.com\n", encoding="utf-8")
    remote = Repository.made(tmp_path / "remote.git")
    remote.commit({"costguard.yaml": POLICY, "exceptions.yaml": EXCEPTIONS})
    made = Desk(tmp_path, remote)
    clone = ["git", "clone", "--quiet", str(remote.folder), str(made.checkout)]
    subprocess.run(clone, env=dict(os.environ), check=True)  # noqa: S603 - as above
    settings = load_settings({"COSTGUARD_LEDGER": f"sqlite:///{tmp_path}/ledger.sqlite3"})
    memory = open_memory(settings)
    seen = Metered(REF, NOW - timedelta(days=2), None, Money(Decimal("4.10"), "USD"), "g5.12xlarge")
    sheet = MeterSheet(NOW - timedelta(days=2), NOW, (MeteredRun(seen, "e"),))
    assert memory.meter.put(Shard("aws", "111122223333", "us-east-1"), sheet)
    memory.store.close()
    return made


def test_asking_pushes_a_branch_with_one_entry_more_and_touches_nothing_else(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    (desk.checkout / "costguard.yaml").write_text("half written", encoding="utf-8")

    assert desk.ask("--json") == Exit.OK

    told = json.loads(capsys.readouterr().out)
    assert (told["branch"], told["base"], told["fresh"], told["request"]) == (BRANCH, "main", True, None)
    assert desk.file().startswith(EXCEPTIONS.decode().strip())
    assert desk.file().count("- resource:") == 3
    assert f'  - resource: "{REF}"'.strip() in desk.file()
    assert '"2026-12-25T00:00:00Z"' in desk.file(), "the day that is named is its last"
    assert desk.remote.git("rev-parse", f"{BRANCH}^") == desk.remote.git("rev-parse", "main")
    assert desk.remote.git("diff", "--name-only", "main", BRANCH) == "exceptions.yaml"
    assert "Asked for by lee; finops is to agree." in desk.remote.git("log", "-1", "--format=%B", BRANCH)
    assert desk.git("status", "--porcelain") == "M costguard.yaml"
    assert desk.git("branch", "--show-current") == "main"


def test_how_long_one_may_last_is_the_policys_word(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    assert desk.ask(until="2027-10-01") == Exit.BAD_INPUT
    assert "lasts 180 days at most" in capsys.readouterr().err
    (desk.checkout / "costguard.yaml").write_bytes(POLICY + b"longest_exception: 365d\n")
    assert desk.ask(until="2027-10-01") == Exit.OK
    (desk.checkout / "costguard.yaml").write_bytes(POLICY + b"longest_exception: 7d\n")
    assert desk.ask(until="2026-12-24") == Exit.BAD_INPUT
    assert "lasts 7 days at most" in capsys.readouterr().err


def test_the_same_question_twice_is_one_branch(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    assert desk.ask() == Exit.OK
    first = desk.remote.git("rev-parse", BRANCH)
    assert desk.ask("--json") == Exit.OK
    assert '"fresh": false' in capsys.readouterr().out
    assert desk.branches() == [BRANCH, "main"]
    assert desk.remote.git("rev-parse", BRANCH) == first


def test_a_branch_that_exists_is_never_overwritten(desk: Desk) -> None:
    """Not even one at the very commit that ours begins at, which a push without force would move."""
    desk.remote.git("branch", BRANCH, "main")
    before = desk.remote.git("rev-parse", BRANCH)

    assert desk.ask() == Exit.OK

    assert desk.remote.git("rev-parse", BRANCH) == before
    assert desk.branches() == [BRANCH, f"{BRANCH}-2", "main"]


def test_of_two_who_push_at_once_the_later_overwrites_nothing(desk: Desk) -> None:
    """The branch came between the look and the push: at a commit that a push without force would move on from."""
    repository = PolicyRepository(dict(os.environ), desk.checkout)
    ours = repository.propose("exceptions.yaml", lambda _: "[]\n", "first", "one")
    desk.remote.git("branch", BRANCH, "main")

    assert not repository.push_new(ours.commit, BRANCH)

    assert desk.remote.git("rev-parse", BRANCH) == desk.remote.git("rev-parse", "main")


def test_a_policy_in_a_folder_of_its_repository_keeps_its_place(desk: Desk) -> None:
    desk.remote.commit({"gpu/costguard.yaml": POLICY, "gpu/exceptions.yaml": EXCEPTIONS, "other.txt": b"x"})
    desk.git("pull", "--quiet")
    assert desk.ask("--in", str(desk.checkout / "gpu")) == Exit.OK
    assert desk.remote.git("diff", "--name-only", "main", BRANCH) == "gpu/exceptions.yaml"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"resource": "i-0000"}, "was seen by no run"),
        ({"resource": "aws:111122223333:us-east-1:instance:i-0000"}, "was seen by no run"),
        ({"until": "2026-11-01"}, "is past"),
        ({"until": "2027-12-01"}, "lasts 180 days at most"),
        ({"until": "next week"}, "expected a day, 2026-12-24"),
        ({"until": "2026-12-24T18:00:00"}, "expected a day, 2026-12-24"),
        ({"because": "  "}, "the reason is empty"),
        ({"because": "one\n- resource: '*'"}, "write one line"),
    ],
)
def test_what_may_not_be_asked_for_pushes_nothing(
    desk: Desk, given: dict[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert desk.ask(**given) == Exit.BAD_INPUT
    assert said in capsys.readouterr().err
    assert desk.branches() == ["main"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--by", "finops"), "somebody else has to agree"),
        (("--in", "/nowhere"), "no such folder"),
        (("--remote", "elsewhere"), "has no remote 'elsewhere'"),
        (("--remote", "--upload-pack=x"), "is no name of a remote"),
        (("--base", "no-such-branch"), "has no branch 'no-such-branch'"),
        (("--base", "-x"), "is no name of a branch"),
    ],
)
def test_a_wrong_option_pushes_nothing(
    desk: Desk, more: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert desk.ask(*more) == Exit.BAD_INPUT
    assert said in capsys.readouterr().err
    assert desk.branches() == ["main"]


@dataclass
class StandIn:
    """A forge: what it was asked, what it has, and what it says."""

    kind: str
    url: str = ""
    asked: list[tuple[str, str, dict[str, Any], str]] = field(default_factory=list)
    there: bool = False
    denies: bool = False


@contextmanager
def forge(kind: str) -> Iterator[StandIn]:
    stand_in = StandIn(kind)
    shown = "html_url" if kind == "github" else "web_url"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, [{shown: "https://forge.example.com/1"}])

        def do_POST(self) -> None:
            if stand_in.denies:
                self._answer(403, {"message": "no"})
            elif stand_in.there:
                self._answer(422 if kind == "github" else 409, {"message": "exists"})
            else:
                self._answer(201, {shown: "https://forge.example.com/1"})

        def _answer(self, status: int, body: object) -> None:
            asked = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            token = self.headers.get("Authorization") or self.headers.get("PRIVATE-TOKEN") or ""
            stand_in.asked.append((self.command, self.path, json.loads(asked or b"{}"), token))
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

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


def as_on(desk: Desk, project: str) -> None:
    """The checkout's remote is called by a forge's address, which git takes for the bare repository."""
    desk.git("remote", "set-url", "origin", project)
    with (desk.root / "gitconfig").open("a", encoding="utf-8") as config:
        config.write(f'[url "{desk.remote.folder}"]\n  insteadOf = {project}\n')


@pytest.mark.parametrize(
    ("kind", "project"),
    [
        ("github", "https://github.com/acme/gpu-policy.git"),
        ("gitlab", "git@gitlab.example.com:acme/finops/gpu-policy.git"),
    ],
)
def test_a_pull_request_is_opened_once(desk: Desk, kind: str, project: str, capsys: pytest.CaptureFixture[str]) -> None:
    as_on(desk, project)
    desk.environment["COSTGUARD_FORGE_TOKEN"] = "a-made-up-token"
    with forge(kind) as stand_in:
        assert desk.ask("--api", stand_in.url) == Exit.OK
        assert "Pull request: https://forge.example.com/1" in capsys.readouterr().out
        stand_in.there = True
        assert desk.ask("--api", stand_in.url, "--json") == Exit.OK

    said = capsys.readouterr()
    assert json.loads(said.out)["request"] == "https://forge.example.com/1", "the one that is open already"
    assert "a-made-up-token" not in said.out + said.err
    method, path, body, token = stand_in.asked[0]
    assert (method, "a-made-up-token" in token) == ("POST", True)
    assert body["title"] == f"Except {REF} until 2026-12-25"
    if kind == "github":
        assert path == "/repos/acme/gpu-policy/pulls"
        assert (body["head"], body["base"]) == (BRANCH, "main")
        assert parse_qs(urlsplit(stand_in.asked[2][1]).query) == {"head": [f"acme:{BRANCH}"], "state": ["open"]}
    else:
        assert unquote(path) == "/projects/acme/finops/gpu-policy/merge_requests"
        assert (body["source_branch"], body["target_branch"]) == (BRANCH, "main")
        assert parse_qs(urlsplit(stand_in.asked[2][1]).query) == {"source_branch": [BRANCH], "state": ["opened"]}


def test_a_token_that_may_not_is_said_and_the_branch_stays(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    as_on(desk, "https://github.com/acme/gpu-policy.git")
    desk.environment["COSTGUARD_FORGE_TOKEN"] = "a-made-up-token"
    with forge("github") as stand_in:
        stand_in.denies = True
        assert desk.ask("--api", stand_in.url) == Exit.UNAVAILABLE
    assert "the token may open no request in acme/gpu-policy" in capsys.readouterr().err
    assert BRANCH in desk.branches()


def test_a_token_is_sent_over_https_alone(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    as_on(desk, "https://github.com/acme/gpu-policy.git")
    desk.environment["COSTGUARD_FORGE_TOKEN"] = "a-made-up-token"
    assert desk.ask("--api", "http://forge.example.com") == Exit.BAD_INPUT
    assert "a token is sent over https" in capsys.readouterr().err


def test_exceptions_are_listed_with_their_cost_and_those_that_end_soon_are_marked(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert desk.run("exceptions", "--json") == Exit.OK
    ended, soon = json.loads(capsys.readouterr().out)["exceptions"]
    assert (ended["state"], ended["hourly_cost"]) == ("ended", None)
    assert (soon["state"], soon["hourly_cost"]["amount"], soon["monthly_cost"]["amount"]) == (
        "ends_soon",
        "4.10",
        "2993.00",
    )
    assert "exceptions.yaml:6:" in soon["where"], "where its end is said"

    assert desk.run("exceptions") == Exit.OK
    shown = capsys.readouterr().out
    assert "ends in 2 days" in shown
    assert "2,993.00 USD" in shown
    assert desk.run("exceptions", "--lang", "zh") == Exit.OK
    assert "2 天后到期" in capsys.readouterr().out


def test_a_policy_without_exceptions_says_so(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    (desk.checkout / "exceptions.yaml").unlink()
    assert desk.run("exceptions") == Exit.OK
    assert "The policy has no exceptions." in capsys.readouterr().out


APPROVERS = b'notify:\n  default: "slack:#finops"\n  answers: {slack_team: T0AAAAAA, approvers: [U0KIM000, U0LEE000]}\n'


@pytest.fixture
def case_open(desk: Desk) -> Desk:
    """As `desk`, with a policy that has approvers, and a case of the machine in the ledger."""
    (desk.checkout / "costguard.yaml").write_bytes(POLICY + APPROVERS)
    memory = open_memory(load_settings({"COSTGUARD_LEDGER": f"sqlite:///{desk.root}/ledger.sqlite3"}))
    memory.cases.commit(None, case(subject=REF, owner="research"), run_id="run", now=NOW)
    memory.store.close()
    return desk


def in_ledger(desk: Desk, *more: str, until: str = "2026-12-24") -> int:
    given = ["--until", until, "--because", "release", "--in-ledger", "--by", "U0LEE000"]
    return desk.run("exception", "ask", "i-0123456789abcdef0", *given, *more)


def states(desk: Desk, capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str, str]]:
    capsys.readouterr()
    assert desk.run("exceptions", "--json") == Exit.OK
    told = json.loads(capsys.readouterr().out)["exceptions"]
    return [(one["state"], one["approver"], one["monthly_cost"]["amount"]) for one in told if one["where"] == "ledger"]


def test_where_no_repository_is_the_ledger_keeps_it_once_an_approver_agreed(
    case_open: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = case_open
    assert in_ledger(desk, "--json") == Exit.OK
    said = json.loads(capsys.readouterr().out)
    assert (said["code"], said["until"]) == ("exception_asked", "2026-12-25T00:00:00Z")
    assert states(desk, capsys) == [("waits", "", "2993.00")]
    assert in_ledger(desk) == Exit.OK
    assert "was asked for already" in capsys.readouterr().out
    assert desk.run("exception", "agree", "i-0123456789abcdef0", "--by", "U0LEE000") == Exit.BAD_INPUT
    assert "somebody else has to agree" in capsys.readouterr().err
    assert desk.run("exception", "agree", "i-0123456789abcdef0", "--by", "kim") == Exit.BAD_INPUT
    assert "Only approvers" in capsys.readouterr().err
    assert states(desk, capsys) == [("waits", "", "2993.00")]
    assert desk.run("exception", "agree", str(REF), "--by", "U0KIM000") == Exit.OK
    assert "is left alone until" in capsys.readouterr().out
    assert states(desk, capsys) == [("lasts", "U0KIM000", "2993.00")]
    assert desk.run("exception", "end", str(REF), "--by", "lee") == Exit.OK
    assert "Ended:" in capsys.readouterr().out
    assert states(desk, capsys) == []
    assert desk.run("exception", "end", str(REF), "--by", "lee") == Exit.BAD_INPUT
    assert BRANCH not in desk.branches(), "no repository was asked"


def test_what_was_asked_for_is_taken_back(case_open: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    assert in_ledger(case_open) == Exit.OK
    assert case_open.run("exception", "end", "i-0123456789abcdef0", "--json") == Exit.OK
    assert '"held": false' in capsys.readouterr().out
    assert case_open.run("exception", "agree", "i-0123456789abcdef0", "--by", "U0KIM000") == Exit.BAD_INPUT
    assert "is over" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--until", "2027-12-24"), "lasts 180 days at most"),
        (("--until", "2026-11-20"), "is past"),
        (("--because", " "), "reason is empty"),
    ],
)
def test_what_may_not_be_asked_of_the_ledger_says_what_may(
    case_open: Desk, words: tuple[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert in_ledger(case_open, *words) == Exit.BAD_INPUT
    assert said in capsys.readouterr().err
    assert states(case_open, capsys) == []


def test_without_a_case_or_an_approver_nothing_is_asked_for(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    assert in_ledger(desk) == Exit.BAD_INPUT
    assert "no case is known" in capsys.readouterr().err
    assert desk.ask("--approver", "") == Exit.BAD_INPUT
    assert "--approver is missing" in capsys.readouterr().err
    assert desk.run("exception", "agree", "i-0123456789abcdef0", "--by", "U0KIM000") == Exit.BAD_INPUT
    assert "has none that was asked for" in capsys.readouterr().err
