"""A policy kept in one file or one folder, and addresses of policies in git.

What is passed to git goes through here first: nothing that git would read as an option, a pattern, a range or a second
revision gets by, and no address holds a password.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from costguard.domain.errors import InvalidInputError, UnavailableError
from costguard.policy.syntax.problems import MAX_BYTES, decoded, invalid, too_long
from costguard.ports import PolicyText

MAX_FILES = 1000
RULES_FOLDER = "policies"
_SUFFIXES = frozenset({".yaml", ".yml"})


def is_yaml(name: str) -> bool:
    """By its ending, in any case."""
    return PurePosixPath(name).suffix.casefold() in _SUFFIXES


def is_hidden(name: str) -> bool:
    """Names that begin with a dot are left alone, and so is all that is under them."""
    return any(part.startswith(".") for part in PurePosixPath(name).parts)


def almost_rules(name: str) -> bool:
    """Whether a folder is called nearly as the one of the rules, so that they would be dropped in silence."""
    near = difflib.get_close_matches(name.casefold(), [RULES_FOLDER], cutoff=0.7)
    return bool(near) and name != RULES_FOLDER


def misnamed(shown: str) -> str:
    """What is said of such a folder, where YAML is in it."""
    return f"{shown}: rules are read from {RULES_FOLDER}/ only; rename the folder, or move it away"


def too_many(shown: str) -> str:
    """What is said of more files than a policy has."""
    return f"{shown}: more than {MAX_FILES} policy files; give the folder of the policy itself"


def none_here(shown: str) -> str:
    """What is said where there is no file of a policy."""
    return f"{shown}: no policy here; a policy folder holds costguard.yaml"


class FilePolicySource:
    """Reads `path`: one YAML file, or a folder with costguard.yaml and what stands beside it.

    Of a folder its own YAML files and those anywhere under `policies/` are read, in order of their paths.
    Names that begin with a dot, README and everything that is not YAML are left alone. Links may lead
    to files of the same folder (a mounted ConfigMap is made of them), never out of it.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)

    def read(self) -> PolicyText:
        """All policy files, whole; the revision is a hash of their bytes.

        Raises:
            InvalidInputError: nothing there, not text, too long, or a link out of the folder.
            UnavailableError: the file system refused.
        """
        try:
            raw = dict(self._contents())
        except FileNotFoundError as err:
            message = f"{err.filename or self._path}: no such file or folder; give the path of a policy"
            raise InvalidInputError(message) from err
        except OSError as err:
            message = f"{err.filename or self._path}: cannot be read: {err.strerror}"
            raise UnavailableError(message, operation="file:read", code=type(err).__name__) from err
        if not raw:
            raise InvalidInputError(none_here(str(self._path)))
        revision = hashlib.sha256()
        files: dict[str, str] = {}
        for name in sorted(raw):
            revision.update(f"{len(name.encode())} {len(raw[name])} ".encode() + name.encode() + raw[name])
            files[name] = decoded(self._shown(name), raw[name])
        return PolicyText(files=files, revision=revision.hexdigest(), origin=str(self._path))

    def _contents(self) -> Iterator[tuple[str, bytes]]:
        if not self._path.is_dir():
            yield self._path.name, self._bytes(self._path, self._path.name)
            return
        for count, path in enumerate(self._files(self._path)):
            if count >= MAX_FILES:
                raise InvalidInputError(too_many(str(self._path)))
            name = path.relative_to(self._path).as_posix()
            yield name, self._bytes(path, name)

    def _files(self, folder: Path) -> Iterator[Path]:
        for path in sorted(folder.iterdir()):
            if is_hidden(path.name):
                continue
            if path.is_dir():
                if self._holds_rules(path, folder):
                    self._refuse_link(path)
                    yield from self._files(path)
            elif is_yaml(path.name):
                self._stays_inside(path)
                yield path

    def _holds_rules(self, path: Path, folder: Path) -> bool:
        """Everything under `policies/`; a folder called almost so is a mistake that would drop rules in silence."""
        if folder != self._path or path.name == RULES_FOLDER:
            return True
        if almost_rules(path.name) and any(is_yaml(each.name) for each in path.iterdir()):
            raise InvalidInputError(misnamed(str(path)))
        return False

    def _refuse_link(self, path: Path) -> None:
        if path.is_symlink():
            message = f"{path}: a folder of the policy may not be a link; put the files there"
            raise InvalidInputError(message)

    def _stays_inside(self, path: Path) -> None:
        if not path.is_symlink():
            return
        try:
            target = path.resolve(strict=True)
        except (OSError, RuntimeError) as err:  # RuntimeError: a loop of links, before Python 3.13
            message = f"{path}: this link leads nowhere; put the file there"
            raise InvalidInputError(message) from err
        if self._path.resolve() not in target.parents:
            message = f"{path}: this link leads out of the policy; put the file there"
            raise InvalidInputError(message)

    def _bytes(self, path: Path, name: str) -> bytes:
        if not stat.S_ISREG(path.stat().st_mode):
            message = f"{path}: not an ordinary file"
            raise InvalidInputError(message)
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise invalid((too_long(self._shown(name)),))
        return raw

    def _shown(self, name: str) -> str:
        return str(self._path / name) if self._path.is_dir() else str(self._path)


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
