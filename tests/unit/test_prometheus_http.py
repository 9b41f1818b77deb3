"""The HTTP client of metrics backends against a server that misbehaves on purpose."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta

import pytest

from costguard.adapters.signal_sources.http import HttpEndpoint
from costguard.domain.errors import InvalidInputError, TruncatedReadError, UnavailableError


@contextmanager
def answering(raw: bytes, received: list[bytes] | None = None, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """A server that takes one request and sends `raw`, or closes at once if that is empty."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            try:
                connection = tls.wrap_socket(connection, server_side=True) if tls is not None else connection
            except OSError:
                connection.close()  # whoever called does not believe the certificate
                return
            with closing(connection):
                request = b""
                while b"\r\n\r\n" not in request or not request.endswith(b"query=up"):
                    request += connection.recv(65536)
                if received is not None:
                    received.append(request)
                connection.sendall(raw)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/base/"
        thread.join()


def test_a_form_is_posted_below_the_address_with_the_authorization() -> None:
    received: list[bytes] = []
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", received) as url:
        answer = HttpEndpoint(url, authorization="Bearer secret").post_form("/api/v1/query", {"query": "up"})
    assert (answer.status, answer.body) == (200, b"{}")
    assert received[0].startswith(b"POST /base/api/v1/query HTTP/1.1\r\n")
    assert b"Authorization: Bearer secret\r\n" in received[0]


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n{}",
    ],
)
def test_a_body_that_ends_early_is_truncated(raw: bytes) -> None:
    with answering(raw) as url, pytest.raises(TruncatedReadError):
        HttpEndpoint(url).post_form("/q", {"query": "up"})


@pytest.mark.parametrize("raw", [b"", b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 OK\r\n\r\n"])
def test_no_http_answer_is_unavailable(raw: bytes) -> None:
    with answering(raw) as url, pytest.raises(UnavailableError):
        HttpEndpoint(url).post_form("/q", {"query": "up"})


def test_a_redirect_is_not_followed() -> None:
    with answering(b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n") as url:
        assert HttpEndpoint(url).post_form("/q", {"query": "up"}).status == 302


def test_a_server_that_does_not_answer_in_time_is_unavailable() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(UnavailableError, match="did not answer"):
            HttpEndpoint(url, timeout=timedelta(milliseconds=50)).post_form("/q", {"query": "up"})


@pytest.mark.parametrize(
    "url", ["prometheus:9090", "ftp://host", "http://", "", "http://host:port", "http://host/?query=x", "file:///etc"]
)
def test_what_is_no_server_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidInputError):
        HttpEndpoint(url)


def test_credentials_in_the_address_are_refused_and_not_repeated() -> None:
    with pytest.raises(InvalidInputError) as caught:
        HttpEndpoint("https://reader:hunter2@metrics.example.com")
    assert "hunter2" not in str(caught.value)


def test_the_authorization_is_not_shown() -> None:
    assert "secret" not in repr(HttpEndpoint("https://metrics.example.com", authorization="Bearer secret"))
