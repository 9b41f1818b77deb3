"""A bucket that answers with a redirect: the request, its signature and what it carries go nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from costguard.adapters.policy_sources.published import BundleShelf
from costguard.domain.errors import ProviderError
from costguard.ports import ObjectStore
from costguard.providers.alibaba.core import services as oss
from costguard.providers.aws.core import services as s3
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.tencent.core import services as cos

KEYS = Keys("key-id", "a secret", "")
NAME = "bundles/1f0c.json"


def _now() -> datetime:
    return datetime(2026, 1, 19, 6, 7, 8, tzinfo=timezone.utc)


STORES: dict[str, Callable[[str], ObjectStore]] = {
    "s3": lambda url: s3.open_s3("s3://acme/p?region=us-east-1", endpoint_url=url, keys=("key-id", "a secret")),
    "oss": lambda url: oss.open_oss("oss://acme/p?region=cn-hangzhou", KEYS, now=_now, endpoint=url),
    "cos": lambda url: cos.open_cos("cos://acme-1250000000/p?region=ap-guangzhou", KEYS, now=_now, endpoint=url),
}


@dataclass
class Answering:
    """What a server answers everything with, and what it was asked."""

    status: int = 200
    location: str = ""
    url: str = ""
    asked: list[str] = field(default_factory=list)


@contextmanager
def answering() -> Iterator[Answering]:
    says = Answering()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # else the SDK waits a second for 100 Continue

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            says.asked.append(f"{self.command} {self.path}")
            self.send_response(says.status)
            if says.location:
                self.send_header("Location", says.location)
                self.send_header("x-amz-bucket-region", "us-east-1")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_PUT(self) -> None:
            self.do_GET()

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True  # a client that keeps its connection keeps one of them
        says.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield says
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("vendor", STORES)
def test_a_redirect_is_an_error_and_is_not_followed(vendor: str) -> None:
    """To another server, to where a cloud hands out credentials, and into a private network."""
    with answering() as elsewhere, answering() as bucket:
        shelf = BundleShelf(STORES[vendor](bucket.url), bucket.url)
        for bucket.status, bucket.location in (
            (301, f"{elsewhere.url}/p/{NAME}"),
            (302, f"{elsewhere.url}/p/{NAME}"),
            (307, f"{elsewhere.url}/p/{NAME}"),
            (308, f"{elsewhere.url}/p/{NAME}"),
            (302, "http://169.254.169.254/latest/meta-data/"),
            (307, "http://10.0.0.1/"),
        ):
            before = len(bucket.asked)
            with pytest.raises(ProviderError):
                shelf.fetch("1" * 64)
            with pytest.raises(ProviderError):
                shelf.keep({"costguard.yaml": "version: 1\n"})
            assert len(bucket.asked) > before
        assert elsewhere.asked == []
