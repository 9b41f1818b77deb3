"""Which channels there are, by the settings, and what is said of those there are not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from costguard.bootstrap import notifier_of
from costguard.domain.errors import InvalidInputError, RejectedNoticeError
from costguard.ports import Message
from costguard.sandbox.mail import MailServer
from costguard.sandbox.webhook import WebhookReceiver
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
        "'costguard.notifiers.email', 'costguard.notifiers.webhook', 'costguard.providers.aws.mail'}))"
    )
    done = subprocess.run(  # noqa: S603 - a fixed command
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
