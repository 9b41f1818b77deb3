"""Images built and started by buildah, which needs neither a daemon nor a registry, in storage of their own."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.bundles.reporting import NotPossibleError, UnexpectedError, done

_NEW_NETWORK = 0x40000000  # CLONE_NEWNET of linux/sched.h
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x1 | 0x40  # SIOCSIFFLAGS; IFF_UP, IFF_RUNNING


@dataclass(frozen=True)
class Configuration:
    """What an image says of how it is started."""

    user: str
    command: tuple[str, ...]
    folder: str
    environ: tuple[str, ...]
    ports: frozenset[str]


@dataclass(frozen=True)
class Engine:
    """`store` is a folder for its storage: images of whoever runs this are neither seen nor touched.

    `driver` is overlay, or vfs, which copies whole trees and works where folders cannot be laid over one another.
    """

    store: Path
    driver: str = "overlay"

    def has(self, names: Iterable[str]) -> bool:
        """Whether all these images are there."""
        told = self._told("images", "--format", "{{.Name}}").split()
        return set(names) <= set(told)

    def import_folder(self, folder: Path, name: str, settings: Sequence[str]) -> None:
        """An image of one layer: `folder`, with what `buildah config` takes."""
        with self.container("scratch") as container:
            self._told("add", "--quiet", container, str(folder), "/")
            self._told("config", *settings, container)
            self._told("commit", "--quiet", container, name)

    def build(self, recipe: Path, context: Path, arguments: Mapping[str, str], name: str) -> None:
        """As `docker build --file RECIPE --build-arg … --tag NAME CONTEXT`.

        Raises:
            UnexpectedError: it failed; with the end of what it told.
        """
        given = [word for key, value in arguments.items() for word in ("--build-arg", f"{key}={value}")]
        isolated = ("--isolation", "chroot", "--layers=false")
        self._told("build", *isolated, "--file", str(recipe), *given, "--tag", name, str(context))

    def configuration(self, image: str) -> Configuration:
        """By what the image itself says."""
        told = json.loads(self._told("inspect", "--type", "image", image))["OCIv1"]["config"]
        command = (*(told.get("Entrypoint") or ()), *(told.get("Cmd") or ()))
        ports = frozenset(told.get("ExposedPorts") or ())
        environ = tuple(told.get("Env") or ())
        return Configuration(told.get("User", ""), command, told.get("WorkingDir", ""), environ, ports)

    @contextmanager
    def container(self, image: str) -> Iterator[str]:
        """A container of the image, not started; its name."""
        name = self._told("from", "--pull-never" if image.startswith("localhost/") else "--pull", image).strip()
        try:
            yield name
        finally:
            self._told("rm", name)

    @contextmanager
    def files(self, container: str) -> Iterator[Path]:
        """Its root folder."""
        yield Path(self._told("mount", container).strip())
        self._told("umount", container)

    def start(
        self, container: str, command: Sequence[str], environ: Mapping[str, str], log: IO[bytes], user: str = ""
    ) -> subprocess.Popen[bytes]:
        """The command as the image's user, or as `user`; ended by SIGTERM."""
        given = [word for key, value in environ.items() for word in ("--env", f"{key}={value}")]
        who = ("--user", user) if user else ()
        words = self._words("run", "--isolation", "chroot", *who, *given, container, "--", *command)
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)  # noqa: S603

    def _told(self, *words: str) -> str:
        return done(self._words(*words))

    def _words(self, *words: str) -> list[str]:
        places = ("--root", str(self.store / "images"), "--runroot", str(self.store / "running"))
        return ["buildah", *places, "--storage-driver", self.driver, *words]


def check_possible(*programs: str) -> None:
    """Raises: NotPossibleError: a program is missing, or the right to use it."""
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        names = " ".join(missing)
        message = f"{names}: not installed; on Debian and Ubuntu `apt-get install --no-install-recommends {names}`"
        raise NotPossibleError(message)
    if os.geteuid() != 0:
        message = "images are built, and containers started, by root alone here: run it by sudo, or in a container"
        raise NotPossibleError(message)


def alone_on_loopback() -> None:
    """From here on this process, its threads and children have a network with loopback alone.

    So port 9000 is free, nobody outside reaches what listens there on all addresses, and nothing leaves.
    """
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_NETWORK) != 0:
        raise UnexpectedError("no network of its own:", os.strerror(ctypes.get_errno()))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        fcntl.ioctl(asking, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP_AND_RUNNING))


@dataclass(frozen=True)
class Process:
    """Its command line, and its users: real, effective, saved, of files."""

    pid: int
    words: list[str]
    users: list[int]


def processes_below(pid: int) -> Iterator[Process]:
    """Every process that `pid` led to."""
    threads = Path(f"/proc/{pid}/task").glob("*/children")  # any of them may have started a process
    for child in [int(one) for path in threads for one in path.read_text("utf-8").split()]:
        status = Path(f"/proc/{child}/status").read_text("utf-8").splitlines()
        users = next(line for line in status if line.startswith("Uid:")).split()[1:]
        words = Path(f"/proc/{child}/cmdline").read_text("utf-8").split("\0")
        yield Process(child, words, [int(user) for user in users])
        yield from processes_below(child)
