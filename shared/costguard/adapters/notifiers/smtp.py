"""Mail by SMTP, with the standard library. One connection a mail, always encrypted but on this machine itself.

250 after the mail's last line is the proof of delivery: from there on the server answers for it (RFC 5321, 4.2.5).
"""

from __future__ import annotations

import base64
import functools
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from costguard.adapters.notifiers.router import visible
from costguard.domain.errors import InvalidInputError, NoticeError, RateLimitedError, RejectedNoticeError

if TYPE_CHECKING:
    from email.message import EmailMessage
    from smtplib import SMTP

_PORTS = {"smtps": 465, "smtp": 587}
_OK, _FAILED, _FAILED_FOR_GOOD = 250, 400, 500
_ACCEPTED = range(250, 252)  # of a recipient: 251 forwards
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_WAIT = timedelta(minutes=1)  # SMTP has no Retry-After
_TOO_MUCH = re.compile(r"\brates?\b|\blimit|too (?:many|much|fast)|throttl|\bquota|frequen|频率|超限", re.IGNORECASE)
_MOST_LINES = 200  # of all answers in one connection; real ones have some forty
_LONGEST_WORDS = 200
_SIGN_IN = "check the user in COSTGUARD_SMTP_URL and COSTGUARD_SMTP_PASSWORD"


class SmtpCarrier:
    """A `MailCarrier` over one server. `implicit_tls` encrypts from the first byte (465), else STARTTLS is required.

    In the clear it speaks to loopback only. `tls` replaces this system's certificates.

    Raises:
        InvalidInputError: a user without password or the other way round, or either not plain ASCII.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        user: str = "",
        password: str = "",
        implicit_tls: bool = False,
        timeout: timedelta = timedelta(seconds=20),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        if bool(user) is not bool(password):
            text = f"SMTP needs both a user and a password, or neither; {_SIGN_IN}"
            raise InvalidInputError(text)
        if not (user.isascii() and password.isascii() and (user + password).isprintable()):
            text = f"SMTP takes users and passwords of ASCII letters and signs only; {_SIGN_IN}"
            raise InvalidInputError(text)
        self._host = host
        self._port = port
        self._user = user
        self._password = password
        self._implicit_tls = implicit_tls
        self._timeout = timeout.total_seconds()
        self._tls = tls

    @classmethod
    def at(cls, url: str, password: str) -> SmtpCarrier:
        """The server at `smtps://USER@HOST:465` or, with STARTTLS, `smtp://USER@HOST:587`.

        Raises:
            InvalidInputError: no such address; it is not repeated, as it may hold a password.
        """
        expected = "expected smtps://USER@HOST:465, or smtp://USER@HOST:587"
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as err:
            text = f"COSTGUARD_SMTP_URL is no address; {expected}"
            raise InvalidInputError(text) from err
        if parts.password is not None:
            raise InvalidInputError("COSTGUARD_SMTP_URL holds a password; put it into COSTGUARD_SMTP_PASSWORD")
        more = parts.path not in {"", "/"} or parts.query or parts.fragment
        if parts.scheme not in _PORTS or not parts.hostname or port == 0 or more:
            text = f"COSTGUARD_SMTP_URL is no mail server's address; {expected}"
            raise InvalidInputError(text)
        return cls(
            parts.hostname,
            port or _PORTS[parts.scheme],
            user=unquote(parts.username or ""),
            password=password,
            implicit_tls=parts.scheme == "smtps",
        )

    def carry(self, mail: EmailMessage) -> tuple[str, str]:
        """Hand `mail` to the server; its Message-ID, and the words after 250.

        An answer lost after the mail was sent leaves open whether it was taken: sent again, it has the same
        Message-ID.

        Raises:
            NoticeError: of one of its kinds, by the server's code: 4xx passes, 5xx does not.
        """
        sender, recipient = (_address(mail[name]) for name in ("From", "To"))
        with self._connected(sender.rpartition("@")[2]) as server:
            self._expect("the sender", server.mail(sender))
            self._expect("the recipient", server.rcpt(recipient), good=_ACCEPTED)
            code, words = server.data(mail.as_bytes())
            self._expect("the mail", (code, words))
            return str(mail["Message-ID"] or ""), f"{code} {self._clean(words)}"

    @contextmanager
    def _connected(self, own_name: str) -> Iterator[SMTP]:
        """A server that was greeted, over TLS, signed in to; whatever goes wrong in here becomes ours."""
        import smtplib

        server: SMTP | None = None
        try:
            server = self._greeted(own_name)
            server.ehlo_or_helo_if_needed()
            if not self._implicit_tls:
                self._start_tls(server)
            if self._user:
                server.login(self._user, self._password)
            yield server
        except smtplib.SMTPAuthenticationError as err:
            raise self._refusal("the sign-in", err.smtp_code, err.smtp_error, _SIGN_IN) from err
        except smtplib.SMTPResponseException as err:
            raise self._refusal("the mail", err.smtp_code, err.smtp_error) from err
        except smtplib.SMTPNotSupportedError as err:
            text = f"the SMTP server {self._host} does not offer to sign in; {_SIGN_IN}"
            raise NoticeError(text) from err
        except ssl.SSLCertVerificationError as err:
            text = f"the SMTP server {self._host} shows a certificate that is not trusted: {err.verify_message}"
            raise NoticeError(text) from err
        except (smtplib.SMTPException, OSError, ValueError, LookupError) as err:
            # the last two: answers that smtplib cannot take apart
            text = (
                f"the SMTP server {self._host} was lost, or not reached: {type(err).__name__}; it may not have the mail"
            )
            raise NoticeError(text) from err
        finally:
            if server is not None:
                _leave(server)

    def _greeted(self, own_name: str) -> SMTP:
        opening: dict[str, Any] = {"timeout": self._timeout, "local_hostname": own_name}  # else a slow look-up
        if self._implicit_tls:
            opening["context"] = self._context()
        return _bounded(tls=self._implicit_tls)(self._host, self._port, **opening)

    def _context(self) -> ssl.SSLContext:
        return self._tls or ssl.create_default_context()

    def _start_tls(self, server: SMTP) -> None:
        if server.has_extn("starttls"):
            self._expect("STARTTLS", server.starttls(context=self._context()), good=range(220, 221))
            server.ehlo_or_helo_if_needed()
        elif self._host not in _LOOPBACK:
            text = (
                f"the SMTP server {self._host} offers no encryption (STARTTLS), and nothing is sent in the clear; "
                "use smtps:// in COSTGUARD_SMTP_URL, or another port"
            )
            raise NoticeError(text)

    def _expect(self, what: str, answer: tuple[int, bytes], good: range = range(_OK, _OK + 1)) -> None:
        if answer[0] not in good:
            raise self._refusal(what, *answer)

    def _refusal(self, what: str, code: int, words: bytes | str, fix: str = "") -> NoticeError:
        said = self._clean(words)
        text = f"the SMTP server {self._host} refuses {what}: {code} {said}" + (f"; {fix}" if fix else "")
        if _FAILED <= code < _FAILED_FOR_GOOD and _TOO_MUCH.search(said):
            return RateLimitedError(text, retry_after=_WAIT)
        return RejectedNoticeError(text) if code >= _FAILED_FOR_GOOD else NoticeError(text)

    def _clean(self, words: bytes | str) -> str:
        """A server's words on one line, without the secret it may repeat."""
        said = visible(words.decode("utf-8", "replace") if isinstance(words, bytes) else words)
        if self._password:
            signed_in = f"\0{self._user}\0{self._password}"
            for secret in (
                self._password,
                *(base64.b64encode(each.encode()).decode() for each in (self._password, signed_in)),
            ):
                said = said.replace(secret, "***")
        return said[:_LONGEST_WORDS]


