"""What readers of the pages for Alibaba Cloud and Tencent Cloud do alike beside typing blocks."""

from __future__ import annotations

import json
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tests.deploy_pages.deployed import Deployed
from tests.deploy_pages.functions import Functions
from tests.deploy_pages.pages import Block, Played, Terminal, assign, unassign
from tests.host_runtimes import Told

from cloudstand.slack.stand_in import SlackStandIn
from cloudstand.wire.keys import Keys

_ASKING = re.compile(r"^terraform .*\b(?:apply|destroy)\b", re.MULTILINE)
_NOTIFYING = re.compile(r"^# notify:\n(?:# .*\n)+", re.MULTILINE)
_DESK = 'desk_networks = ["203.0.113.7/32"]\n'
_PROGRAMS = {"alibaba": "aliyun", "tencent": "tccli"}
_CONFIRMED = ("Every function that the policy needs runs", "The ledger (postgresql) answers and lasts")


class Cloud(Protocol):
    """One vendor, as far as both pages need it."""

    deployed: Deployed
    member: Deployed
    slack: SlackStandIn
    functions: Functions

    @property
    def url(self) -> str:
        """Where it answers."""

    def fire_timers(self, *only: str) -> list[tuple[str, Told]]:
        """Every timer that Terraform made starts its function once: what came of each, by name."""

    def keys_of(self, account: str) -> Keys:
        """A person's key there."""


@dataclass
class VendorStage(ABC):
    """What a reader does beside typing the blocks; what differs is told by the methods below."""

    tree: Path
    environ: Mapping[str, str]
    cloud: Cloud
    name: str
    accounts: tuple[str, str]
    region: str
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.cloud.url

    @property
    def variables(self) -> str:
        return f"{self._module}/terraform.tfvars"

    @property
    def _module(self) -> str:
        return f"infra/{self.name}"

    @property
    @abstractmethod
    def replacing(self) -> Mapping[str, str]:
        """What a reader fills in."""

    @abstractmethod
    def exported(self, account: str) -> str:
        """Assignments of the variables that hold a key of this account."""

    @abstractmethod
    def keeping(self, name: str, value: str) -> str:
        """The command that keeps a secret for Slack."""

    @abstractmethod
    def summary(self, answer: Any) -> Any:
        """What the function answered, within what the command line printed."""

    @abstractmethod
    def lines(self, answer: Any) -> list[str]:
        """The lines of a log, within what the command line printed."""

    @property
    @abstractmethod
    def warned(self) -> tuple[str, ...]:
        """What the doctor rightly warns of."""

    @abstractmethod
    def desk_is_open(self) -> bool:
        """Whether the ledger can be reached from outside."""

    @abstractmethod
    def role_may_stop(self) -> bool:
        """Whether idle_gpu's role may stop machines."""

    def before(self, block: Block, terminal: Terminal) -> str:
        """The prose before a block; every `yes` that Terraform wants."""
        if "policy publish" in block.text:
            _fill_in_answers(self.tree / "my-policy")
        elif "costguard doctor" in block.text:
            for name, told in self.cloud.fire_timers():
                _say(f"{name}: {told.kind}")
        elif "member init" in block.text:
            self._typed(terminal, f"export {self.exported(self.accounts[1])}")
        return "yes\n" * len(_ASKING.findall(block.text))

    def after(self, block: Block, played: Played, terminal: Terminal) -> Iterator[str]:
        """What came of a block, and the prose behind it."""
        if block.text.startswith("pip install"):
            where = f" --region {self.region}" if self.name == "alibaba" else ""
            yield from self._must(terminal, f"{_PROGRAMS[self.name]} sts GetCallerIdentity{where}")
        elif block.text.startswith("secrets = {"):
            yield from self._all_six(terminal)
        elif "policy publish" in block.text:
            yield from first_run(self.summary(told_json(played.output)))
        elif "run finished" in block.text:
            if not any("run finished" in line for line in self.lines(told_json(played.output))):
                yield f"the log has no line `run finished`: {played.output[-1000:]}"
            if "never ran" not in self._typed(terminal, "costguard doctor || true").output:
                yield "before the timers fire the doctor does not say which functions never ran"
        elif "costguard doctor" in block.text:
            yield from _confirmed(played.output, self.warned)
            yield from self._close_the_desk(terminal)
        elif "member init" in block.text:
            yield from self._further_account(terminal)
            yield from self._let_it_act(terminal)
        elif "destroy" in block.text:
            yield from self._gone(terminal)
            yield from self._by_one_command(terminal)

    def _all_six(self, terminal: Terminal) -> Iterator[str]:
        for name, value in (("token", self.cloud.slack.token), ("signing-secret", self.cloud.slack.signing_secret)):
            yield from self._must(terminal, self.keeping(name, value))
        unassign(self.tree / self.variables, "functions")
        yield from self._applied(terminal)

    def _close_the_desk(self, terminal: Terminal) -> Iterator[str]:
        unassign(self.tree / self.variables, "desk_networks")
        yield from self._applied(terminal)
        if self.desk_is_open():
            yield "the ledger has an address for desks still"

    def _further_account(self, terminal: Terminal) -> Iterator[str]:
        """A policy that names both accounts loosens, and so waits a day: no day passes here, functions are told it."""
        yield from self._must(terminal, f"export {self.exported(self.accounts[0])}")
        setting = f"COSTGUARD_{self.name.upper()}_EXTERNAL_ID"
        members = f'member_accounts = ["{self.accounts[1]}"]\nsettings = {{ {setting} = "costguard-hub" }}\n'
        assign(self.tree / self.variables, members + _DESK)
        yield from self._applied(terminal)
        rows = "".join(
            f'  - {{cloud: {self.name}, id: "{each}", regions: [{self.region}]}}\n' for each in self.accounts
        )
        with (self.tree / "my-policy" / "costguard.yaml").open("a", encoding="utf-8") as file:
            file.write(f"accounts:\n{rows}")
        at = "$(date -u -d '+25 hours' +%Y-%m-%dT%H:%M:%SZ)"
        yield from self._must(terminal, f'costguard policy publish my-policy --effective-at "{at}"')
        self.cloud.functions.more["COSTGUARD_POLICY"] = str(self.tree / "my-policy")
        for name, told in self.cloud.fire_timers("costguard-idle_gpu"):  # the sandbox has one role in members, its own
            _say(f"{name}: {told.kind} {str(told.body)[:200]}")
            if told.kind != "response" or told.body["gaps"]:
                yield f"with a further account {name} answers {told.kind}: {told.body}"
            elif told.body["findings"].get("violation") != len(self.accounts):
                yield f"{name} does not see the idle machine of each account: {told.body}"
        del self.cloud.functions.more["COSTGUARD_POLICY"]

    def _let_it_act(self, terminal: Terminal) -> Iterator[str]:
        if self.role_may_stop():
            yield "without enforce the role of idle_gpu may stop machines"
        assign(self.tree / self.variables, "enforce = true\n")
        yield from self._applied(terminal)
        if not self.role_may_stop():
            yield "enforce = true grants idle_gpu no stop"

    def _gone(self, terminal: Terminal) -> Iterator[str]:
        """In the member account the same, and then nothing is left."""
        yield from self._must(terminal, f"export {self.exported(self.accounts[1])}")
        said = f"-var hub_account={self.accounts[0]} -var external_id=costguard-hub"
        yield from self._must(terminal, f"terraform -chdir={self._module}/member destroy {said}", "yes\n")
        for module in (self.cloud.deployed, self.cloud.member):
            if module.addresses():
                yield f"{module.module}: {module.addresses()} are still there"

    def _by_one_command(self, terminal: Terminal) -> Iterator[str]:
        """`costguard deploy` does all of this page's Terraform, as the page has it."""
        yield from self._must(terminal, f"export {self.exported(self.accounts[0])}")
        assign(self.tree / self.variables, "enforce = false\n")
        host = {"alibaba": "fc", "tencent": "scf"}[self.name]
        command = f"costguard deploy {self.name} --infra infra --bundles build/{host}"
        yield from self._must(terminal, f"{command} --plan-only || test $? = 10")
        yield from self._must(terminal, f"{command} --yes")
        yield from self._must(terminal, f"{command} --plan-only | grep 'Nothing would change'")
        kept = self._typed(terminal, f"{command} --var name=costguard-two --yes")
        if kept.status == 0 or "would destroy what Costguard remembers" not in kept.output:
            yield f"costguard deploy did not refuse to destroy the ledger: {kept.output[-2000:]}"
        for verb in ("apply", "destroy"):
            said = f"terraform -chdir={self._module} {verb} -var deletion_protection=false"
            yield from self._must(terminal, said, "yes\n")
        if self.cloud.deployed.addresses():
            yield f"after costguard deploy and destroy there is left {self.cloud.deployed.addresses()}"

    def _applied(self, terminal: Terminal) -> Iterator[str]:
        yield from self._must(terminal, f"terraform -chdir={self._module} apply", "yes\n")

    def _must(self, terminal: Terminal, text: str, answer: str = "") -> Iterator[str]:
        played = self._typed(terminal, text, answer)
        if played.status:
            yield f"{text}: ended with {played.status}: {played.output[-2000:]}"

    def _typed(self, terminal: Terminal, text: str, answer: str = "") -> Played:
        """Something that the prose asks for, typed between two blocks."""
        played = terminal.play(Block(0, text, ""), answer)
        _say(text if len(text) < 100 or "KEY" not in text else f"{text[:60]} …")
        return played


