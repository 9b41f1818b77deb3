"""infra/aws set up in the sandbox, its functions called with what its schedules send, and taken down again.

moto keeps what is made and runs no code: each function's handler is started here as Lambda would start it, with the
environment, timeout and event that moto was given by Terraform.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, cast

import boto3
from moto.awslambda.models import LambdaFunction
from moto.iam.access_control import PermissionResult
from moto.s3.models import FakeBucket
from tests.infra.aws_terraform import ROOT, Ran, Workshop

from cloudstand.aws.core.patching import Patch, applied
from cloudstand.aws.core.server import LoopbackServer
from cloudstand.demo.fleet import aws_fleet
from cloudstand.world.fleet import MachineSpec
from costguard.cli.sandbox.running import Sandbox

_AWS, _REGION = "infra/aws", "us-east-1"
_SIGNING_SECRET = "made-up-" * 4
_SECRET_NAME = "costguard/slack-signing-secret"
_TIME = "<aws.scheduler.scheduled-time>"  # EventBridge Scheduler user guide, "Adding context attributes"
_DRIFT = 2  # `terraform plan -detailed-exitcode`: something would change

EMULATED = """\
provider "aws" {
  max_retries                 = 3
  s3_use_path_style           = true
  skip_credentials_validation = true
  skip_metadata_api_check     = true
}
"""

_POLICY = """\
version: 1
mode: observe
accounts:
  - {cloud: aws, id: "%s", regions: [us-east-1], owner: research}
idle_gpu:
  - name: research
    idle_when_all: {lasting: 24h, every_gpu_max_below: 5%%, cpu_max_below: 10%%}
    then: [warn, {stop: {wait: 24h}}]
budgets:
  - {name: all, monthly: 5000 USD, alert_at: [80%%]}
kms_rotation: [{name: ninety-days, rotate_every: 90d}]
network_audit: [{name: gpu-hosts, forbid: [public_ip, open_admin_port]}]
notify:
  default: "slack:C0123ABCD"
  answers: {slack_team: T0SANDBOX, approvers: [U0123ABCD, U0456EFGH]}
"""

_AS_LAMBDA = """\
import importlib.util, json, sys, time

class Context:
    aws_request_id = "7d0e5b3a-94c2-4f6d-8b1e-2a5c9f3e6d48"
    ends = time.monotonic() + float(sys.argv[2])
    def get_remaining_time_in_millis(self):
        return int(1000 * (self.ends - time.monotonic()))

