"""Which channels there are, by the settings, and what is said of those there are not."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import timedelta

import pytest
from tests.scenario.stage import Mailbox
from tests.webhook_receiver import WebhookReceiver

from cloudstand.mail import MailServer
from cloudstand.robots import RobotStandIns
from costguard.bootstrap import notifier_of
from costguard.domain.answers import AnswerKind, AnswerRef, read_keep_token
from costguard.domain.errors import InvalidInputError, RejectedNoticeError
from costguard.ports import Choice, Message, MessagePart
from costguard.settings import load_settings

SECRET = "0123456789abcdef"
SENDER = {"COSTGUARD_MAIL_FROM": "costguard@example.com"}


def refusal(channel: str, environ: dict[str, str]) -> str:
    with pytest.raises(RejectedNoticeError) as caught:
        notifier_of(load_settings(environ)).send(Message(channel, "t", "t"))
    return str(caught.value)


@pytest.mark.parametrize(
    ("channel", "variable"),
    [
        ("slack:#gpu", "set COSTGUARD_SLACK_TOKEN"),
        ("#gpu", "set COSTGUARD_SLACK_TOKEN"),
        ("mailto:ops@example.com", "set COSTGUARD_MAIL_FROM, and COSTGUARD_SMTP_URL or COSTGUARD_MAIL_VIA"),
        ("https://hooks.example.com/x", "set COSTGUARD_WEBHOOK_SECRET"),
        ("http://127.0.0.1/x", "set COSTGUARD_WEBHOOK_SECRET and COSTGUARD_WEBHOOK_PRIVATE"),
        ("feishu:ops", "set COSTGUARD_ROBOTS"),
        ("dingtalk:ops", "set COSTGUARD_ROBOTS"),
        ("wecom:ops", "set COSTGUARD_ROBOTS"),
    ],
)
def test_a_channel_that_is_not_set_up_is_refused_with_the_variable_to_set(channel: str, variable: str) -> None:
    assert variable in refusal(channel, {})


def test_a_refusal_shows_neither_path_nor_password_of_an_address() -> None:
    said = refusal("https://user:T0P@hooks.example.com/T0P?T0P=T0P#T0P", {})
    assert "https://hooks.example.com" in said
    assert "T0P" not in said


def test_plain_http_is_no_channel_unless_private_addresses_are_allowed() -> None:
    given = {"COSTGUARD_WEBHOOK_SECRET": SECRET}
    assert "COSTGUARD_WEBHOOK_PRIVATE" in refusal("http://127.0.0.1/x", given)
    assert "private address" in refusal("https://127.0.0.1/x", given)


def test_mail_and_webhooks_are_sent_as_the_settings_say() -> None:
    from costguard.bootstrap import SystemClock

    with (
        MailServer(user="guard", password="pa55word") as server,
        WebhookReceiver(SystemClock(), secret=SECRET) as hooks,
    ):
        environ = {
            **SENDER,
            "COSTGUARD_SMTP_URL": server.url,
            "COSTGUARD_SMTP_PASSWORD": "pa55word",
            "COSTGUARD_WEBHOOK_SECRET": SECRET,
            "COSTGUARD_WEBHOOK_PRIVATE": "1",
        }
        notifier = notifier_of(load_settings(environ))
        for channel in ("mailto:ops@example.com", hooks.url):
            assert notifier.send(Message(channel, "t", "t", notice_id="n-1")).proves_delivery
        assert (len(server.taken), len(hooks.received)) == (1, 1)


KEEP = Choice(AnswerKind.KEEP, "Keep 24 h", AnswerRef("c0ffee", "decided"), timedelta(hours=24))
ANSWERS = {"COSTGUARD_ANSWER_URL": "https://answers.example.com", "COSTGUARD_LINK_SECRET": "s" * 32}


def test_robots_are_set_up_by_name_and_their_links_lead_to_this_deployment() -> None:
    from costguard.bootstrap import SystemClock

    clock = SystemClock()
    with RobotStandIns(clock) as robots:
        environ = {"COSTGUARD_ROBOTS": robots.setting, "COSTGUARD_WEBHOOK_PRIVATE": "1"}
        for kind in ("feishu", "dingtalk", "wecom"):
            for given, linked in ((environ, False), ({**environ, **ANSWERS}, True)):
                notifier = notifier_of(load_settings(given))
                message = Message(f"{kind}:ops", "t", "t", parts=(MessagePart("decided", "", choices=(KEEP,)),))
                assert notifier.send(message).proves_delivery
                found = re.search(r"https://answers\.example\.com/keep\?t=([\w-]+)", robots.posted[-1].words)
                assert bool(found) is linked
                if found is not None:
                    token = read_keep_token(found[1], "s" * 32, clock.now())
                    assert (token.sent_to, token.of, token.length) == (f"{kind}:ops", KEEP.of, KEEP.length)


def test_links_in_mail_name_the_channel_as_the_policy_writes_it() -> None:
    from costguard.bootstrap import SystemClock

    with MailServer() as server:
        notifier = notifier_of(load_settings({**SENDER, **ANSWERS, "COSTGUARD_SMTP_URL": server.url}))
        notifier.send(Message("mailto:ops@example.com", "t", "t", parts=(MessagePart("decided", "", choices=(KEEP,)),)))
        body = server.taken[0].parsed.get_body(("plain",))
        assert body is not None
        found = re.search(r"/keep\?t=([\w-]+)", body.get_content())
        assert found is not None
        assert read_keep_token(found[1], "s" * 32, SystemClock().now()).sent_to == "mailto:ops@example.com"


def test_a_robot_that_cannot_be_spoken_to_stops_the_start_without_its_secrets() -> None:
    with pytest.raises(InvalidInputError, match="COSTGUARD_ROBOTS: feishu:ops: hook is not of the form") as caught:
        notifier_of(load_settings({"COSTGUARD_ROBOTS": '{"feishu:ops": {"hook": "https://evil.example/t0p-s3cret"}}'}))
    assert "s3cret" not in str(caught.value)


def test_an_address_of_no_mail_server_stops_the_start() -> None:
    with pytest.raises(InvalidInputError, match="COSTGUARD_SMTP_URL is no mail server's address"):
        notifier_of(load_settings({**SENDER, "COSTGUARD_SMTP_URL": "mail.example.com"}))


@pytest.mark.parametrize(("via", "cloud"), [("ses", "alibaba"), ("ses", "aws-us-gov"), ("directmail", "aws")])
def test_a_cloud_sends_mail_whatever_cloud_is_scanned(via: str, cloud: str) -> None:
    notifier_of(load_settings({**SENDER, "COSTGUARD_MAIL_VIA": via, "COSTGUARD_CLOUD": cloud}))


def test_without_mail_and_webhooks_nothing_of_them_is_loaded() -> None:
    script = (
        "import sys; from costguard.bootstrap import notifier_of; from costguard.settings import load_settings;"
        "notifier_of(load_settings({'COSTGUARD_SLACK_TOKEN': 'xoxb-1'}));"
        "print(sorted(set(sys.modules) & {'smtplib', 'ssl', 'boto3', 'aliyunsdkcore', 'email.message',"
        "'costguard.adapters.notifiers.email', 'costguard.adapters.notifiers.webhook',"
        "'costguard.adapters.notifiers.robots.notifier',"
        "'costguard.providers.aws.core.services'}))"
    )
    done = subprocess.run(  # noqa: S603 - a fixed command
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("language", "says"),
    [("en", "Sent by the Costguard deployment platform-eu"), ("zh", "由 Costguard 部署 platform-eu 发送")],
)
def test_every_message_names_the_deployment_it_is_from(language: str, says: str) -> None:
    """Two deployments at work in one account must be told apart by whoever reads their notices."""
    from costguard.bootstrap import SystemClock

    with MailServer() as server, RobotStandIns(SystemClock()) as robots:
        environ = {
            **SENDER,
            "COSTGUARD_NAME": "platform-eu",
            "COSTGUARD_LANG": language,
            "COSTGUARD_SMTP_URL": server.url,
            "COSTGUARD_ROBOTS": robots.setting,
            "COSTGUARD_WEBHOOK_PRIVATE": "1",
        }
        notifier = notifier_of(load_settings(environ))
        for kind in ("feishu", "dingtalk", "wecom"):
            notifier.send(Message(f"{kind}:ops", "Title", "Text", fields=(("Machine", "trainer"),)))
            assert says in robots.posted[-1].words.replace("\\", "")
        for fields in ((), (("Machine", "trainer"),)):
            notifier.send(Message("mailto:ops@example.com", "Title", "Text", fields=fields))
            (words, *_) = [part for part in server.taken[-1].parsed.walk() if part.get_content_type() == "text/plain"]
            assert says in words.get_content()


def test_a_message_without_a_foot_stays_as_it_is() -> None:
    """Whoever names no deployment says nothing of one."""
    from costguard.adapters.notifiers.router import NotifierRouter

    kept = Mailbox()
    message = Message("slack:#gpu", "Title", "Text", fields=(("Machine", "trainer"),), lines=("More",))
    NotifierRouter({"slack": kept}).send(message)
    NotifierRouter({"slack": kept}, foot="From here").send(message)
    assert [each.lines for each in kept.messages] == [("More",), ("More", "From here")]
    assert [each.text for each in kept.messages] == ["Text", "Text\nFrom here"]
