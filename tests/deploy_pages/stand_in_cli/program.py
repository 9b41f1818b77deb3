"""A program on a reader's path, answered by this process: its words go over loopback, what it prints comes back."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from typing_extensions import Self

from cloudstand.wire.messages import Answer, Request
from cloudstand.wire.server import WireServer

_PROGRAM = """\
#!{python} -IS
import json, os, sys, urllib.request
told = json.dumps([sys.argv[1:], dict(os.environ)]).encode()
opener = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))
with opener.open(urllib.request.Request({url!r}, told), timeout=600) as answer:
    status, said, wrong = json.load(answer)
sys.stdout.write(said)
sys.stderr.write(wrong)
sys.exit(status)
"""


@dataclass(frozen=True, slots=True)
class Printed:
    """What a program ends with."""

    status: int
    said: str = ""
    wrong: str = ""


Answering = Callable[[Sequence[str], Mapping[str, str]], Printed]
"""Words and environment → what is printed."""


class Program:
    """Serves one program until it is closed; use it as a context manager."""

    def __init__(self, name: str, answering: Answering) -> None:
        self._name = name
        self._answering = answering
        self._server = WireServer(self._answer)

    def put_into(self, folder: Path) -> None:
        """Write the program that leads here."""
        path = folder / self._name
        path.write_text(_PROGRAM.format(python=sys.executable, url=self._server.url), "utf-8")
        path.chmod(0o755)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def _answer(self, request: Request) -> Answer:
        words, environ = json.loads(request.body)
        printed = self._answering(words, environ)
        return Answer(200, json.dumps([printed.status, printed.said, printed.wrong]).encode())