def _address(header: Any) -> str:
    (found,) = header.addresses
    return str(found.addr_spec)


def _leave(server: SMTP) -> None:
    """Say goodbye, and wait for no answer: a delivery stays one, whatever comes of it."""
    import smtplib

    with suppress(smtplib.SMTPException, OSError):
        server.putcmd("quit")
    server.close()


@functools.lru_cache(maxsize=2)
def _bounded(*, tls: bool = False) -> type[SMTP]:
    """The library's client, which would read answers without end."""
    import smtplib

    class Bounded(smtplib.SMTP_SSL if tls else smtplib.SMTP):  # type: ignore[misc]
        """Tests notice if the library ever stops calling this method."""

        lines_read = 0
        file: Any

        def getreply(self) -> tuple[int, bytes]:
            """One answer of the server."""
            if self.file is None:
                self.file = _Counting(self, self.sock.makefile("rb"))
            code, words = super().getreply()
            return code, words

    class _Counting:
        def __init__(self, client: Any, file: Any) -> None:
            self._client = client
            self._file = file

        def readline(self, limit: int) -> bytes:
            self._client.lines_read += 1
            if self._client.lines_read > _MOST_LINES:
                raise OSError("answers without end")
            line: bytes = self._file.readline(limit)
            return line

        def close(self) -> None:
            self._file.close()

    return Bounded
