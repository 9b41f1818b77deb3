"""SMTP as servers speak it: encryption, signing in, every kind of answer, and connections that end too soon."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.contract.loopback_tls import serving_tls, trusting, write_certificate
from tests.contract.notifier_worlds import NOW, RECIPIENT, SECRET, SENDER

from cloudstand.mail import MailServer
from costguard.adapters.notifiers.email import EmailNotifier
from costguard.adapters.notifiers.smtp import SmtpCarrier
from costguard.domain.errors import InvalidInputError, NoticeError, RateLimitedError, RejectedNoticeError
from costguard.ports import Delivery, Message

SOON = timedelta(milliseconds=200)
ENOUGH = timedelta(seconds=10)
NOTICE = Message(RECIPIENT, "i-0a stops", "i-0a stops\n.\n.. at 18:00", notice_id="n-1")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_certificate(tmp_path_factory.mktemp("tls") / "own.pem", "localhost")


@pytest.fixture
def server() -> Iterator[MailServer]:
    with MailServer(user="guard", password=SECRET) as opened:
        yield opened


def send(carrier: SmtpCarrier, message: Message = NOTICE) -> Delivery:
    return EmailNotifier(carrier, SENDER, now=lambda: NOW).send(message)


def by(server: MailServer, **more: object) -> SmtpCarrier:
    given: dict[str, object] = {"user": server.user, "password": server.password, "timeout": ENOUGH, **more}
    return SmtpCarrier("localhost", server.port, **given)  # type: ignore[arg-type]


def test_the_receipt_is_the_message_id_and_the_servers_own_words(server: MailServer) -> None:
    delivery = send(by(server))
    (mail,) = server.taken
    assert delivery.receipt == f"{mail.parsed['Message-ID']} 250 2.0.0 Ok: queued as 1"
    assert (mail.sender, mail.recipient, mail.user) == (SENDER, RECIPIENT, "guard")


def test_single_stops_arrive_as_they_were_written(server: MailServer) -> None:
    send(by(server))
    body = server.taken[0].parsed.get_body(("plain",))
    assert body is not None
    assert body.get_content().replace("\r\n", "\n").rstrip() == "i-0a stops\n.\n.. at 18:00"


@pytest.mark.parametrize("implicit", [True, False], ids=["smtps", "starttls"])
def test_mail_travels_encrypted_and_the_servers_name_is_checked(certificate: Path, implicit: bool) -> None:  # noqa: FBT001
    with MailServer(tls=serving_tls(certificate), implicit_tls=implicit, user="guard", password=SECRET) as server:
        ours = trusting(certificate)
        send(by(server, implicit_tls=implicit, tls=ours))
        assert server.taken[0].encrypted
        named_otherwise = SmtpCarrier("127.0.0.1", server.port, implicit_tls=implicit, tls=ours, timeout=ENOUGH)
        with pytest.raises(NoticeError, match="certificate that is not trusted"):
            send(named_otherwise)
        with pytest.raises(NoticeError, match="certificate that is not trusted"):
            send(by(server, implicit_tls=implicit))  # this system's certificates
    assert len(server.taken) == 1


def test_nothing_is_sent_in_the_clear_but_to_this_machine(server: MailServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is not this machine's, though it leads here: the server offers no STARTTLS."""
    import socket

    def here(host: str, port: int, *_: object, **__: object) -> list[object]:
        del host
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", here)
    far = SmtpCarrier("mail.example.com", server.port, user="guard", password=SECRET, timeout=ENOUGH)
    with pytest.raises(NoticeError, match="offers no encryption") as caught:
        send(far)
    assert type(caught.value) is NoticeError  # a middleman may have taken the offer away
    assert server.connections == 1
    assert server.taken == []