def first_run(summary: Any) -> Iterator[str]:
    """What is wrong with the answer of the first run: it must have looked, found, and left everything alone."""
    if not isinstance(summary, dict) or "run_id" not in summary:
        yield f"the first run did not answer with its summary: {summary}"
        return
    if summary["done"] or summary["due"] or summary["gaps"] or not summary["findings"].get("violation"):
        yield f"the first run found nothing, did something, or could not read all: {summary}"


def told_json(output: str) -> Any:
    """The first JSON object or list that a block printed, whatever stands around it."""
    for begun in re.finditer(r"^[{\[]", output, re.MULTILINE):
        try:
            value, _ = json.JSONDecoder().raw_decode(output[begun.start() :])
        except ValueError:
            continue
        return value
    return None


def _fill_in_answers(policy: Path) -> None:
    """As the page has it: the lines of `notify`, whose example names a channel, a workspace and two people."""
    file = policy / "costguard.yaml"
    text = file.read_text("utf-8")
    found = _NOTIFYING.findall(text)
    assert len(found) == 1, "the policy that init writes has no notify to fill in"
    file.write_text(text.replace(found[0], re.sub(r"^# ", "", found[0], flags=re.MULTILINE)), "utf-8")


def _confirmed(output: str, warned: tuple[str, ...]) -> Iterator[str]:
    """What is wrong where the doctor does not find this very deployment at work, or warns of something else."""
    sys.stdout.write(output)
    yield from (f"the doctor does not say: {line}" for line in _CONFIRMED if line not in output)
    warnings = re.findall(r"^warning  .*(?:\n .*)*", output, re.MULTILINE)
    if len(warnings) != len(warned) or not all(any(each in said for said in warnings) for each in warned):
        yield f"the doctor warns otherwise than of {warned}"


def _say(line: str) -> None:
    sys.stdout.write(f"    between: {line}\n")
    sys.stdout.flush()
