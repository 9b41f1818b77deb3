"""Canaries: secrets are planted wherever secrets are, and all that leaves the process is searched for them.

Every function runs on the sandbox's three clouds, at DEBUG, where all is well and where clouds, Slack, mail, robots,
webhooks, Prometheus, secret store and ledger answer with errors that repeat our own secrets; and the commands that
write files. `python -m tests.canaries` runs it: half a minute is too long for the ordinary tests.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.canaries.scene import GUARDS, Scene

from cloudstand.aws.core.server import Refused
from costguard.connections.secrets import SecretKeeper
from costguard.domain.errors import CostguardError, ProviderError
from costguard.faas.handler import build_handler
from costguard.faas.local import invoke
from costguard.settings import Secret, load_settings

ADDRESSES = ("policy", "notice", "told", "outbox_dead", "case")
"""Records that must name where a notice goes: there the address of a webhook stands whole, as it does in the policy."""


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    logger = logging.getLogger("costguard")
    before = (logger.handlers[:], logger.propagate, logger.level)
    yield
    logger.handlers[:], logger.propagate, level = before
    logger.setLevel(level)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with ExitStack() as opened:
        yield Scene(tmp_path, opened)


def leaks(scene: Scene) -> list[tuple[str, list[str]]]:
    """Where a canary got out."""
    found = []
    for where, text in scene.everything():
        named = scene.planted.found_in(text)
        if where.startswith("ledger: ") and where.split()[1] in ADDRESSES:
            named = [name for name in named if name != "webhook"]
        if named:
            found.append((where, named))
    return found


def test_nothing_leaves_where_all_is_well_and_where_everything_goes_wrong(
    scene: Scene, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = scene.settings()
    assert [scene.run(function, settings, hour) for hour, function in enumerate(GUARDS)] == [True] * len(GUARDS)
    assert scene.slack.posted
    assert leaks(scene) == []

    scene.go_wrong()
    for hour, function in enumerate(GUARDS, start=10):
        scene.run(function, settings, hour)
    told = scene.log.getvalue()
    assert "UnauthorizedOperation" in told + json.dumps(scene.left)
    out, err = capfd.readouterr()
    scene.note("standard output", out)
    scene.note("standard error", err)
    assert leaks(scene) == []
    assert len(scene.everything()) > 20
    assert scene.reached == []  # a Prometheus that the settings do not name is not even asked
    assert f"authorization is not sent to {scene.unbound.url.removeprefix('http://')}" in told


def test_nothing_leaves_by_reports_and_other_files(scene: Scene) -> None:
    settings = scene.settings()
    for hour, function in enumerate(GUARDS[:4]):
        scene.run(function, settings, hour)
    to = scene.folder / "files"
    to.mkdir()
    scene.command(settings, "report", "--html", str(to / "report.html"), "--json")
    scene.command(settings, "report", "--html", str(to / "look.html"), "--look")
    scene.command(settings, "digest", "--json")
    scene.command(settings, "networks", "--all", "--sarif", str(to / "networks.sarif"))
    scene.command(settings, "networks", "--all", "--json")
    scene.command(settings, "history", "export", "--days", "1", "--out", str(to / "history"))
    for arguments in (("scan", "--json"), ("plan", "--json"), ("doctor", "--json"), ("outbox",), ("cases", "--json")):
        scene.command(settings, *arguments)
    for arguments in (("keys", "--json"), ("budgets", "--json"), ("savings", "--json"), ("policy", "check")):
        scene.command(settings, *arguments)
    names = {path.name for path in to.rglob("*")}
    assert {"report.html", "look.html", "networks.sarif", "history"} <= names
    # machines are described for a backtest as they are, tags and all: they may be what a rule selects by
    (described,) = (text for where, text in scene.everything() if where == "instances.csv")
    assert scene.planted.found_in(described) == ["tag"]
    of_address = ("costguard outbox", "costguard cases --json", "costguard digest --json", "costguard plan --json")
    meant = {(where, "webhook") for where in of_address} | {("instances.csv", "tag")}
    assert [(where, names) for where, names in leaks(scene) if not {(where, name) for name in names} <= meant] == []


def test_nothing_leaves_by_slack_whatever_it_is_sent(scene: Scene) -> None:
    settings = scene.settings()
    assert scene.ask(settings, scene.slack.slash("/costguard", "status", "U0STRANGER")) == 200
    request = scene.slack.slash("/costguard", f"snooze {scene.planted.known['signing']}", "U0STRANGER")
    wrong = request._replace(headers={**request.headers, "X-Slack-Signature": "v0=" + "0" * 64})
    assert scene.ask(settings, wrong) in {400, 401, 403}
    assert leaks(scene) == []


def test_nothing_leaves_where_the_ledger_cannot_be_reached(scene: Scene) -> None:
    password = scene.planted.put("ledger password", "canary-pw-0123456789")
    url = f"postgresql://keeper:{password}@127.0.0.1:1/costguard"
    assert not scene.run("idle_gpu", replace(scene.settings(), ledger=Secret(url)), 9)
    assert leaks(scene) == []


def test_nothing_leaves_where_a_secret_cannot_be_read(scene: Scene) -> None:
    mine = scene.settings()
    echo = " ".join(scene.planted.known.values())
    refused = Refused("secretsmanager", "GetSecretValue", "AccessDeniedException", f"no: {echo}")
    for setting in ("COSTGUARD_SLACK_TOKEN", "COSTGUARD_LEDGER", "COSTGUARD_ROBOTS"):
        for field in ("", "#COSTGUARD_SMTP_PASSWORD", "#nothing"):
            settings = replace(load_settings({setting: f"secret:aws:costguard{field}"}), aws=mine.aws)
            handler = build_handler("idle_gpu", settings=partial(replace, settings), stream=scene.log)
            try:
                invoke(handler, b"{}", scene.sandbox.clock)
            except CostguardError as err:
                scene.note(f"{setting}{field}", f"{err!r} {err.__cause__!r} {err.__context__!r}")
    scene.sandbox.gateway.refused.append(refused)
    settings = replace(load_settings({"COSTGUARD_SLACK_TOKEN": "secret:aws:costguard"}), aws=mine.aws)
    with pytest.raises(ProviderError):
        SecretKeeper().settled(settings, scene.sandbox.clock.now())
    assert leaks(scene) == []
