"""The SDK, used for signing and sending and for nothing else; its traps end here.

* Plain HTTP is its default: the domain carries `https://`, and what leaves is looked at once more.
* `ALIYUN_ACCESS_KEY_ID` in the environment replaces credentials in silence: the signer is set by hand, and a request
  signed with another key does not leave.
* It retries some changes by itself, CreateSnapshot without a ClientToken: retries are off.
* It takes endpoints of unknown regions for Hangzhou's: endpoints are never left to it.
* It reads a body cut short without complaint, and only times single reads: bodies are read here, to the promised
  length and within a total time.
* Its errors carry signed addresses and tokens, its loggers print them: answers are read from the wire, not from its
  errors, and its loggers are silent.
* A kept connection that died while a function slept fails the next call: changes have a connection of their own.
* Its bundled HTTP library dates from 2018. On Python 3.12 and later it believes that TLS cannot name the server it
  asks for (SNI), and it brings frozen certificates: connections are made here, by this system's own TLS.
"""

from __future__ import annotations

import functools
import logging
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http.client import HTTPException
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from costguard.domain.errors import InvalidInputError
from costguard.providers.alibaba.core.products import SERVICES
from costguard.providers.kit.core.credentials import Keys, without_secrets
from costguard.providers.kit.core.gate import Gate
from costguard.providers.kit.core.pacing import THIS_MACHINE, date_told

_CONNECT_SECONDS = 5.0
_SILENCE_SECONDS = 10.0  # between two parts of an answer
_LONGEST_BODY = 32 * 1024 * 1024
_CHUNK = 64 * 1024
_KEPT_CONNECTIONS = 16
_MOST_CLIENTS = 64  # a kept client costs about 0.4 MB


class WireError(Exception):
    """No whole answer came back. `sent`: the request may have arrived."""

    def __init__(self, code: str, detail: str, *, sent: bool) -> None:
        super().__init__(f"{code}: {without_secrets(detail)}")
        self.code = code
        self.sent = sent


@dataclass(frozen=True, slots=True)
class Question:
    """One request: `domain` with its scheme, and parameters as they are to be signed; `form` is those in its body."""

    operation: str
    version: str
    domain: str
    parameters: Mapping[str, str]
    form: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, whole. `date` is the server's clock, to the second, where it told."""

    status: int
    body: bytes
    date: datetime | None


@dataclass(slots=True)
class _Exchange:
    """What one thread is sending, for the adapter, which stands where requests leave."""

    question: Question
    keys: Keys
    ends_at: float
    silence: float
    answer: Answer | None = None
    sent: bool = False


def check_endpoint(url: str) -> str:
    """A stand-in's address without the last slash; plain HTTP only where nothing leaves this machine.

    Raises:
        InvalidInputError: neither https nor http on loopback, or more than scheme, host and port.
    """
    try:
        parts = urlsplit(url)
        plain = parts.scheme == "http" and parts.hostname in THIS_MACHINE
        whole = bool(parts.hostname) and parts.path in {"", "/"} and not (parts.query or parts.fragment or "@" in url)
        good = whole and (plain or parts.scheme == "https") and parts.port != 0
    except ValueError:
        good = False
    if not good:
        message = (
            f"{without_secrets(url)!r} is no endpoint for Alibaba Cloud; expected https://host[:port], "
            "or http://127.0.0.1:port for a stand-in on this machine"
        )
        raise InvalidInputError(message)
    return url.rstrip("/")


