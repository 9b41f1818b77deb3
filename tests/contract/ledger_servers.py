"""Real or stand-in servers for the ledger's contract suite, on loopback or a Unix socket, ended with their context."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from cloudstand.aws.compute.hastening import hastening
from cloudstand.aws.core.patching import applied
from cloudstand.wire.server import WireServer
from cloudstand.wire.wsgi import serving

_SESSION = boto3.session.Session()  # shared, as each reads all that it knows of DynamoDB anew; not for many threads
_MAKING_CLIENTS = threading.Lock()
_UNPRIVILEGED = ("postgres", "nobody")  # PostgreSQL refuses to run as root
NO_POSTGRESQL = (
    "NOT TESTED: no PostgreSQL binaries (initdb, pg_ctl) in PATH or /usr/lib/postgresql/*/bin; "
    "the PostgreSQL ledger is unproven by this run. Install the package postgresql to test it."
)


def postgresql_binaries() -> Path | None:
    """The folder holding `initdb` and `pg_ctl`, newest first; None where there is none."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name, reverse=True)
    found = shutil.which("initdb")
    if found:
        folders.append(Path(found).resolve().parent)
    return next((folder for folder in folders if all((folder / name).exists() for name in ("initdb", "pg_ctl"))), None)


@contextmanager
def postgresql_server(binaries: Path) -> Iterator[str]:
    """A throw-away server on a Unix socket; gives `postgresql://` up to and without the database name's query.

    Its default collation is a linguistic one where the build has ICU, so that byte order must come from the ledger.
    """
    folder = Path(tempfile.mkdtemp(prefix="costguard-pg-"))
    user = _unprivileged_user()
    if user is not None:
        shutil.chown(folder, user)

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        with (folder.parent / f"{folder.name}.log").open("a+") as log:
            done = subprocess.run(  # noqa: S603 - the binaries are PostgreSQL's own
                [str(binaries / command[0]), *command[1:]],
                user=user,
                extra_groups=None if user is None else [],
                env={"PATH": str(binaries), "LC_ALL": "C", "TZ": "UTC"},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,  # a file: the server inherits it, and a pipe would never see its end
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=60,
            )
            log.seek(0)
            done.stdout = log.read()
        return done

    init = ("initdb", "-D", "data", "-U", "costguard", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
    try:
        if run(*init, "--locale-provider=icu", "--icu-locale=en-US").returncode != 0:
            shutil.rmtree(folder / "data", ignore_errors=True)
            _succeed(run(*init))
        options = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off -c max_connections=60"
        _succeed(run("pg_ctl", "-D", "data", "-w", "-s", "-l", "server.log", "-o", options, "start"))
        try:
            yield f"postgresql://costguard@/postgres?host={folder}"
        finally:
            _succeed(run("pg_ctl", "-D", "data", "-w", "-s", "-m", "immediate", "stop"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        (folder.parent / f"{folder.name}.log").unlink(missing_ok=True)


def _unprivileged_user() -> str | None:
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in _UNPRIVILEGED if name in names)


def _succeed(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout


class SerialDynamoDb:
    """moto's DynamoDB as a WSGI application, one request at a time: its dictionaries change size under threads.

    `lose_answers_to(n)` carries out the next n requests and then answers 500, as a network that breaks too late.
    """

    def __init__(self) -> None:
        self._app = DomainDispatcherApplication(create_backend_app)
        self._one_at_a_time = threading.Lock()
        self._answers_to_lose = 0

    def lose_answers_to(self, requests: int) -> None:
        self._answers_to_lose = requests

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        with self._one_at_a_time:
            if self._answers_to_lose:
                self._answers_to_lose -= 1
                for _ in self._app(environ, lambda *_: None):
                    pass
                start_response("500 Internal Server Error", [("Content-Length", "0")])
                return [b""]
            return list(self._app(environ, start_response))


@contextmanager
def dynamodb_server() -> Iterator[tuple[SerialDynamoDb, str]]:
    """Serve moto on a free loopback port; gives the application and its address."""
    app = SerialDynamoDb()
    with applied(hastening()), WireServer(serving(app)) as server:
        yield app, server.url


def dynamodb_test_client(endpoint_url: str) -> Any:
    """A client with made-up credentials."""
    with _MAKING_CLIENTS:
        return _SESSION.client(
            "dynamodb",
            region_name="us-east-1",
            endpoint_url=endpoint_url,
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            config=Config(retries={"mode": "standard", "max_attempts": 3}, max_pool_connections=20),
        )
