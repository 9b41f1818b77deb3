"""A change of the policy from edit to live: a policy repository, its CI, a deployment, and people who approve.

docs/policy.md shows every command and what it printed. `python -m tests.edit_to_live` runs the commands that stand
there and writes what they print now; the test compares.

git and the scripts of `ci/` are really run by sh. Where they call `costguard`, the words are handed to this process,
which runs the same program: starting Python anew for every command would take longest.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.builders import NOW
from tests.scenario.stage import Stage, idle_machine
from tests.world_ports.translate import to_world

from cloudstand.alibaba.core.objects import oss_stand_in
from cloudstand.slack.stand_in import SlackStandIn
from cloudstand.world import workload
from costguard.adapters.policy_sources.files import FilePolicySource
from costguard.bootstrap import open_memory
from costguard.cli.main import run
from costguard.cli.policy.recording import recording_of, with_common_windows, write_recording
from costguard.cli.program import Program
from costguard.connections.people import notifier_over
from costguard.connections.policies import open_bundles
from costguard.engine.notify.delivery import deliver_due
from costguard.engine.policy.in_force import named, published_in_force, tell_of_policy
from costguard.engine.run.scan import scan
from costguard.faas.http import HttpRequest
from costguard.faas.slack_actions import answer_request
from costguard.policy.documents.loader import load_policy
from costguard.ports import PolicyText
from costguard.providers.kit.core.credentials import Keys
from costguard.settings import Access, AccessKey, Secret, Settings

PAGE = Path(__file__).parents[1] / "docs" / "policy.md"
HEADING = "\n## From edit to live\n"
TEAM, CHANNEL = "T0123ABCD", "#gpu-costs"
_BLOCKS = re.compile(r"^~~~~console\n(.*?)^~~~~$", re.MULTILINE | re.DOTALL)
_SHIM = """\
#!/bin/sh
{{ pwd; for word; do printf '%s\\n' "$word"; done; }} > '{place}/asked'
echo asked > '{place}/bell'
read -r status < '{place}/answer'
cat '{place}/out'
cat '{place}/err' >&2
exit "$status"
"""
_DAY = timedelta(days=1)


def section(page: str) -> str:
    """The part of the page that this is about."""
    return page.partition(HEADING)[2].partition("\n## ")[0]


def shown(page: str) -> list[str]:
    """The blocks of what was typed and printed, in order."""
    return _BLOCKS.findall(section(page))


class Watch:
    """The moment at which everything in this story happens."""

    at = NOW

    def now(self) -> datetime:
        return self.at

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


@dataclass
class Story:
    """Whoever changes the policy, at a terminal; `types` and `happens` return what is printed."""

    desk: Path
    settings: Settings
    slack: SlackStandIn
    clock: Watch
    where: Path = field(default_factory=Path)
    runs: int = 0

    def line(self, said: str) -> list[str]:
        """One line of the page, done: as it was typed, and what it printed, without empty lines at the end."""
        said = re.sub(r"(?<=policy approve )[0-9a-f]{8,64}", self._last_published, said)
        printed = self.types(said[2:]) if said.startswith("$ ") else self.happens(said[2:])
        return [said, *(each.rstrip() for each in printed.rstrip().splitlines())]

    def _last_published(self, _: re.Match[str]) -> str:
        """Whoever approves copies the hash from the message."""
        memory = open_memory(self.settings)
        with closing(memory.store):
            last = memory.policies.published.latest()
            return last.digest[:12] if last is not None else ""

    def types(self, command: str) -> str:
        first, *words = shlex.split(command, comments=False)
        if first == "cd":
            self.where = (self.where / words[0]).resolve()
            return ""
        if first == "costguard":
            return self._costguard(self.where, self._with_code(words))[1]
        return self._sh(command)

    def happens(self, what: str) -> str:
        """What people, hosts and time do meanwhile."""
        later = re.fullmatch(r"(\d+) hours later", what)
        press = re.fullmatch(r"(U\w+) presses Approve below that message", what)
        if later is not None:
            self.clock.at += timedelta(hours=int(later[1]))
            return ""
        if press is not None:
            return self._presses(press[1])
        known: dict[str, Callable[[], str]] = {
            "the next run": self._run,
            "until now functions read these very files": self._read_files,
            "where clouds can be asked, a job keeps fleet.json and history/ for CI": self._record,
            "what Slack shows": self._shows,
        }
        return known[what]()

    def _with_code(self, words: list[str]) -> list[str]:
        """A code that was sent is typed as it came; the page shows another in its place."""
        if "12345678" not in words:
            return words
        titles = (each.text.partition("\n")[0] for each in reversed(self.slack.posted))
        sent = next(found[1] for title in titles if (found := re.search(r": (\d{8})$", title)))
        return [sent if word == "12345678" else word for word in words]

    def _costguard(self, where: Path, words: list[str]) -> tuple[int, str]:
        """The program, with its standard output and error together as a terminal shows them."""
        status, out, err = self._program(where, words)
        return status, out + err

    def _program(self, where: Path, words: list[str]) -> tuple[int, str, str]:
        before, out, err = Path.cwd(), io.StringIO(), io.StringIO()
        os.chdir(where)
        try:
            with redirect_stdout(out), redirect_stderr(err):
                status = run(words, program=Program(settings=lambda: self.settings, clock=self.clock))
        finally:
            os.chdir(before)
        return int(status), out.getvalue(), err.getvalue()

    def _sh(self, command: str) -> str:
        """By sh; whatever calls `costguard` there is answered here, until the command has ended."""
        place = self.desk / "bell-and-answer"
        shim = place / "bin" / "costguard"
        if not place.is_dir():
            shim.parent.mkdir(parents=True)
            shim.write_text(_SHIM.format(place=place), encoding="utf-8")
            shim.chmod(0o755)
            os.mkfifo(place / "bell")
            os.mkfifo(place / "answer")
        who = {f"GIT_{one}_{what}": said for one in ("AUTHOR", "COMMITTER") for what, said in _GIT.items()}
        environ = {
            "PATH": f"{shim.parent}:{os.defpath}:/usr/local/bin",
            "HOME": str(self.desk),
            "GIT_CONFIG_NOSYSTEM": "1",
            "LC_ALL": "C.UTF-8",
            **who,
        }
        said: list[str] = []

        def ran() -> None:
            done = subprocess.run(  # noqa: S603 - the page's own commands
                ["/bin/sh", "-c", command],
                cwd=self.where,
                env=environ,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            said.append(done.stdout)
            (place / "bell").write_text("ended\n", encoding="utf-8")

        running = threading.Thread(target=ran)
        running.start()
        while (place / "bell").read_text(encoding="utf-8") == "asked\n":
            folder, *words = (place / "asked").read_text(encoding="utf-8").splitlines()
            status, out, err = self._program(Path(folder), words)
            (place / "out").write_text(out, encoding="utf-8")
            (place / "err").write_text(err, encoding="utf-8")
            (place / "answer").write_text(f"{status}\n", encoding="utf-8")
        running.join()
        return said[0]

    def _read_files(self) -> str:
        memory = open_memory(self.settings)
        with closing(memory.store):
            memory.policies.remember(FilePolicySource(self.where).read(), self.clock.at)
        return ""

    def _run(self) -> str:
        """What every function does first, and what it delivers last."""
        self.runs += 1
        memory, now = open_memory(self.settings), self.clock.at
        with closing(memory.store):
            found = published_in_force(open_bundles(self.settings, self.settings.policy, self.clock), memory, now)
            tell_of_policy(memory, found, "en", now)
            named(memory, found).runs.begin(f"run-{self.runs}", "idle_gpu", now)
            deliver_due(memory.outbox, notifier_over(self.settings, self.clock.now), self.clock, max_wait=timedelta(0))
        return ""

    def _record(self) -> str:
        """A notebook idle for ten days whose owner was told twelve hours ago, and what two machines were used for."""
        files = FilePolicySource(self.where).read().files
        old = {name: re.sub(r"(?m)^new_accounts:.*\n", "", text) for name, text in files.items()}
        folder = self.desk / "recording"
        folder.mkdir()
        fleet = (
            idle_machine("notebook", tags={"owner": "research"}),
            idle_machine("trainer", tags={"owner": "vision"}, does=workload.busy()),
        )
        stage = Stage(folder, *fleet, under=load_policy(PolicyText(old, "")))
        stage.day(0)
        stage.clock.advance(_DAY / 2)
        world = stage.world()
        seen = scan(world.readings, world.targets, with_common_windows(world.policy.idle_gpu), world.clock)
        write_recording(self.where / "fleet.json", recording_of(world, seen))
        notebook, trainer = str(stage.ref("notebook")), str(stage.ref("trainer"))
        stage.close()
        history = self.where / "history"
        history.mkdir()
        (history / "instances.csv").write_text(
            "resource_id,instance_type,accelerators,owner,hourly_price,currency\n"
            f"{notebook},g5g.xlarge,1,research,0.42,USD\n{trainer},g5g.xlarge,1,vision,0.42,USD\n",
            encoding="utf-8",
        )
        begin = self.clock.at - 14 * _DAY
        nightly = [0.0] * 26 + [90.0] * 22
        rows = [
            f"{(begin + timedelta(hours=hour)):%Y-%m-%dT%H:00:00Z},{ref},{signal},{value},60\n"
            for ref, days in ((notebook, [0.0] * 336), (trainer, nightly * 7))
            for hour, highest in enumerate(days)
            for signal, value in (
                ("gpu_percent,0", highest),
                ("cpu_percent,", 2.0),
                ("network_bytes_per_second,", 900.0),
            )
        ]
        (history / "use.csv").write_text("time,resource_id,signal,device,value,samples\n" + "".join(rows), "utf-8")
        return ""

    def _presses(self, user: str) -> str:
        """The button in the channel; the words are what only they see."""
        ts = next(each.ts for each in reversed(self.slack.posted) if each.channel == CHANNEL)
        press = self.slack.press(ts, "costguard:approve", user, team=TEAM)
        headers = {name.lower(): value for name, value in press.headers.items()}
        reply = answer_request(HttpRequest("POST", "/slack", "", headers, press.body), self.settings, self.clock)
        return self.slack.whispers[-1].text if reply.status == HTTPStatus.OK else f"{reply.status} {reply.body}"

    def _shows(self) -> str:
        """The last message in the channel, as plain lines."""
        last = next(each for each in reversed(self.slack.posted) if each.channel == CHANNEL)
        return "\n".join(_plain(dict(block)) for block in last.blocks)


_GIT = {"NAME": "Platform team", "EMAIL": "platform@example.com", "DATE": "2026-03-10T12:30:00+00:00"}


def _plain(block: dict[str, object]) -> str:
    """The words of a block of Block Kit."""
    found: list[str] = []

    def gather(value: object) -> None:
        if isinstance(value, dict):
            if value.get("type") == "button":
                found.append(f"[ {value['text']['text']} ]")
            elif isinstance(value.get("text"), str):
                found.append(re.sub(r"\*(.+)\*\n", r"\1: ", value["text"]))
            else:
                for inner in value.values():
                    gather(inner)
        elif isinstance(value, list):
            for inner in value:
                gather(inner)

    gather(block)
    return "\n".join(found)


@contextmanager
def told(folder: Path) -> Iterator[Story]:
    """The story at its beginning, in an empty folder: nothing is published, and nobody has run."""
    keys, clock = Keys("key-id", "a secret", ""), Watch()
    desk = folder / "desk"
    desk.mkdir()
    with SlackStandIn(clock) as slack, oss_stand_in("acme-policy", "cn-hangzhou", to_world(keys), clock.now) as bucket:
        settings = Settings(
            policy="oss://acme-policy/costguard?region=cn-hangzhou",
            ledger=Secret(f"sqlite:///{folder / 'ledger.sqlite3'}"),
            slack_token=Secret(slack.token),
            slack_url=slack.base_url,
            slack_signing_secret=Secret(slack.signing_secret),
            alibaba=Access(endpoint_url=bucket.url, key=AccessKey("key-id", Secret("a secret"))),
        )
        memory = open_memory(settings)
        memory.store.close()
        yield Story(folder, settings, slack, clock, desk)


def lived(blocks: list[str], folder: Path) -> list[str]:
    """What each of these blocks shows when its commands are done now, one after another."""
    now: list[str] = []
    with told(folder) as story:
        for block in blocks:
            lines: list[str] = []
            for line in block.splitlines():
                if line.startswith(("$ ", "# ")) and not line.startswith("# #"):
                    lines += story.line(line)
            now.append("".join(f"{line}\n" for line in lines))
    return now


def main() -> int:
    """Write anew what the page shows."""
    page = PAGE.read_text(encoding="utf-8")
    before = shown(page)
    with TemporaryDirectory(prefix="costguard-edit-to-live-") as name:
        after = lived(before, Path(name))
    told_, anew = section(page), section(page)
    for old, new in zip(before, after, strict=True):
        anew = anew.replace(f"~~~~console\n{old}~~~~\n", f"~~~~console\n{new}~~~~\n", 1)
    PAGE.write_text(PAGE.read_text(encoding="utf-8").replace(told_, anew), encoding="utf-8")
    changed = sum(old != new for old, new in zip(before, after, strict=True))
    sys.stdout.write(f"{PAGE.name}: {changed} of {len(after)} blocks are written anew\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