class Transport:
    """Signs and sends; serves many threads, with one client for each access key."""

    def __init__(self, gate: Gate, *, agent: str = "costguard") -> None:
        self._gate = gate
        self._agent = agent
        self._clients: OrderedDict[Keys, Any] = OrderedDict()
        self._lock = threading.Lock()
        self._thread = threading.local()

    def send(self, keys: Keys, question: Question, *, seconds: float, silence: float = _SILENCE_SECONDS) -> Answer:
        """One request and whatever answer it got, good or bad; over after `seconds` in all, and `silence` more.

        Raises:
            AccessDeniedError: the gate holds it back.
            WireError: no whole answer.
        """
        return self._exchange(keys, question, seconds, silence, self._client(keys))

    def send_apart(self, keys: Keys, question: Question, *, seconds: float) -> Answer:
        """As `send`, on a connection of its own, which no pause of the process can have killed before."""
        client = self._new_client(keys)
        try:
            return self._exchange(keys, question, seconds, seconds, client)
        finally:
            client.session.close()

    def close(self) -> None:
        """Close every connection; clients are built anew if asked for again."""
        with self._lock:
            kept = list(self._clients.values())
            self._clients.clear()
        for client in kept:
            client.session.close()

    def _exchange(self, keys: Keys, question: Question, seconds: float, silence: float, client: Any) -> Answer:
        from aliyunsdkcore.acs_exception.exceptions import ClientException, ServerException
        from aliyunsdkcore.request import CommonRequest

        request = CommonRequest(version=question.version, action_name=question.operation.partition(":")[2])
        request.set_domain(question.domain)
        request.set_method("POST")
        for name, value in question.parameters.items():
            request.add_query_param(name, value)
        for name, value in question.form.items():
            request.add_body_params(name, value)
        left = max(0.1, seconds)
        request.set_connect_timeout(min(_CONNECT_SECONDS, left))
        request.set_read_timeout(min(silence, left))
        exchange = _Exchange(question, keys, time.monotonic() + left, silence)
        self._thread.exchange = exchange
        try:
            client.do_action_with_exception(request)
        except (ClientException, ServerException, ValueError, TypeError, LookupError, AttributeError) as err:
            # an answer that came is judged by whoever asked: the SDK trips over some, and rewrites others
            if exchange.answer is None:
                detail = f"{type(err).__name__}: {err}"
                raise WireError("SdkFailed", detail, sent=exchange.sent) from None  # its own text is not redacted
        finally:
            self._thread.exchange = None
        if exchange.answer is None:
            raise WireError("SdkFailed", "the SDK sent nothing", sent=exchange.sent)
        return exchange.answer

    def _client(self, keys: Keys) -> Any:
        with self._lock:
            client = self._clients.get(keys)
            if client is None:
                client = self._clients[keys] = self._new_client(keys)
                if len(self._clients) > _MOST_CLIENTS:
                    self._clients.popitem(last=False)  # not closed: another thread may be reading with it
            else:
                self._clients.move_to_end(keys)
            return client

    def _new_client(self, keys: Keys) -> Any:
        from aliyunsdkcore.auth.credentials import AccessKeyCredential, StsTokenCredential
        from aliyunsdkcore.auth.signers.access_key_signer import AccessKeySigner
        from aliyunsdkcore.auth.signers.sts_token_signer import StsTokenSigner
        from aliyunsdkcore.client import AcsClient

        silence_the_sdk()
        client = AcsClient(keys.key_id, keys.secret, auto_retry=False)
        client.append_user_agent("client", self._agent)
        # given a token as `credential`, the client would look into the environment first
        if keys.token:
            client._signer = StsTokenSigner(StsTokenCredential(keys.key_id, keys.secret, keys.token))  # noqa: SLF001
        else:
            client._signer = AccessKeySigner(AccessKeyCredential(keys.key_id, keys.secret))  # noqa: SLF001
        client.session.trust_env = False  # ~/.netrc would add a header of its own
        adapter = _adapter()(self)
        client.session.mount("https://", adapter)
        client.session.mount("http://", adapter)
        return client

    def leaving(self, url: str) -> _Exchange:
        """The exchange of this thread, once what leaves has been found to be it; counted from here.

        Raises:
            AccessDeniedError: the gate holds it back.
            WireError: not sent by `send`, not over TLS, or signed with other keys.
        """
        exchange: _Exchange | None = getattr(self._thread, "exchange", None)
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        form = dict(pairs)
        operation = f"{SERVICES.get(form.get('Version', ''), '')}:{form.get('Action', '')}"
        dry_run = [value for name, value in pairs if name == "DryRun"] == ["true"]
        self._gate.check(operation, dry_run=dry_run)
        if exchange is None or operation != exchange.question.operation:
            raise WireError("NotAsked", f"{operation} was not asked for", sent=False)
        if not (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in THIS_MACHINE)):
            raise WireError("NotEncrypted", f"{operation} would leave over plain HTTP", sent=False)
        signed_with = form.get("AccessKeyId"), form.get("SecurityToken", "")
        if signed_with != (exchange.keys.key_id, exchange.keys.token):
            raise WireError("WrongKey", f"{operation} was signed with other credentials than ours", sent=False)
        self._gate.sending(operation, dry_run=dry_run)
        return exchange


def silence_the_sdk() -> None:
    """Its loggers print signed addresses and tokens; one of them has a handler and a level of its own."""
    logging.getLogger("aliyunsdkcore").setLevel(logging.CRITICAL + 1)
    own = logging.getLogger("aliyunsdkcore.http.http_response")
    own.handlers.clear()
    own.setLevel(logging.NOTSET)


@functools.lru_cache(maxsize=4)
def _tls(cafile: str | None, capath: str | None) -> ssl.SSLContext:
    """This system's protocol versions, with the certificates named: building one takes some 20 ms."""
    return ssl.create_default_context(cafile=cafile, capath=capath)


@functools.lru_cache(maxsize=1)
def _system_certificates() -> str | None:
    paths = ssl.get_default_verify_paths()
    return paths.cafile or paths.capath