@pytest.mark.parametrize("moment", ["connect", "AUTH", "MAIL", "RCPT", "DATA", "sent"])
@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ("421 4.7.0 Too many connections, slow down", RateLimitedError),
        ("450 4.7.1 Hourly quota exceeded", RateLimitedError),
        ("454 Throttling failure: Maximum sending rate exceeded", RateLimitedError),
        ("451 4.3.0 Temporary local problem, the operator works on it", NoticeError),
        ("550 5.7.1 Relaying denied", RejectedNoticeError),
        ("554 5.7.1 rate of junk too high", RejectedNoticeError),
    ],
)
def test_every_refusal_means_what_its_code_says(
    server: MailServer, moment: str, reply: str, error: type[NoticeError]
) -> None:
    server.faults.replies = {moment: reply}
    with pytest.raises(NoticeError) as caught:
        send(by(server))
    assert type(caught.value) is error
    assert reply[:3] in str(caught.value)
    assert server.taken == []


@pytest.mark.parametrize("reply", ["299 Maybe", "354 Go on", "100 Hm"])
def test_only_250_is_a_proof(server: MailServer, reply: str) -> None:
    server.faults.replies = {"sent": reply}
    with pytest.raises(NoticeError):
        send(by(server))


@pytest.mark.parametrize("moment", ["connect", "EHLO", "MAIL", "RCPT", "DATA", "sent"])
def test_a_connection_lost_at_any_moment_proves_nothing(server: MailServer, moment: str) -> None:
    server.faults.lost = moment
    with pytest.raises(NoticeError, match="it may not have the mail") as caught:
        send(by(server))
    assert type(caught.value) is NoticeError


def test_a_mail_sent_again_after_a_lost_answer_is_the_same_mail(server: MailServer) -> None:
    server.faults.lost = "sent"
    with pytest.raises(NoticeError):
        send(by(server))
    server.faults.lost = ""
    send(by(server))
    first, again = server.taken
    assert first.raw == again.raw


def test_answers_without_end_and_a_silent_server_are_given_up(server: MailServer) -> None:
    server.faults.endless = True
    with pytest.raises(NoticeError):
        send(by(server))
    server.faults.endless, server.faults.slow = False, timedelta(minutes=5)
    with pytest.raises(NoticeError, match="lost, or not reached"):
        send(by(server, timeout=SOON))
    server.close()
    with pytest.raises(NoticeError, match="ConnectionRefusedError"):
        send(by(server))


def test_wrong_credentials_are_rejected_with_the_setting_to_check(server: MailServer) -> None:
    with pytest.raises(RejectedNoticeError, match="COSTGUARD_SMTP_PASSWORD"):
        send(by(server, password="another"))
    with pytest.raises(RejectedNoticeError, match="530"):
        send(SmtpCarrier("localhost", server.port, timeout=ENOUGH))


def test_a_password_repeated_by_the_server_is_blanked(server: MailServer) -> None:
    signed_in = base64.b64encode(f"\0guard\0{SECRET}".encode()).decode()
    server.faults.replies = {"AUTH": f"535 not {SECRET}, nor {signed_in}"}
    with pytest.raises(RejectedNoticeError) as caught:
        send(by(server))
    assert SECRET not in str(caught.value)
    assert signed_in not in str(caught.value)
    assert str(caught.value).count("***") == 2


@pytest.mark.parametrize(
    ("url", "password", "problem"),
    [
        ("smtp://guard:hunter22@mail.example.com", "", "holds a password; put it into COSTGUARD_SMTP_PASSWORD"),
        ("https://mail.example.com", "", "no mail server's address"),
        ("smtp://", "", "no mail server's address"),
        ("smtp://mail.example.com:0", "", "no mail server's address"),
        ("smtp://mail.example.com/path", "", "no mail server's address"),
        ("smtp://mail.example.com:70000", "", "is no address"),
        ("smtp://guard@mail.example.com", "", "both a user and a password"),
        ("smtp://mail.example.com", "hunter22", "both a user and a password"),
        ("smtp://guard@mail.example.com", "hünter22", "ASCII"),
        ("smtp://guard@mail.example.com", "hunter22\n", "ASCII"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_its_secret(url: str, password: str, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem) as caught:
        SmtpCarrier.at(url, password)
    assert "nter22" not in str(caught.value)


def test_an_address_names_server_user_and_port(server: MailServer) -> None:
    server.user = "guard@example.com"
    url = server.url.replace("guard@example.com@", "guard%40example.com@")
    send(SmtpCarrier.at(url, SECRET))
    assert server.taken[0].user == "guard@example.com"
