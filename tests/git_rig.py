"""Real git repositories for tests, and a real server in front of them, on loopback."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

AT = "2026-03-10T12:30:00+00:00"
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
}
"""Nobody's own configuration."""

_MAKES = {
    **ENVIRONMENT,
    "GIT_AUTHOR_NAME": "ci",
    "GIT_AUTHOR_EMAIL": "ci@example.com",
    "GIT_AUTHOR_DATE": AT,
    "GIT_COMMITTER_NAME": "ci",
    "GIT_COMMITTER_EMAIL": "ci@example.com",
    "GIT_COMMITTER_DATE": AT,
}


@dataclass(frozen=True)
class Repository:
    """A repository with a branch `main`; bare, so that nothing can be read but what was committed."""

    folder: Path

    @classmethod
    def made(cls, folder: Path) -> Repository:
        folder.mkdir(parents=True, exist_ok=True)
        made = cls(folder)
        made.git("init", "--quiet", "--bare", "--template=", "--initial-branch=main")
        return made

    def git(self, *arguments: str, stdin: bytes = b"") -> str:
        command = ["git", *arguments]
        done = subprocess.run(  # noqa: S603 - what tests say
            command, cwd=self.folder, env=_MAKES, input=stdin, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    def commit(
        self,
        files: Mapping[str, bytes],
        *,
        links: Mapping[str, str] | None = None,
        submodules: Mapping[str, str] | None = None,
        branch: str = "main",
    ) -> str:
        """One commit of just these files; returns its hash."""
        lines = [b"commit refs/heads/%s\ncommitter ci <ci@example.com> 1773145800 +0000\ndata 0\n" % branch.encode()]
        if self.git("for-each-ref", f"refs/heads/{branch}"):
            lines.append(b"from refs/heads/%s^0\ndeleteall\n" % branch.encode())
        lines += [_inline("100644", name, raw) for name, raw in files.items()]
        lines += [_inline("120000", name, target.encode()) for name, target in (links or {}).items()]
        lines += [f"M 160000 {oid} {name}\n".encode() for name, oid in (submodules or {}).items()]
        self.git("fast-import", "--quiet", "--date-format=raw", stdin=b"".join(lines))
        return self.git("rev-parse", f"refs/heads/{branch}")


def _inline(mode: str, name: str, raw: bytes) -> bytes:
    return f"M {mode} inline {name}\ndata {len(raw)}\n".encode() + raw + b"\n"


@dataclass
class Server:
    """What answers, what it was asked, how much it said, and where it says that everything is instead."""

    port: int
    asked: list[str] = field(default_factory=list)
    moved_to: str = ""
    sent: int = 0

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"


@contextmanager
def serving(root: Path) -> Iterator[Server]:
    """The repositories below `root` over HTTP, by git's own backend."""
    program = Path(subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True).stdout.strip())  # noqa: S607 - the one tests use

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            server.asked.append(self.path)
            if server.moved_to:
                self.send_response(302)
                self.send_header("Location", f"{server.moved_to}{self.path}")
                self.end_headers()
                return
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            environment = {
                **_MAKES,
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "uploadpack.allowFilter",
                "GIT_CONFIG_VALUE_0": "true",
                "REQUEST_METHOD": self.command,
                "PATH_INFO": parts.path,
                "QUERY_STRING": parts.query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            }
            done = subprocess.run(  # noqa: S603 - git's own
                [program / "git-http-backend"], env=environment, input=body, capture_output=True, check=True
            )
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.send_response(int(headers.pop("Status", "200").split(" ")[0]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)
            server.sent += len(content)

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        server = Server(listening.server_address[1])
        thread = Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()
