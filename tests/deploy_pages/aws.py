"""docs/deploy-aws.md, followed against the sandbox: Terraform's own provider, AWS's command line, the built bundles.

Then `costguard deploy aws` once more: without a change, without agreement, and where it would lose the ledger.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.deploy_pages.aws_desk import ADMINISTRATOR, ANOTHER, KEYS, MEMBERS, Desk, fleet, opened
from tests.deploy_pages.pages import ROOT, Block, Played, Terminal, followed, unassign
from tests.infra.aws_sandbox import Account, signed_request

from cloudstand.fleets import PRODUCT
from costguard.cli.sandbox.running import EXTERNAL_ID

PAGE = ROOT / "docs" / "deploy-aws.md"
_FIRST = frozenset({"idle_gpu", "budget", "kms_rotation", "network_audit"})
_ALL = _FIRST | {"digest", "slack_actions"}
_ACTING = frozenset({"act-idle_gpu", "act-budget", "rotate", "fix_network", "succeed", "freeze"})
_ASKING = re.compile(r"^(?:terraform .*\b(?:apply|destroy)\b|costguard deploy )", re.MULTILINE)
_MEMBER = "-chdir=infra/aws/member"
_FOR_ANOTHER = "another"  # marks what is played again in another account
_DEPLOYS = (
    ("--plan-only", "", 0, "Nothing would change."),
    ("--var log_retention_days=30 --plan-only", "", 10, "7 to update."),
    ("--var log_retention_days=30", "n\n", 12, "Not agreed to; nothing was changed."),
    ("--var name=another --yes", "", 12, "this would destroy what Costguard remembers: aws_dynamodb_table.ledger, "),
)
"""Further words, what is typed at the question, the status, and what is said."""


def check() -> list[str]:
    """What is wrong with the page, or with `costguard deploy aws`."""
    with opened() as desk:
        return list(followed(PAGE, AwsStage(desk), desk.tree))


@dataclass(slots=True)
class AwsStage:
    """What a reader of docs/deploy-aws.md does beside typing its blocks, and what is to be seen after each."""

    desk: Desk
    variables: str = "infra/aws/terraform.tfvars"
    codes: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Where the sandbox is."""
        return self.desk.account.url

    @property
    def environ(self) -> Mapping[str, str]:
        """What a reader's terminal knows before the first block."""
        return self.desk.environ

    @property
    def replacing(self) -> Mapping[str, str]:
        """What a reader fills in."""
        return {
            "222233334444": PRODUCT,
            "333344445555": ANOTHER,
            "acme-costguard": EXTERNAL_ID,
            "T0123ABCD": "T0SANDBOX",
        }

    @property
    def skipped(self) -> Mapping[str, str]:
        """Nothing."""
        return {}

    def before(self, block: Block, terminal: Terminal) -> str:
        """Do what the prose before a block asks for; what is typed where the block's commands ask something."""
        if "file://slack-token.txt" in block.text:
            slack = self.desk.sandbox.slack
            (self.desk.tree / "slack-token.txt").write_text(slack.token, "utf-8")
            (self.desk.tree / "slack-signing-secret.txt").write_text(slack.signing_secret, "utf-8")
        if block.language != _FOR_ANOTHER:
            self._sign_in(PRODUCT if _MEMBER in block.text else "", terminal)
        if "costguard deploy aws" in block.text:  # the new version
            self.codes = {name: made["CodeSha256"] for name, made in self._functions().items()}
            with (self.desk.tree / "shared/costguard/__init__.py").open("a", encoding="utf-8") as file:
                file.write("# a newer version\n")
        return "yes\n" * len(_ASKING.findall(block.text))

    def after(self, block: Block, played: Played, terminal: Terminal) -> Iterator[str]:
        """What is wrong with what came of a block. Afterwards do what the prose behind it asks for."""
        if _MEMBER in block.text and block.language != _FOR_ANOTHER:
            yield from self._in_another(block, terminal)
        if block.text.startswith("secrets ="):
            unassign(self.desk.tree / self.variables, "functions")  # "leave `functions` out to have all six"
        for begins, look in self._looks().items():
            if begins in block.text:
                yield from look(block, played)
        if "costguard deploy aws" in block.text:
            yield from self._deployed_again(terminal)

    def _looks(self) -> Mapping[str, Callable[[Block, Played], Iterator[str]]]:
        return {
            "get-account-settings": lambda _, played: _lacks(played, "1000"),
            "costguard bundle": self._bundled,
            "terraform -chdir=infra/aws plan": lambda _, played: _lacks(played, " 0 to change, 0 to destroy."),
            "terraform -chdir=infra/aws apply": self._applied,
            "output -raw answer_url": self._answering,
            "infra/aws/member apply": self._entered,
            "create-stack-set": self._stack_set,
            "costguard policy init": lambda _, played: _lacks(played, "begin with costguard.yaml"),
            "costguard policy publish": self._ran,
            "costguard doctor": self._confirmed,
            "costguard deploy aws": self._updated,
            "infra/aws/member destroy": self._left,
        }

    def _sign_in(self, account: str, terminal: Terminal) -> None:
        """With credentials of a member account, or again with one's own."""
        keys = self.desk.account.keys if not account else self.desk.keys_of(account)
        told = "".join(f"export {name}='{value}'\n" for name, value in keys.items() if name in KEYS)
        terminal.play(Block(0, "unset AWS_SESSION_TOKEN\n" + told, ""))

    def _in_another(self, block: Block, terminal: Terminal) -> Iterator[str]:
        """The same in the other member account."""
        same = replace(block, text=block.text.replace(PRODUCT, ANOTHER), language=_FOR_ANOTHER)
        self._sign_in(ANOTHER, terminal)
        if "workspace" not in same.text:
            terminal.play(replace(same, text=f"terraform -chdir=infra/aws/member workspace select {ANOTHER}\n"))
        played = terminal.play(same, self.before(same, terminal))
        if played.status:
            yield f"in another account: {played.output[-2000:]}"
        terminal.play(replace(same, text=f"terraform -chdir=infra/aws/member workspace select {PRODUCT}\n"))

    def _functions(self) -> Mapping[str, Any]:
        found = self.desk.account.client("lambda").list_functions()["Functions"]
        return {made["FunctionName"].removeprefix("costguard-"): made for made in found}

    def _bundled(self, _: Block, __: Played) -> Iterator[str]:
        made = {path.name for path in (self.desk.tree / "build/lambda").iterdir()}
        wanted = {f"{name}.{kind}" for name in _ALL for kind in ("zip", "cdx.json")} | {"SHA256SUMS"}
        if made != wanted:
            yield f"build/lambda holds {sorted(made)}"

    def _applied(self, block: Block, played: Played) -> Iterator[str]:
        if "destroy" in block.text:
            return
        yield from _lacks(played, "Apply complete!", " 0 destroyed." if "No changes" not in played.output else "")
        text = (self.desk.tree / self.variables).read_text("utf-8")
        wanted = _ALL if "functions " not in text else _FIRST
        if set(self._functions()) != wanted:
            yield f"there are {sorted(self._functions())}, not {sorted(wanted)}"
            return
        iam = self.desk.account.client("iam")
        acting = {role: self._attached(iam, f"costguard-{role}") & _ACTING for role in sorted(wanted)}
        enforcing = "enforce" in text
        if enforcing != any(acting.values()) or (enforcing and acting["idle_gpu"] != {"act-idle_gpu"}):
            yield f"enforce is {enforcing}, and roles may {acting}"
        asked = self.desk.account.client("sns").list_subscriptions()["Subscriptions"]
        if [one["Endpoint"] for one in asked] != ["ops@example.com"] * 2:
            yield f"AWS asks others to confirm: {asked}"

    def _attached(self, iam: Any, role: str) -> set[str]:
        listed = iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
        return {each["PolicyName"].removeprefix("costguard-").removeprefix("member-") for each in listed}

    def _answering(self, _: Block, played: Played) -> Iterator[str]:
        """It is an address."""
        if re.fullmatch(r"https://\S+", played.output.splitlines()[-1]) is None:
            yield f"answer_url is {played.output.splitlines()[-1]!r}"

    def _entered(self, block: Block, _: Played) -> Iterator[str]:
        for account in MEMBERS:
            iam = self.desk.account.client("iam", self.desk.keys_of(account))
            roles = [each["RoleName"] for each in iam.list_roles()["Roles"] if "costguard" in each["RoleName"]]
            if sorted(roles) != [f"costguard-member-{name}" for name in sorted(_FIRST)]:
                yield f"account {account} has {sorted(roles)}"
            acting = self._attached(iam, "costguard-member-idle_gpu") & _ACTING
            if acting != ({"act-idle_gpu"} if "acting=true" in block.text else set()):
                yield f"idle_gpu may {acting} in {account}"

    def _stack_set(self, _: Block, __: Played) -> Iterator[str]:
        sets = self.desk.account.client("cloudformation").list_stack_sets()["Summaries"]
        if [one["StackSetName"] for one in sets] != ["costguard-member"]:
            yield f"stack sets: {sets}"

    def _ran(self, _: Block, played: Played) -> Iterator[str]:
        """Each guard once, of three accounts, from the zip that was uploaded."""
        yield from _lacks(played, "Published ", "run finished", '"gaps": 0', '"rehearsed": ')
        if "FunctionError" in played.output:
            yield played.output[-4000:]
        ran = {done.function: done for done in self.desk.functions.invoked}
        for name in sorted(_FIRST):
            done = ran.get(f"costguard-{name}")
            if done is None or done.error or done.answer.get("guard") != name:
                yield f"{name}: {done}"
        seen = ran["costguard-idle_gpu"].answer.get("instances_seen")
        if seen != len(fleet(self.desk.sandbox.clock.now())):
            yield f"idle_gpu sees {seen} instances"
        event = signed_request(self.desk.sandbox.slack.signing_secret)
        call = self.desk.account.client("lambda").invoke
        answer = json.load(call(FunctionName="costguard-slack_actions", Payload=json.dumps(event))["Payload"])
        if answer.get("statusCode") != 200:
            yield f"slack_actions answers {answer}"

    def _confirmed(self, _: Block, played: Played) -> Iterator[str]:
        sys.stdout.write("".join(f"    {line[:150]}\n" for line in played.output.splitlines()))
        yield from _lacks(played, "It is safe to enforce", "Every function that the policy needs runs: idle_gpu, kms_")

    def _updated(self, _: Block, played: Played) -> Iterator[str]:
        yield from _lacks(played, "6 to update")
        now = {name: made["CodeSha256"] for name, made in self._functions().items()}
        if same := [name for name in now if now[name] == self.codes.get(name)]:
            yield f"still the old code: {same}"
        call = self.desk.account.client("lambda").invoke
        done = call(FunctionName="costguard-idle_gpu", Payload=b"{}")
        if "FunctionError" in done:
            yield f"idle_gpu fails after the update: {done['Payload'].read()!r}"

    def _deployed_again(self, terminal: Terminal) -> Iterator[str]:
        """What else `costguard deploy` promises: nothing where nothing changed, no loss of memory, no without a yes."""
        for words, typed, status, said in _DEPLOYS:
            began = time.monotonic()
            played = terminal.play(Block(0, f"costguard deploy aws --bundles build/lambda {words}\n", ""), typed)
            sys.stdout.write(f"  costguard deploy aws {words} ({time.monotonic() - began:.1f} s)\n")
            if played.status != status or said not in played.output:
                yield f"costguard deploy aws {words}: {played.status}: {played.output[-3000:]}"

    def _left(self, _: Block, __: Played) -> Iterator[str]:
        """Nothing of Costguard's, but secrets and what a reader made."""
        left = {name: found for name, found in left_in(self.desk.account).items() if found}
        if left != {"secrets": ["costguard/slack-signing-secret", "costguard/slack-token"]}:
            yield f"left behind: {left}"
        for account in MEMBERS:
            iam = self.desk.account.client("iam", self.desk.keys_of(account))
            roles = [each["RoleName"] for each in iam.list_roles()["Roles"]]
            if roles != [ADMINISTRATOR]:
                yield f"left behind in {account}: {roles}"


