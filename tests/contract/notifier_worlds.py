"""Every channel with its stand-in, for the one suite over all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from email import message_from_string
from email.message import EmailMessage
from email.policy import default
from typing import Any, Protocol

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.ses.models import ses_backends
from tests.webhook_receiver import WebhookReceiver
from tests.world_ports.translate import to_product

from cloudstand.alibaba.emulator import AlibabaEmulator
from cloudstand.aws.core.server import LoopbackServer
from cloudstand.clock import MovedClock
from cloudstand.mail import MailServer
from cloudstand.robots import RobotStandIns
from cloudstand.slack.stand_in import SlackStandIn
from cloudstand.wire.door import WorldDoor
from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.world.cloud import World
from costguard.adapters.notifiers.email import EmailNotifier
from costguard.adapters.notifiers.robots.dingtalk import DingTalk
from costguard.adapters.notifiers.robots.feishu import Feishu
from costguard.adapters.notifiers.robots.notifier import RobotNotifier, RobotVendor, read_robots
from costguard.adapters.notifiers.robots.wecom import WeCom
from costguard.adapters.notifiers.router import NotifierRouter
from costguard.adapters.notifiers.slack.notifier import SlackNotifier
from costguard.adapters.notifiers.smtp import SmtpCarrier
from costguard.adapters.notifiers.webhook import WebhookNotifier
from costguard.ports import Notifier
from costguard.providers.alibaba.core.services import DirectMailCarrier
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.aws.core.services import SesCarrier
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.kit.core.pacing import Pacer
from costguard.providers.kit.iam.permissions import Purpose

NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
ENOUGH = timedelta(seconds=10)
SENDER = "costguard@example.com"
RECIPIENT = "ops@example.com"
SECRET = "a-very-secret-thing"


@dataclass(frozen=True, slots=True)
class Got:
    """One notice as people or programs get it: what shows as its title, all of its words, and its name on the wire."""

    title: str
    words: str
    name: str


class Channel(Protocol):
    """One channel and what stands in for it."""

    address: str
    notifier: Notifier

    def got(self) -> list[Got]:
        """What arrived, in order."""

    def refuse(self, how: str) -> None:
        """From now on: `busy`, `never`, `fault`, `silent` (no answer), `lost` (taken, and no answer), or `fine`."""

    def reset(self) -> None:
        """Nothing goes wrong, and nothing arrived."""

    def close(self) -> None: ...


def routed(scheme: str, notifier: Notifier) -> Notifier:
    return NotifierRouter({scheme: notifier}, default=scheme)


class SlackChannel:
    address = "slack:#gpu"

    def __init__(self) -> None:
        self.stand_in = SlackStandIn(MovedClock(NOW), token=SECRET)
        self.notifier = routed("slack", SlackNotifier(SECRET, base_url=self.stand_in.base_url, timeout=ENOUGH))

    def got(self) -> list[Got]:
        return [
            Got(each.blocks[0]["text"]["text"], json.dumps(each.blocks, ensure_ascii=False), "")
            for each in self.stand_in.posted
        ]

    def refuse(self, how: str) -> None:
        faults = self.stand_in.faults
        faults.rate_limits = 1 if how == "busy" else 0
        faults.revoked = how == "never"
        faults.status = 500 if how == "fault" else 0
        faults.down = how == "silent"
        faults.forget_ts = how == "lost"

    def reset(self) -> None:
        self.refuse("fine")
        self.stand_in.posted.clear()

    def close(self) -> None:
        self.stand_in.close()


def read(mail: EmailMessage) -> Got:
    bodies = [mail.get_body((kind,)) for kind in ("plain", "html")]
    words = "\n".join(body.get_content() for body in bodies if body is not None)
    return Got(str(mail["Subject"]), words, str(mail["Message-ID"]))


class SmtpChannel:
    address = f"mailto:{RECIPIENT}"

    def __init__(self) -> None:
        self.stand_in = MailServer(user="guard", password=SECRET)
        carrier = SmtpCarrier("127.0.0.1", self.stand_in.port, user="guard", password=SECRET, timeout=ENOUGH)
        self.notifier = routed("mailto", EmailNotifier(carrier, SENDER, now=lambda: NOW))

    def got(self) -> list[Got]:
        return [read(mail.parsed) for mail in self.stand_in.taken]

    def refuse(self, how: str) -> None:
        said = {
            "busy": {"MAIL": f"450 4.7.1 too many mails for {SECRET}, slow down"},
            "never": {"RCPT": f"550 5.1.1 no such user, says {SECRET}"},
            "fault": {"sent": "451 4.3.0 local error"},
        }
        self.stand_in.faults.replies = said.get(how, {})
        self.stand_in.faults.lost = {"silent": "connect", "lost": "sent"}.get(how, "")

    def reset(self) -> None:
        self.refuse("fine")
        self.stand_in.taken.clear()

    def close(self) -> None:
        self.stand_in.close()


class WebhookChannel:
    def __init__(self) -> None:
        clock = MovedClock(NOW)
        self.stand_in = WebhookReceiver(clock, secret=SECRET)
        self.address = self.stand_in.url
        notifier = WebhookNotifier(SECRET, now=clock.now, private=True, timeout=ENOUGH)
        self.notifier = routed("http", notifier)

    def got(self) -> list[Got]:
        return [
            Got(each.document["title"], json.dumps(each.document, ensure_ascii=False), each.key)
            for each in self.stand_in.received
        ]

    def refuse(self, how: str) -> None:
        faults = self.stand_in.faults
        faults.status = {"busy": 429, "never": 410, "fault": 502}.get(how, 0)
        faults.down, faults.lost = how == "silent", how == "lost"

    def reset(self) -> None:
        self.refuse("fine")
        self.stand_in.received.clear()

    def close(self) -> None:
        self.stand_in.close()


class RobotChannel:
    kind: str
    vendor: RobotVendor

    def __init__(self) -> None:
        clock = MovedClock(NOW)
        self.address = f"{self.kind}:ops"
        self.stand_in = RobotStandIns(clock, token=f"token-{SECRET}", secret=SECRET)
        robots = read_robots(self.stand_in.setting, private=True)
        mine = {address: robot for address, robot in robots.items() if robot.kind == self.kind}
        notifier = RobotNotifier(self.vendor, mine, now=clock.now, private=True, timeout=ENOUGH)
        self.notifier = routed(self.kind, notifier)

    def got(self) -> list[Got]:
        return [Got(each.title, each.words, "") for each in self.stand_in.posted]

    def refuse(self, how: str) -> None:
        faults = self.stand_in.faults
        faults.busy, faults.disabled = how == "busy", how == "never"
        faults.status, faults.answer = (500, b"<html>oops</html>") if how == "fault" else (200, None)
        faults.down, faults.lost = how == "silent", how == "lost"

    def reset(self) -> None:
        self.refuse("fine")
        self.stand_in.posted.clear()

    def close(self) -> None:
        self.stand_in.close()


class FeishuChannel(RobotChannel):
    kind = "feishu"
    vendor = Feishu()


class DingTalkChannel(RobotChannel):
    kind = "dingtalk"
    vendor = DingTalk()


class WeComChannel(RobotChannel):
    kind = "wecom"
    vendor = WeCom()


class _FaultySes:
    """moto, before which SES may refuse; `how` as in `Channel.refuse`, or an error code and its words."""

    ANSWERS = {  # noqa: RUF012 - never written
        "busy": ("429 Too Many", "TooManyRequestsException"),
        "never": ("400 Bad", "MessageRejected"),
        "fault": ("500 Oops", "InternalFailure"),
    }

    def __init__(self) -> None:
        self.how = "fine"
        self._moto = DomainDispatcherApplication(create_backend_app)

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        mailing = environ["PATH_INFO"] == "/v2/email/outbound-emails"
        told, _, words = self.how.partition(": ")
        if mailing and (words or self.how in self.ANSWERS):
            status, code = self.ANSWERS.get(self.how, ("400 Bad", told))
            body = json.dumps({"message": f"{words} SecretAccessKey={SECRET}"}).encode()
            start(status, [("x-amzn-errortype", code), ("Content-Length", str(len(body)))])
            return [body]
        if mailing and self.how in {"silent", "lost"}:
            if self.how == "lost":
                list(self._moto(environ, lambda *_: None))
            environ["werkzeug.socket"].shutdown(2)
            return []
        answer: Iterable[bytes] = self._moto(environ, start)
        return answer


class SesChannel:
    address = f"mailto:{RECIPIENT}"

    def __init__(self) -> None:
        with ExitStack() as opening:
            self._faults = _FaultySes()
            server = LoopbackServer(self._faults, MovedClock(NOW))
            opening.callback(server.close)
            keys = ("AKIAIOSFODNN7EXAMPLE", SECRET)
            given: dict[str, Any] = {"aws_access_key_id": keys[0], "aws_secret_access_key": keys[1]}
            client = boto3.client("sesv2", region_name="us-east-1", endpoint_url=server.url, **given)
            client.create_email_identity(EmailIdentity=SENDER)
            client.close()
            self.session = AwsSession(endpoint_url=server.url, keys=keys, pacer=swift()).only_for(Purpose.MAIL)
            opening.callback(self.session.close)
            self._before = len(self._sent())
            self.notifier = routed("mailto", EmailNotifier(SesCarrier(self.session), SENDER, now=lambda: NOW))
            self._open = opening.pop_all()

    @staticmethod
    def _sent() -> list[Any]:
        sent: list[Any] = ses_backends["123456789012"]["us-east-1"].sent_messages
        return sent

    def got(self) -> list[Got]:
        return [
            read(message_from_string(each.raw_data, _class=EmailMessage, policy=default))
            for each in self._sent()[self._before :]
        ]

    def refuse(self, how: str) -> None:
        self._faults.how = how

    def reset(self) -> None:
        self.refuse("fine")
        del self._sent()[self._before :]

    def close(self) -> None:
        self.reset()
        self._open.close()


class DirectMailChannel:
    address = f"mailto:{RECIPIENT}"

    def __init__(self) -> None:
        clock = MovedClock(NOW)
        self.stand_in = AlibabaEmulator(WorldDoor(World([], NOW), clock))
        session = AlibabaSession(
            keys=to_product(self.stand_in.keys),
            endpoint=self.stand_in.url,
            now=clock.now,
            pacer=swift(),
            deadline=lambda: 2.0,
        )
        self.session = session.only_for(Purpose.MAIL)
        self.notifier = routed("mailto", EmailNotifier(DirectMailCarrier(self.session), SENDER, now=lambda: NOW))

    def got(self) -> list[Got]:
        return [
            Got(mail.subject, f"{mail.text}\n{mail.html}", mail.headers.get("Message-ID", ""))
            for mail in self.stand_in.mails
        ]

    def refuse(self, how: str) -> None:
        kinds = {
            "busy": (FaultKind.REFUSED, "Throttling.User"),
            "never": (FaultKind.REFUSED, "InvalidMailAddressStatus.Malformed"),
            "fault": (FaultKind.REFUSED, "InternalError"),
            "silent": (FaultKind.RESET, ""),
            "lost": (FaultKind.LOST_ANSWER, ""),
        }
        self.stand_in.faults.clear()
        if how in kinds:
            kind, code = kinds[how]
            self.stand_in.faults.add(Fault(kind, "SingleSendMail", code=code))

    def reset(self) -> None:
        self.refuse("fine")
        self.stand_in.mails.clear()
        self.stand_in.calls.clear()
        self.stand_in.allowed.clear()

    def close(self) -> None:
        self.session.close()
        self.stand_in.close()


class Swift(Pacer):
    """Never waits."""

    def reserve(self, account: str, region: str, family: str) -> float:
        del account, region, family
        return 0.0


def swift() -> Pacer:
    return Swift({}, sleep=lambda _: None)


CHANNELS: dict[str, Callable[[], Channel]] = {
    "slack": SlackChannel,
    "smtp": SmtpChannel,
    "webhook": WebhookChannel,
    "ses": SesChannel,
    "directmail": DirectMailChannel,
    "feishu": FeishuChannel,
    "dingtalk": DingTalkChannel,
    "wecom": WeComChannel,
}
