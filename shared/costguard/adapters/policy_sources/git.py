"""A policy as one commit of a git repository holds it: read from git's objects, with no work tree and no checkout."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from costguard.adapters.policy_sources.files import (
    MAX_FILES,
    RULES_FOLDER,
    GitAddress,
    almost_rules,
    is_hidden,
    is_yaml,
    misnamed,
    none_here,
    too_many,
)
from costguard.adapters.policy_sources.git_program import GitProgram
from costguard.domain.errors import InvalidInputError, RefusedError, UnavailableError
from costguard.policy.syntax.problems import MAX_BYTES, decoded, invalid, too_long
from costguard.ports import PolicyText

_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
_TREE, _BLOB = "tree", "blob"
_LINK = "120000"
_TESTS = "tests"

Opened = Callable[[], AbstractContextManager[tuple[GitProgram, str]]]
"""A repository to read from, and what the revision is called in it."""


@dataclass(frozen=True, slots=True)
class _Entry:
    mode: str
    kind: str
    oid: str
    name: str


class GitPolicySource:
    """Reads the policy that `address` names: one YAML file, or a folder as `FilePolicySource` reads it.

    Links and submodules are refused: what they lead to is not in the commit. The revision is the commit's hash.
    """

    def __init__(self, address: GitAddress, opened: Opened) -> None:
        self._address = address
        self._opened = opened

    def read(self) -> PolicyText:
        """All policy files, whole, of one commit.

        Raises:
            InvalidInputError: no such revision or path, not text, too long, a link or a submodule.
            UnavailableError: git or the repository could not be reached in time.
        """
        with self._opened() as (git, revision):
            tree = _Tree(git, self._address, _commit(git, self._address, revision))
            found = tree.policy()
            if not found:
                raise InvalidInputError(none_here(self._address.shown))
            return PolicyText(tree.texts(found), tree.commit, tree.origin)

    def tests(self) -> Mapping[str, str]:
        """The files of tests beside the policy in the same commit: what to call each in errors → text.

        Raises:
            InvalidInputError: as `read`; or there are none.
            UnavailableError: as `read`.
        """
        with self._opened() as (git, revision):
            tree = _Tree(git, self._address, _commit(git, self._address, revision))
            found = tree.tests()
            if not found:
                message = f"{self._address.shown}/{_TESTS}: no file of tests is there; name some"
                raise InvalidInputError(message)
            return {f"{tree.origin}/{name}": text for name, text in tree.texts(found).items()}


def opened_here(git: GitProgram, address: GitAddress) -> AbstractContextManager[tuple[GitProgram, str]]:
    """The repository of the current folder, with a work tree or without."""
    return nullcontext((git, address.revision))


def _commit(git: GitProgram, address: GitAddress, revision: str) -> str:
    try:
        said = git.run("rev-parse", "--verify", f"{revision}^{{commit}}").decode("ascii", "replace").strip()
    except RefusedError as err:
        message = f"{address.shown}: git finds no commit {revision!r} in the repository of this folder: {err}"
        raise InvalidInputError(message) from err
    if not _HASH.fullmatch(said):
        message = f"{address.shown}: {revision!r} is not one commit"
        raise InvalidInputError(message)
    return said


class _Tree:
    """What one commit holds at the path of an address."""

    def __init__(self, git: GitProgram, address: GitAddress, commit: str) -> None:
        self._git = git
        self._address = address
        self._shown = address.shown
        self._path = address.path
        self._filtered = address.remote is not None
        self.commit = commit
        self._at = self._found()
        self._single = self._at is not None and self._at.kind == _BLOB
        # an error is told of ORIGIN/NAME, and of ORIGIN itself where that ends with /NAME of a single file
        self.origin = address.at(f"./{self._path}" if self._single else self._path or ".")

    def policy(self) -> dict[str, str]:
        """Its files: name → hash of the blob."""
        if self._at is not None and self._single:
            return {self._path.rpartition("/")[2]: self._at.oid}
        found: dict[str, str] = {}
        for entry in self._listed(self._top()):
            if is_hidden(entry.name):
                continue
            if entry.name == RULES_FOLDER:
                found.update(self._below(entry))
            elif is_yaml(entry.name) and entry.kind != _TREE:
                found[entry.name] = self._ordinary(entry, entry.name).oid
            elif entry.kind != _BLOB or entry.mode == _LINK:
                self._refuse_misnamed(entry)
        if len(found) > MAX_FILES:
            raise InvalidInputError(too_many(self._shown))
        return dict(sorted(found.items()))

    def tests(self) -> dict[str, str]:
        """The files of tests beside the policy."""
        if self._single:
            return {}
        folder = next((entry for entry in self._listed(self._top()) if entry.name == _TESTS), None)
        return {} if folder is None else dict(sorted(self._below(folder)))

    def texts(self, blobs: Mapping[str, str]) -> dict[str, str]:
        """The text of each."""
        wanted = list(dict.fromkeys(blobs.values()))
        sizes = self._sizes(wanted)
        for name, oid in blobs.items():
            if sizes[oid] > MAX_BYTES:
                raise invalid((too_long(self._called(name)),))
        raw = dict(zip(wanted, self._contents(wanted, sizes), strict=True))
        return {name: decoded(self._called(name), raw[oid]) for name, oid in blobs.items()}

    def _called(self, name: str) -> str:
        return self.origin if self._single else f"{self.origin}/{name}"

    def _found(self) -> _Entry | None:
        """The entry at the path; None is the root."""
        if not self._path:
            return None
        entries = self._listed(self.commit, self._path)
        if not entries:
            message = f"{self._shown}: no such file or folder in commit {self.commit[:12]}; paths count from the root"
            raise InvalidInputError(message)
        return entries[0] if entries[0].kind == _TREE else self._ordinary(entries[0], "")

    def _top(self) -> str:
        return self.commit if self._at is None else self._at.oid

    def _below(self, folder: _Entry) -> Iterator[tuple[str, str]]:
        if folder.kind != _TREE:
            self._ordinary(folder, folder.name)
            message = f"{self._called(folder.name)}: expected a folder"
            raise InvalidInputError(message)
        for entry in self._listed(folder.oid, everything=True):
            name = f"{folder.name}/{entry.name}"
            if not is_hidden(entry.name) and (is_yaml(entry.name) or entry.kind != _BLOB or entry.mode == _LINK):
                yield name, self._ordinary(entry, name).oid

    def _refuse_misnamed(self, entry: _Entry) -> None:
        if not almost_rules(entry.name):
            return
        inside = {each.name for each in self._listed(entry.oid)} if entry.kind == _TREE else {"a.yaml"}
        if "costguard.yaml" in inside:
            message = f"{self._shown}: the policy seems to be in {self._address.at(entry.name)}; give that"
            raise InvalidInputError(message)
        if any(map(is_yaml, inside)):
            raise InvalidInputError(misnamed(self._called(entry.name)))

    def _ordinary(self, entry: _Entry, name: str) -> _Entry:
        shown = self._called(name) if name else self._shown
        if entry.mode == _LINK:
            message = f"{shown}: a link; what it leads to is not read from git, put the file there"
            raise InvalidInputError(message)
        if entry.kind not in {_BLOB, _TREE}:
            message = f"{shown}: a submodule; what is in it is not read, put the files there"
            raise InvalidInputError(message)
        return entry

    def _listed(self, tree: str, path: str = "", *, everything: bool = False) -> list[_Entry]:
        deep = ("-r",) if everything else ()
        raw = self._git.run("ls-tree", "-z", "--full-tree", *deep, tree, *(("--", path) if path else ()))
        return [self._entry(each) for each in raw.split(b"\0") if each]

    def _entry(self, line: bytes) -> _Entry:
        head, _, name = line.partition(b"\t")
        mode, kind, oid = head.decode("ascii").split(" ")
        return _Entry(mode, kind, oid, name.decode("utf-8", "backslashreplace"))

    def _sizes(self, oids: Sequence[str]) -> dict[str, int]:
        asked = "".join(f"{oid}\n" for oid in oids).encode()
        try:
            raw = self._git.run("cat-file", "--batch-check=%(objecttype) %(objectsize)", stdin=asked)
        except RefusedError as err:
            message = f"{self._shown}: not all of it is in this repository, as in a partial clone: {err}"
            raise InvalidInputError(message) from err
        answers = raw.decode("ascii").splitlines()
        if len(answers) != len(oids):
            raise self._odd()
        return {oid: self._size(answer) for oid, answer in zip(oids, answers, strict=True)}

    def _size(self, answer: str) -> int:
        kind, _, size = answer.rpartition(" ")
        if size == "missing":
            if self._filtered:  # fetched without what is longer than may be
                return MAX_BYTES + 1
            message = f"{self._shown}: not all of it is in this repository, as in a partial clone; fetch it whole"
            raise InvalidInputError(message)
        if kind != _BLOB or not size.isdecimal():
            raise self._odd()
        return int(size)

    def _contents(self, oids: Sequence[str], sizes: Mapping[str, int]) -> Iterator[bytes]:
        asked = "".join(f"{oid}\n" for oid in oids).encode()
        raw = self._git.run("cat-file", "--batch", stdin=asked)
        at = 0
        for oid in oids:
            head = f"{oid} {_BLOB} {sizes[oid]}\n".encode()
            begin, end = at + len(head), at + len(head) + sizes[oid]
            if raw[at:begin] != head or raw[end : end + 1] != b"\n":
                raise self._odd()
            yield raw[begin:end]
            at = end + 1

    def _odd(self) -> UnavailableError:
        message = f"{self._shown}: git did not answer as documented"
        return UnavailableError(message, operation="git:cat-file")