spec = importlib.util.spec_from_file_location("handler", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print("ANSWER " + json.dumps(module.handler(json.loads(sys.argv[3]), Context())))
"""


def deployed_and_gone(shop: Workshop) -> list[str]:
    """What went wrong between `terraform apply` and an empty account."""
    with account_served() as (account, gap_closed):
        (shop.root / _AWS / "sandbox_override.tf").write_text(EMULATED, "utf-8")
        account.client("secretsmanager").create_secret(Name=_SECRET_NAME, SecretString=_SIGNING_SECRET)
        stage = _Stage(shop, account)
        problems = list(stage.checked())
    if gap_closed:
        problems.append("moto keeps dead letters of functions by now: aws_sandbox.py needs its patch no more")
    return problems


def signed_request(secret: str) -> dict[str, Any]:
    """The sample of a request to slack_actions, signed now."""
    event: dict[str, Any] = json.loads((ROOT / "events/lambda/slack_actions.json").read_text("utf-8"))
    at = str(int(time.time()))
    signed = hmac.new(secret.encode(), f"v0:{at}:{event['body']}".encode(), hashlib.sha256).hexdigest()
    event["headers"] |= {"x-slack-request-timestamp": at, "x-slack-signature": f"v0={signed}"}
    return event


@dataclass(frozen=True, slots=True)
class Account:
    """The sandbox's AWS, behind a server that knows every method."""

    url: str
    number: str
    keys: Mapping[str, str]

    def client(self, service: str, keys: Mapping[str, str] | None = None) -> Any:
        """By the management account's keys, or others."""
        keys = keys or self.keys
        return boto3.session.Session().client(
            cast("Any", service),
            region_name=_REGION,
            endpoint_url=self.url,
            aws_access_key_id=keys["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=keys["AWS_SECRET_ACCESS_KEY"],
            aws_session_token=keys.get("AWS_SESSION_TOKEN"),
        )


@contextmanager
def account_served(
    in_front: Callable[[Sandbox], Callable[..., Iterable[bytes]]] = lambda sandbox: sandbox.gateway,
    fleet: Callable[[datetime], tuple[MachineSpec, ...]] = aws_fleet,
) -> Iterator[tuple[Account, list[str]]]:
    """A fresh one; the list is filled where moto does by itself what is patched here.

    `in_front` is the application that is served: the sandbox's gateway, or something that hands on to it.
    """
    closed: list[str] = []
    at = datetime.now(timezone.utc)
    with Sandbox.start(fleet(at), at) as sandbox, applied((*_remembering(closed), _unconditioned())):
        server = LoopbackServer(in_front(sandbox), sandbox.clock)  # the sandbox's own knows GET, POST and PUT only
        keys = {
            "AWS_ACCESS_KEY_ID": sandbox.credentials.access_key_id,
            "AWS_SECRET_ACCESS_KEY": sandbox.credentials.secret_access_key,
            "AWS_ENDPOINT_URL": server.url,
            "AWS_REGION": _REGION,
        }
        try:
            number = Account(server.url, "", keys).client("sts").get_caller_identity()["Account"]
            yield Account(server.url, number, keys), closed
        finally:
            server.close()


def _remembering(closed: list[str]) -> tuple[Patch, ...]:
    """With these, moto knows where a function's dead letters and lines go; else every plan would set them again."""
    make, tell = LambdaFunction.__init__, LambdaFunction.get_configuration
    extra: dict[int, dict[str, Any]] = {}

    def making(self: Any, account_id: str, spec: dict[str, Any], region: str, *more: Any, **named: Any) -> None:
        make(self, account_id, spec, region, *more, **named)
        extra[id(self)] = {name: spec[name] for name in ("DeadLetterConfig", "LoggingConfig") if name in spec}

    def telling(self: Any, *more: Any, **named: Any) -> dict[str, Any]:
        told: dict[str, Any] = tell(self, *more, **named)
        if "DeadLetterConfig" in told:
            closed.append("DeadLetterConfig")
        return {**told, **extra.get(id(self), {})}

    why = "moto forgets a function's DeadLetterConfig and LoggingConfig"
    return (
        Patch(LambdaFunction, "__init__", making, why),
        Patch(LambdaFunction, "get_configuration", telling, why),
    )


def _unconditioned() -> Patch:
    """A bucket's policy says nothing here: moto reads "denied without TLS" as "denied"."""
    return Patch(
        FakeBucket,
        "get_permission",
        lambda *_: PermissionResult.NEUTRAL,
        "moto leaves the conditions of a bucket's policy unread, and there is no TLS on loopback",
    )


@dataclass(frozen=True, slots=True)
class _Stage:
    shop: Workshop
    account: Account

    def checked(self) -> Iterator[str]:
        """Apply, look, call, apply again, destroy; ends at what makes the rest senseless."""
        applied_once = self._terraform("apply", "-auto-approve")
        if applied_once.status:
            yield f"apply: {applied_once.text[-4000:]}"
            return
        again = self._terraform("plan", "-detailed-exitcode")
        if again.status:
            yield f"a second plan {'would change things' if again.status == _DRIFT else 'fails'}: {again.text[-4000:]}"
        told = self.shop.run(_AWS, "output", "-json")
        outputs = {name: output["value"] for name, output in json.loads(told.text).items()}
        yield from self._published(outputs)
        for name, function in outputs["functions"].items():
            yield from self._called(name, function, outputs)
        yield from self._kept(outputs)
        yield from self._removed()

    def _terraform(self, *words: str) -> Ran:
        secrets = json.dumps({"COSTGUARD_SLACK_SIGNING_SECRET": _SECRET_NAME})
        variables = {"region": _REGION, "bundles": str(self.shop.bundles), "secrets": secrets}
        said = [part for name, value in variables.items() for part in ("-var", f"{name}={value}")]
        return self.shop.run(_AWS, *words, "-no-color", "-input=false", *said, more=self.account.keys)

    def _published(self, outputs: Mapping[str, Any]) -> Iterator[str]:
        """The command of the deploy page."""
        file = self.shop.root / "policy.yaml"
        file.write_text(_POLICY % self.account.number, "utf-8")
        words = ["policy", "publish", str(file), "--to", outputs["policy_source"], "--ledger", outputs["ledger"]]
        done = self._python("-c", "from costguard.cli.main import main; main()", *words, more={})
        if done.returncode:
            yield f"costguard policy publish: {done.stdout}{done.stderr}"

    def _called(self, name: str, function: str, outputs: Mapping[str, Any]) -> Iterator[str]:
        made = self.account.client("lambda").get_function_configuration(FunctionName=function)
        event = self._request(outputs) if name == "slack_actions" else self._scheduled(name, made["FunctionArn"])
        if isinstance(event, str):
            yield event
            return
        done = self._python(
            "-c",
            _AS_LAMBDA,
            str(ROOT / "functions" / name / f"{made['Handler'].partition('.')[0]}.py"),
            str(made["Timeout"]),
            json.dumps(event),
            more={**made["Environment"]["Variables"], "AWS_LAMBDA_FUNCTION_NAME": function},
        )
        answer = next((line for line in done.stdout.splitlines() if line.startswith("ANSWER ")), None)
        if done.returncode or answer is None:
            yield f"{name} failed: {' '.join(done.stderr.splitlines()[-1:])}"
            return
        yield from _wrong_answer(name, json.loads(answer.removeprefix("ANSWER ")), event, done.stdout)

    def _scheduled(self, name: str, arn: str) -> dict[str, Any] | str:
        """What its schedule sends, the time filled in as EventBridge Scheduler does; or what is wrong with it."""
        schedule = self.account.client("scheduler").get_schedule(GroupName="costguard", Name=name)
        target = schedule["Target"]
        if (
            target["Arn"] != arn
            or schedule["State"] != "ENABLED"
            or not schedule["ScheduleExpression"].startswith("cron(")
        ):
            return f"the schedule of {name} starts something else, or nothing: {schedule}"
        now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        event: dict[str, Any] = json.loads(target["Input"].replace(_TIME, now))
        return event

    def _request(self, outputs: Mapping[str, Any]) -> dict[str, Any] | str:
        """The sample of a request, signed, as the HTTP API that was made hands it over."""
        if not outputs["answer_url"].startswith("https://"):
            return f"answer_url is {outputs['answer_url']!r}"
        return signed_request(_SIGNING_SECRET)

    def _kept(self, outputs: Mapping[str, Any]) -> Iterator[str]:
        runs = self.account.client("dynamodb").query(
            TableName="costguard-ledger",
            KeyConditionExpression="#kind = :kind",
            ExpressionAttributeNames={"#kind": "kind"},
            ExpressionAttributeValues={":kind": {"S": "run_latest"}},
        )
        kept = {item["key"]["S"] for item in runs["Items"]}
        if missing := {"idle_gpu", "kms_rotation", "network_audit"} - kept:
            yield f"the ledger knows no run of {sorted(missing)}, only of {sorted(kept)}"
        bucket = outputs["policy_source"].removeprefix("s3://").partition("/")[0]
        keys = [one["Key"] for one in self.account.client("s3").list_objects_v2(Bucket=bucket).get("Contents", [])]
        if not any(key.startswith("policy/") for key in keys) or not any(key.startswith("reports/") for key in keys):
            yield f"the bucket holds no policy or no digest: {keys}"

    def _removed(self) -> Iterator[str]:
        """As the deploy page has it: say aloud that what is kept may go, then destroy."""
        ledger = self.account.client("dynamodb").describe_table(TableName="costguard-ledger")["Table"]
        if not ledger["DeletionProtectionEnabled"]:
            yield "the ledger may be deleted by anybody"
        for words in (("apply", "-auto-approve"), ("destroy", "-auto-approve")):
            ran = self._terraform(*words, "-var", "deletion_protection=false")
            if ran.status:
                yield f"{words[0]} without protection: {ran.text[-4000:]}"
                return
        left = self.shop.run(_AWS, "state", "list")
        functions = self.account.client("lambda").list_functions()["Functions"]
        tables = self.account.client("dynamodb").list_tables()["TableNames"]
        if left.text.strip() or functions or tables:
            yield f"left behind: {left.text} {functions} {tables}"

    def _python(self, *words: str, more: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in self.shop.environment.items() if not name.startswith("TF_")}
        return subprocess.run(  # noqa: S603 - this project's own code
            [sys.executable, *words],
            env={**kept, **self.account.keys, **more},
            cwd=Path(self.shop.root),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


def _wrong_answer(name: str, answer: Mapping[str, Any], event: Mapping[str, Any], log: str) -> Iterator[str]:
    if name == "slack_actions":
        if answer.get("statusCode") != 200:
            yield f"{name} answered {answer}"
        return
    at = datetime.fromisoformat(str(answer["scheduled_at"])).strftime("%Y-%m-%dT%H:%M:%SZ")
    if answer["scheduled_at_assumed"] or at != event["time"]:
        yield f"{name} does not know the time it was scheduled for: {answer}"
    figures = [json.loads(line) for line in log.splitlines() if line.startswith('{"') and '"_aws"' in line]
    dimensions = [(line.get("service"), line.get("function"), "DurationSeconds" in line) for line in figures]
    if dimensions != [("costguard", name, True)]:
        yield f"{name} wrote other figures than the alarms on missed runs look for: {dimensions}"