def _lacks(played: Played, *words: str) -> Iterator[str]:
    yield from (f"nobody says {each!r}: {played.output[-4000:]}" for each in words if each not in played.output)


def left_in(account: Account) -> Mapping[str, list[str]]:
    """What there is in the account, by kind."""
    client = account.client
    roles = client("iam").list_roles()["Roles"]
    return {
        "functions": [one["FunctionName"] for one in client("lambda").list_functions()["Functions"]],
        "tables": client("dynamodb").list_tables()["TableNames"],
        "buckets": [one["Name"] for one in client("s3").list_buckets()["Buckets"]],
        "roles": [one["RoleName"] for one in roles],
        "policies": [one["PolicyName"] for one in client("iam").list_policies(Scope="Local")["Policies"]],
        "topics": [one["TopicArn"] for one in client("sns").list_topics()["Topics"]],
        "queues": client("sqs").list_queues().get("QueueUrls", []),
        "logs": [one["logGroupName"] for one in client("logs").describe_log_groups()["logGroups"]],
        "alarms": [one["AlarmName"] for one in client("cloudwatch").describe_alarms()["MetricAlarms"]],
        "schedules": [one["Name"] for one in client("scheduler").list_schedules()["Schedules"]],
        "addresses": [one["Name"] for one in client("apigatewayv2").get_apis()["Items"]],
        "secrets": sorted(one["Name"] for one in client("secretsmanager").list_secrets()["SecretList"]),
    }
