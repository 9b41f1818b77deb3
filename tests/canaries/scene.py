"""A sandbox with canaries in it: secrets that nobody else has, wherever secrets are, and everything that leaves."""

from __future__ import annotations

import io
import json
import traceback
from base64 import b64encode
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import boto3

from cloudstand.aws.core.server import LoopbackServer, Refused
from cloudstand.clouds import STARTS_AT
from cloudstand.fleets import alibaba_machine, aws_machine, tencent_machine
from cloudstand.mail import MailServer
from cloudstand.slack.stand_in import SlackStandIn
from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.world import workload as does
from costguard.adapters.ledgers.open import open_ledger
from costguard.cli.main import run as run_command
from costguard.cli.program import Program
from costguard.cli.sandbox.running import Sandbox
from costguard.connections.secrets import SecretKeeper
from costguard.domain.errors import CostguardError
from costguard.faas.handler import build_handler, build_http_handler
from costguard.faas.local import invoke
from costguard.settings import Settings, load_settings

ROOT = Path(__file__).parents[2]
GUARDS = ("idle_gpu", "budget", "kms_rotation", "network_audit", "digest")
LONG_AGO = STARTS_AT - timedelta(days=30)


def canary(name: str) -> str:
    """A value that looks like nothing known: only who knows it can blank it."""
    return f"canary {name} ünïque-0123456789"


@dataclass
class Planted:
    """Every canary by where it was put. `apart` is what a shape alone gives away, in texts that users wrote."""

    known: dict[str, str] = field(default_factory=dict)

    def put(self, name: str, value: str = "") -> str:
        self.known[name] = value or canary(name)
        return self.known[name]

    def found_in(self, text: str) -> list[str]:
        """Which of them are in `text`, in any form that JSON, addresses and headers give them."""
        return sorted(name for name, value in self.known.items() if any(form in text for form in _forms(value)))


def _forms(value: str) -> set[str]:
    plain = {value, unquote(value)}
    escaped = {json.dumps(one, ensure_ascii=way)[1:-1] for one in plain for way in (True, False)}
    encoded = {b64encode(one.encode()).decode().rstrip("=") for one in plain}
    return plain | escaped | encoded | {quote(one, safe="") for one in plain} | {repr(one)[1:-1] for one in plain}


