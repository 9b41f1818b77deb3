"""Addresses of policies in git: `git:REV[:PATH]`, and `git+https://HOST/OWNER/REPO@REV[#PATH]`. Pure.

What is passed to git goes through here first: nothing that git would read as an option, a pattern, a range or a second
revision gets by, and no address holds a password.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from costguard.domain.errors import InvalidInputError

_LOCAL, _REMOTE = "git:", "git+"
_PORTS = {"https": 443, "http": 80, "ssh": 22}
_PRIVATE = "private:"
_HERE = re.compile(r"[\w@][\w@./{}^~+=#-]{0,199}")
_THERE = re.compile(r"\w[\w./+=-]{0,199}")  # of what a server is asked for: a name or a whole hash, and no reckoning
_URL = re.compile(
    r"git\+(?P<transport>https|http|ssh)://(?:(?P<user>[^/]*)@)?(?P<host>[^/@:]+)(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>/[^@#]*)@(?P<revision>[^#]*)(?:#(?P<below>.*))?"
)
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII)
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}", re.ASCII)
_PART = re.compile(r"[A-Za-z0-9._~][A-Za-z0-9._~-]*", re.ASCII)
_LONGEST_PATH = 500
_MOST_PORT = 65535
_FORM = "expected git:REV[:PATH], git+https://HOST/OWNER/REPO@REV[#PATH] or git+ssh://HOST/OWNER/REPO@REV[#PATH]"


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository on another machine. `user` is who SSH logs in as."""

    transport: str
    host: str
    port: int
    path: str
    user: str = ""

    @property
    def url(self) -> str:
        """As git takes it."""
        user = f"{self.user}@" if self.user else ""
        return f"{self.transport}://{user}{self.named}{self.path}"

    @property
    def named(self) -> str:
        """The host, and the port where it is not the usual one: as an entry of the allow-list names it."""
        return self.host if self.port == _PORTS[self.transport] else f"{self.host}:{self.port}"

    def allowed(self, hosts: Collection[str]) -> bool:
        """Whether an allow-list names this host, of the public internet or of one's own network."""
        return bool({self.named, f"{_PRIVATE}{self.named}"} & set(hosts))

    def may_be_private(self, hosts: Collection[str]) -> bool:
        """Whether an allow-list says that its addresses may be private ones."""
        return f"{_PRIVATE}{self.named}" in hosts


@dataclass(frozen=True, slots=True)
class GitAddress:
    """A revision, and where in its tree the policy is; `remote` None is the repository of the current folder."""

    revision: str
    path: str = ""
    remote: Remote | None = None

    @property
    def shown(self) -> str:
        """As it is written, without a user."""
        return self.at(self.path) if self.path else self.at("")[:-1]

    def at(self, path: str) -> str:
        """The address of a path in the same commit."""
        if self.remote is None:
            return f"{_LOCAL}{self.revision}:{path}"
        return f"git+{self.remote.transport}://{self.remote.named}{self.remote.path}@{self.revision}#{path}"


def is_git(address: str) -> bool:
    """Whether the address is one of a policy in git; a file of such a name is written `./git:…`."""
    return address.startswith((_LOCAL, _REMOTE))


def git_address(address: str) -> GitAddress:
    """Take an address apart. Nothing of one that may hold a password is repeated in an error.

    Raises:
        InvalidInputError: it is none; says what is wrong.
    """
    if address.startswith("git://"):
        raise _wrong("git:// proves neither side to the other")
    if address.startswith(_LOCAL):
        revision, _, path = address.removeprefix(_LOCAL).partition(":")
        return GitAddress(_revision(revision, _HERE), _path(path))
    found = _URL.fullmatch(address)
    if found is None:
        raise _wrong("it cannot be read")
    transport, user = found["transport"], found["user"]
    if user is not None and (transport != "ssh" or not _USER.fullmatch(user)):
        raise _wrong("an address names no user and no password; git's own credential helpers know them")
    host, port = found["host"].lower(), int(found["port"] or _PORTS[transport])
    if not _HOST.fullmatch(host) or ".." in host or not 0 < port <= _MOST_PORT:
        raise _wrong("that is no name of a host")
    if not all(_PART.fullmatch(part) and part not in {".", ".."} for part in found["path"][1:].split("/")):
        raise _wrong("the path of its repository has other letters than A-Z a-z 0-9 . _ ~ - and /")
    remote = Remote(transport, host, port, found["path"], (user or "git") if transport == "ssh" else "")
    return GitAddress(_revision(found["revision"], _THERE), _path(found["below"] or ""), remote)


def _revision(text: str, form: re.Pattern[str]) -> str:
    if text.startswith("-"):
        raise _wrong("a revision does not begin with -")
    if not form.fullmatch(text) or ".." in text:
        found = f"{text[:60]!r} is no revision" if text else "it names no revision"
        what = f"{found}; write a branch, a tag or a commit"
        raise _wrong(what)
    return text


def _path(text: str) -> str:
    path = text.removesuffix("/").removeprefix("./")
    if path in {"", "."}:
        return ""
    parts = path.split("/")
    if {"", ".", ".."} & set(parts) or not path.isprintable() or "\\" in path or len(path) > _LONGEST_PATH:
        what = f"{text[:60]!r} is no path from the root of the repository"
        raise _wrong(what)
    return path


def _wrong(what: str) -> InvalidInputError:
    return InvalidInputError(f"the address of a policy in git is wrong: {what}; {_FORM}")