@functools.lru_cache(maxsize=1)
def _pools() -> dict[str, Any]:
    """Connections by scheme; made on first use, as their bases are the SDK's."""
    from aliyunsdkcore.vendored.requests.packages.urllib3.connection import VerifiedHTTPSConnection
    from aliyunsdkcore.vendored.requests.packages.urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

    class Connection(VerifiedHTTPSConnection):  # type: ignore[misc]
        def connect(self) -> None:
            plain = self._new_conn()
            host = self.host
            if self._tunnel_host:  # through a proxy
                self.sock, self.auto_open, host = plain, 0, self._tunnel_host
                self._tunnel()
            try:
                self.sock = _tls(self.ca_certs, self.ca_cert_dir).wrap_socket(plain, server_hostname=host)
            except OSError:
                plain.close()
                raise
            self.is_verified = True

    class Pool(HTTPSConnectionPool):  # type: ignore[misc]
        ConnectionCls = Connection

    return {"http": HTTPConnectionPool, "https": Pool}


@functools.lru_cache(maxsize=1)
def _adapter() -> Any:
    """The class that stands where requests leave; made on first use, as its base is the SDK's."""
    from aliyunsdkcore.vendored.requests.adapters import HTTPAdapter
    from aliyunsdkcore.vendored.requests.exceptions import ConnectTimeout, ProxyError, RequestException
    from aliyunsdkcore.vendored.requests.packages.urllib3.exceptions import HTTPError, NewConnectionError
    from aliyunsdkcore.vendored.requests.utils import should_bypass_proxies

    class Adapter(HTTPAdapter):  # type: ignore[misc]
        def __init__(self, transport: Transport) -> None:
            self._transport = transport
            super().__init__(pool_connections=_KEPT_CONNECTIONS, pool_maxsize=_KEPT_CONNECTIONS)

        def init_poolmanager(self, *sizes: Any, **more: Any) -> None:
            super().init_poolmanager(*sizes, **more)
            self.poolmanager.pool_classes_by_scheme = _pools()

        def proxy_manager_for(self, proxy: str, **more: Any) -> Any:
            manager = super().proxy_manager_for(proxy, **more)
            manager.pool_classes_by_scheme = _pools()
            return manager

        def send(self, request: Any, **how: Any) -> Any:
            exchange = self._transport.leaving(request.url)
            host = urlsplit(request.url).hostname
            if host in THIS_MACHINE or should_bypass_proxies(request.url, None):  # NO_PROXY, which the SDK forgets
                how["proxies"] = {}
            if how.get("verify") is True:  # no bundle named by ALIBABA_CLOUD_CA_BUNDLE
                how["verify"] = _system_certificates() or True
            how["stream"] = True
            try:
                response = super().send(request, **how)
                exchange.sent = True
                body = _body_of(response, exchange)
            except (RequestException, HTTPError, HTTPException, OSError, ValueError) as err:
                cause = _cause(err)
                sent = exchange.sent or not _never_sent(err, cause)
                raise WireError(type(err).__name__, str(cause), sent=sent) from None  # `err` has the signed address
            response._content, response._content_consumed = body, True  # noqa: SLF001 - read here, to its end
            exchange.answer = Answer(response.status_code, body, date_told(response.headers.get("Date")))
            return response

    def _cause(err: Exception) -> Any:
        """What went wrong, without the address that all the rest is wrapped in."""
        return getattr(err.args[0] if err.args else err, "reason", err)

    def _never_sent(err: Exception, cause: Any) -> bool:
        """The connection was not made: nothing can have arrived."""
        unconnected = isinstance(err, (ConnectTimeout, ProxyError)) or isinstance(cause, NewConnectionError)
        return unconnected or "CERTIFICATE_VERIFY_FAILED" in str(cause)

    return Adapter


def _body_of(response: Any, exchange: _Exchange) -> bytes:
    """The whole body, within the time allowed; the connection is kept only once it was read to its end.

    Raises:
        WireError: too slow, too long, or shorter than promised.
    """
    raw = response.raw
    stream = raw._fp  # noqa: SLF001 - urllib3's own reading waits for each chunk to be full, however long it takes
    found = bytearray()
    whole = False
    try:
        while chunk := stream.read1(_CHUNK):
            found += chunk
            if len(found) > _LONGEST_BODY:
                raise WireError("TooLong", f"more than {_LONGEST_BODY} bytes", sent=True)
            if time.monotonic() > exchange.ends_at:
                raise WireError("TooSlow", "the answer was still coming when its time was up", sent=True)
        promised = response.headers.get("Content-Length")
        if promised is not None and promised.isdigit() and len(found) < int(promised):
            raise WireError("CutShort", f"{len(found)} of {promised} bytes came", sent=True)
        whole = True
    finally:
        if whole:
            stream.close()  # of the answer, not of its connection
            raw.release_conn()
        else:
            raw.close()
    return bytes(found)