class Scene:
    """A sandbox with canaries in it, and everything that left."""

    def __init__(self, folder: Path, opened: ExitStack) -> None:
        self.folder = folder
        self.planted = Planted()
        self.log = io.StringIO()
        self.left: list[tuple[str, str]] = []
        put = self.planted.put
        kept = {"db-password": put("tag")}
        fleet = (
            aws_machine("one", "g4dn.xlarge", does.idle(), LONG_AGO, tags={**kept, "team": "one"}),
            alibaba_machine("two", does.idle(), LONG_AGO, tags={**kept, "team": "two"}),
            tencent_machine("three", does.idle(), LONG_AGO, tags={**kept, "team": "three"}),
        )
        self.sandbox = opened.enter_context(Sandbox.start(fleet))
        self.slack = opened.enter_context(
            SlackStandIn(
                self.sandbox.clock, token=put("slack", "canary-slack-0123456789"), signing_secret=put("signing")
            )
        )
        self.mail = MailServer(user="guard", password=put("smtp", "canary-smtp-0123456789"))
        opened.callback(self.mail.close)
        self.echo = LoopbackServer(self._echo, self.sandbox.clock)
        opened.callback(self.echo.close)
        self.ledger = f"sqlite:///{folder / 'ledger.db'}"
        self.reached: list[str] = []
        self.unbound = LoopbackServer(self._reached, self.sandbox.clock)
        opened.callback(self.unbound.close)
        servers = {"prometheus": self.echo.url, "unbound": self.unbound.url}
        (folder / "costguard.yaml").write_text(_POLICY.format(**servers), "utf-8")
        (folder / "owners.yaml").write_text(_OWNERS.format(hook=self._hook()), "utf-8")

    def _hook(self) -> str:
        return f"{self.echo.url}/services/{self.planted.put('webhook', 'canary-webhook-path-0123456789')}"

    def _reached(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """A Prometheus of the policy that the settings do not name: whatever it is sent is noted."""
        self.reached.append(" ".join(f"{name}={value}" for name, value in environ.items()))
        start("200 OK", [("Content-Length", "0")])
        return []

    def _echo(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Prometheus, and any other, refusing with all that it was told."""
        told = (str(value) for name, value in environ.items() if name.startswith("HTTP_"))
        body = f"refused: {environ['PATH_INFO']} {' '.join(told)}".encode("utf-8", "replace")
        start("403 Forbidden", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
        return [body]

    def settings(self) -> Settings:
        """As from an environment that refers to the secret store of AWS for all there is."""
        put = self.planted.put
        robots = {
            "feishu:ops": {
                "hook": f"{self.echo.url}/open-apis/bot/v2/hook/{put('hook', 'canary-hook-0123456789')}",
                "secret": put("robot", "canary-robot-0123456789"),
            }
        }
        kept = {
            "COSTGUARD_SLACK_TOKEN": self.planted.known["slack"],
            "COSTGUARD_SLACK_SIGNING_SECRET": self.planted.known["signing"],
            "COSTGUARD_SMTP_PASSWORD": self.planted.known["smtp"],
            "COSTGUARD_WEBHOOK_SECRET": put("webhook secret"),
            "COSTGUARD_LINK_SECRET": put("link", "canary-link-secret-0123456789-0123456789"),
            "COSTGUARD_PROMETHEUS_AUTHORIZATION": put("prometheus", "Basic canary-prometheus-0123456789"),
            "COSTGUARD_ROBOTS": json.dumps(robots),
            "TENCENTCLOUD_SECRET_KEY": put("another cloud's key"),
        }
        mine = self.sandbox.settings(Settings())
        assert mine.aws.key is not None
        own: dict[str, Any] = {
            "aws_access_key_id": mine.aws.key.key_id,
            "aws_secret_access_key": mine.aws.key.secret.reveal(),
        }
        client: Any = boto3.client("secretsmanager", "us-east-1", endpoint_url=self.sandbox.endpoint_url, **own)
        client.create_secret(Name="costguard", SecretString=json.dumps({**kept, "unused": put("another field")}))
        client.close()
        given = {name: f"secret:aws:costguard#{name}" for name in kept}
        more = {
            "TENCENTCLOUD_SECRET_ID": "id",
            "COSTGUARD_LOG_LEVEL": "DEBUG",
            "COSTGUARD_POLICY": str(self.folder),
            "COSTGUARD_LEDGER": self.ledger,
            "COSTGUARD_REPORTS": str(self.folder / "reports"),
            "COSTGUARD_SLACK_URL": self.slack.base_url,
            "COSTGUARD_SMTP_URL": f"smtp://guard@127.0.0.1:{self.mail.port}",
            "COSTGUARD_MAIL_FROM": "costguard@example.com",
            "COSTGUARD_ANSWER_URL": "https://answers.example.com",
            "COSTGUARD_WEBHOOK_PRIVATE": "1",
            "COSTGUARD_PROMETHEUS_HOSTS": self.echo.url.removeprefix("http://").rstrip("/"),
        }
        settings = replace(load_settings({**given, **more}), aws=mine.aws)
        settings = SecretKeeper().settled(settings, self.sandbox.clock.now())
        for cloud, access in (("alibaba", mine.alibaba), ("tencent", mine.tencent), ("aws", mine.aws)):
            assert access.key is not None
            put(f"key of {cloud}", access.key.secret.reveal())
            changed: dict[str, Any] = {cloud: access}
            settings = replace(settings, **changed)
        return settings

    def note(self, where: str, text: object) -> None:
        self.left.append((where, text if isinstance(text, str) else json.dumps(text, default=str, ensure_ascii=False)))

    def run(self, function: str, settings: Settings, hour: int) -> bool:
        """Whether the function ended well; what it answered or raised is noted."""
        text = (ROOT / "events/lambda" / f"{function}.json").read_text("utf-8")
        event = text.replace("T09:", f"T{hour:02}:").encode()  # one event is one run
        handler = build_handler(function, settings=lambda: settings, clock=self.sandbox.clock, stream=self.log)
        try:
            self.note(f"answer of {function}", invoke(handler, event, self.sandbox.clock))
        except CostguardError as err:
            self.note(f"error of {function}", "".join(traceback.format_exception(err)))
            return False
        return True

    def command(self, settings: Settings, *arguments: str) -> int:
        """The status of a command; what it printed is noted."""
        out = io.StringIO()
        program = Program(settings=lambda: settings, clock=self.sandbox.clock)
        with redirect_stdout(out), redirect_stderr(out):
            status = run_command(arguments, program=program)
        self.note(f"costguard {' '.join(arguments[:2])}", out.getvalue())
        return status

    def ask(self, settings: Settings, request: Any) -> int:
        """What Slack is answered, and how; noted."""
        event = {
            "version": "2.0",
            "requestContext": {"http": {"method": "POST", "path": "/slack"}},
            "rawPath": "/slack",
            "rawQueryString": "",
            "headers": {name.lower(): value for name, value in request.headers.items()},
            "body": request.body.decode(),
        }
        handler = build_http_handler(
            "slack_actions", settings=lambda: settings, clock=self.sandbox.clock, stream=self.log
        )
        answer = handler(event, None)
        self.note("answer of slack_actions", answer)
        return int(str(answer["statusCode"]))

    def go_wrong(self) -> None:
        """From now on clouds, Slack and mail answer with errors that repeat what they were told, or know themselves."""
        known = self.planted.known
        for cloud, form in (("aws", "SecretAccessKey"), ("alibaba", "AccessKeySecret"), ("tencent", "SecretKey")):
            told = f"https://x.example/?Signature=abcdef0123456789&{form}={known[f'key of {cloud}']}"
            if cloud == "aws":
                for service, action in (("ec2", "DescribeInstances"), ("ec2", "DescribeVpcs"), ("kms", "ListKeys")):
                    self.sandbox.gateway.refused.append(Refused(service, action, "UnauthorizedOperation", told))
            emulator = {"alibaba": self.sandbox.alibaba, "tencent": self.sandbox.tencent}.get(cloud)
            if emulator is not None:
                for action in ("DescribeInstances", "ListKeys", "ListKeyDetail", "DescribeVpcs"):
                    emulator.faults.add(Fault(FaultKind.REFUSED, action, 1_000, code=f"SignatureDoesNotMatch {told}"))
        self.slack.faults.status, self.slack.faults.body = 500, f"{known['slack']} {known['signing']}"
        self.slack.faults.error = f"bad_token {known['slack']}"
        self.mail.faults.replies = {"MAIL": f"550 5.7.1 no: {known['smtp']}"}

    def everything(self) -> list[tuple[str, str]]:
        """All that left: answers, errors, logs, messages, mails, the ledger, files."""
        found = [*self.left, ("log", self.log.getvalue())]
        found += [
            ("slack", json.dumps([posted.text, posted.blocks], ensure_ascii=False)) for posted in self.slack.posted
        ]
        found += [("mail", str(taken.parsed)) for taken in self.mail.taken]
        with closing(open_ledger(self.ledger)) as store:
            kinds = (
                "audit",
                "audit_words",
                "audit_person",
                "audit_person_index",
                "run",
                "case",
                "notice",
                "told",
                "look",
                "look_piece",
                "digest",
            )
            more = (
                "last_good",
                "policy",
                "launch",
                "meter",
                "saving",
                "bill",
                "bill_month",
                "intent",
                "phase",
                "outbox_dead",
            )
            for kind in (*kinds, *more):
                for record in store.query(kind):
                    found.append((f"ledger: {kind} {record.key}", f"{record.key} {json.dumps(record.body)}"))
        files = (path for path in self.folder.rglob("*") if path.is_file() and path.suffix not in {".yaml", ".db"})
        found += [
            (str(path.name), path.read_bytes().decode("utf-8", "replace"))
            for path in files
            if "ledger" not in path.name
        ]
        return found


_POLICY = """
version: 1
mode: warn
notify: {{default: "slack:#gpu"}}
accounts:
  - {{cloud: aws, id: "111122223333", regions: [us-east-1], role: costguard, external_id: costguard-sandbox}}
  - {{cloud: alibaba, id: "1234567890123456", regions: [cn-hangzhou]}}
  - {{cloud: tencent, id: "100012345678", regions: [ap-guangzhou]}}
signals: {{prometheus: [{{url: "{prometheus}"}}, {{url: "{unbound}"}}]}}
idle_gpu: [{{name: all}}]
budgets: [{{name: all, covers: {{tags: {{team: one}}}}, monthly: 1 USD, alert_at: [50%]}}]
kms_rotation: [{{name: all, rotate_every: 90d}}]
network_audit: [{{name: all, forbid: [public_ip, open_admin_port]}}]
"""
_OWNERS = """
- {{name: one, owns: {{tags: {{team: one}}}}, channel: "mailto:one@example.com"}}
- {{name: two, owns: {{tags: {{team: two}}}}, channel: "feishu:ops"}}
- {{name: three, owns: {{tags: {{team: three}}}}, channel: "{hook}"}}
"""
