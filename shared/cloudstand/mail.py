"""A mail server on loopback: it speaks SMTP as real ones do, refuses what they refuse, and keeps what it took.

STARTTLS and TLS from the first byte where it is given certificates; signing in where it is given a user. Faults are set
by the test or the demo.
"""

from __future__ import annotations

import base64
import ssl
import threading
from dataclasses import dataclass, field
from datetime import timedelta
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from socket import socket
from socketserver import StreamRequestHandler, ThreadingTCPServer
from types import TracebackType
from typing import Any

from typing_extensions import Self

_LONGEST_LINE = 1002  # of a mail, line end included: RFC 5321, 4.5.3.1.6


@dataclass(frozen=True, slots=True)
class Mail:
    """One mail as it was taken: the envelope, the bytes, and whether they came encrypted and signed in."""

    sender: str
    recipient: str
    raw: bytes
    encrypted: bool
    user: str

    @property
    def parsed(self) -> EmailMessage:
        """Its headers and bodies."""
        return BytesParser(_class=EmailMessage, policy=default).parsebytes(self.raw)


@dataclass(slots=True)
class MailFaults:
    """What goes wrong from now on; empty: nothing.

    `replies` are unusual answers by moment: `connect`, `EHLO`, `AUTH`, `MAIL`, `RCPT`, `DATA`, `sent`.
    `lost` ends connections at such a moment without an answer; at `sent` the mail is kept. `endless` answers EHLO for
    ever. `slow` waits before each answer, at most until the server closes.
    """

    replies: dict[str, str] = field(default_factory=dict)
    lost: str = ""
    endless: bool = False
    without_starttls: bool = False
    slow: timedelta = timedelta(0)


class MailServer:
    """Used as a context manager; `taken` holds every mail in order, `connections` counts who called.

    `tls` encrypts: from the first byte with `implicit_tls`, else when asked to. With `user` it takes mail from nobody
    else.
    """

    def __init__(
        self, *, tls: ssl.SSLContext | None = None, implicit_tls: bool = False, user: str = "", password: str = ""
    ) -> None:
        self.faults = MailFaults()
        self.taken: list[Mail] = []
        self.connections = 0
        self.tls = tls
        self.implicit_tls = implicit_tls
        self.user, self.password = user, password
        self.closing = threading.Event()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens, on 127.0.0.1."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """What to write into COSTGUARD_SMTP_URL."""
        user = f"{self.user}@" if self.user else ""
        return f"{'smtps' if self.implicit_tls else 'smtp'}://{user}127.0.0.1:{self.port}"

    def close(self) -> None:
        """Stop answering and release the port; may be repeated."""
        if not self.closing.is_set():
            self.closing.set()
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Lost(Exception):  # noqa: N818 - asked for by the faults
    """The connection ends here."""


class _Server(ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, mail_server: MailServer) -> None:
        self.mail_server = mail_server
        super().__init__(("127.0.0.1", 0), _Talk)

    def get_request(self) -> tuple[socket, Any]:
        plain, address = super().get_request()
        mine = self.mail_server
        mine.connections += 1
        if mine.implicit_tls and mine.tls is not None:
            return mine.tls.wrap_socket(plain, server_side=True, do_handshake_on_connect=False), address
        return plain, address

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay quiet: a client that gave up is one of the faults on offer."""


class _Talk(StreamRequestHandler):
    server: _Server

    def setup(self) -> None:
        super().setup()
        self._mine = self.server.mail_server
        self._encrypted = self._mine.implicit_tls
        self._user = ""
        self._sender, self._recipient = "", ""

    def finish(self) -> None:
        super().finish()
        self.connection.close()  # the encrypted one, which the server does not know

    def handle(self) -> None:
        try:
            if not self._say("connect", "220 sandbox.example ESMTP"):
                return
            while line := self.rfile.readline(_LONGEST_LINE):
                verb, _, rest = line.decode("utf-8", "replace").strip().partition(" ")
                if verb.upper() == "QUIT":
                    return
                self._answer(verb.upper(), rest)
        except _Lost:
            return

    def _answer(self, verb: str, rest: str) -> None:
        if verb == "EHLO":
            self._greet()
        elif verb == "STARTTLS" and self._offers_tls and self._mine.tls is not None:
            self._write("220 go ahead")
            self.connection = self._mine.tls.wrap_socket(self.connection, server_side=True)
            self.rfile = self.connection.makefile("rb")
            self._encrypted = True
        elif verb == "AUTH":
            self._sign_in(rest)
        elif verb in {"MAIL", "RCPT", "DATA"} and self._mine.user and not self._user:
            self._write("530 5.7.0 Authentication required")
        elif verb == "MAIL":
            if self._say("MAIL", "250 2.1.0 Ok"):
                self._sender = _path(rest)
        elif verb == "RCPT":
            if self._say("RCPT", "250 2.1.5 Ok"):
                self._recipient = _path(rest)
        elif verb == "DATA":
            self._take()
        else:
            self._write("250 2.0.0 Ok" if verb in {"RSET", "NOOP"} else "502 5.5.2 not implemented")

    @property
    def _offers_tls(self) -> bool:
        return self._mine.tls is not None and not self._encrypted and not self._mine.faults.without_starttls

    def _greet(self) -> None:
        while self._mine.faults.endless and not self._mine.closing.is_set():
            self._write("250-AND-SO-ON")
        offered = ["sandbox.example", *(["STARTTLS"] if self._offers_tls else [])]
        offered += ["AUTH PLAIN"] if self._mine.user else []
        lines = [*(f"250-{each}" for each in offered), "250 ENHANCEDSTATUSCODES"]
        self._say("EHLO", "\r\n".join(lines))

    def _sign_in(self, rest: str) -> None:
        given = base64.b64encode(f"\0{self._mine.user}\0{self._mine.password}".encode()).decode()
        if not self._say("AUTH", "") or rest != f"PLAIN {given}":
            if "AUTH" not in self._mine.faults.replies:
                self._write("535 5.7.8 Authentication credentials invalid")
            return
        self._user = self._mine.user
        self._write("235 2.7.0 Authentication successful")

    def _take(self) -> None:
        if not self._say("DATA", "354 End data with <CR><LF>.<CR><LF>"):
            return
        lines: list[bytes] = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            if len(line) > _LONGEST_LINE or not line.endswith(b"\r\n"):
                self._write("500 5.5.2 line too long, or not ended by CRLF")
                raise _Lost
            lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
        mail = Mail(self._sender, self._recipient, b"".join(lines), self._encrypted, self._user)
        if "sent" not in self._mine.faults.replies:
            self._mine.taken.append(mail)
        self._say("sent", f"250 2.0.0 Ok: queued as {len(self._mine.taken)}")

    def _say(self, moment: str, usual: str) -> bool:
        """Whether the usual answer was given, and not a fault's."""
        faults = self._mine.faults
        if faults.slow:
            self._mine.closing.wait(faults.slow.total_seconds())
        if faults.lost == moment:
            raise _Lost
        other = faults.replies.get(moment)
        if other or usual:
            self._write(other or usual)
        return not other

    def _write(self, line: str) -> None:
        self.connection.sendall(line.encode() + b"\r\n")


def _path(rest: str) -> str:
    return rest.partition("<")[2].partition(">")[0]
