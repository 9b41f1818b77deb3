"""A change of one file of a policy repository, as a branch that is pushed: no work tree is touched, nothing is forced.

The commit is made from git's objects beside the checkout, so that what somebody has half written there stays. A branch
is pushed only where none of that name is: the server itself is asked to compare (`--force-with-lease` with nothing
expected), so that of two who push at once one gets the next number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from costguard.adapters.policy_sources.git_program import GitProgram
from costguard.domain.errors import InvalidInputError, RefusedError, UnavailableError
from costguard.policy.syntax.problems import MAX_BYTES, decoded

PUSH_SECONDS = 60.0
_TRIES = 9  # of names: NAME, NAME-2 and so on
_HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}", re.ASCII)
_ALLOWED = {"GIT_ALLOW_PROTOCOL": "https:ssh:file"}


@dataclass(frozen=True, slots=True)
class Pushed:
    """A branch with one commit more than `base`; `fresh` False where it was there already and says the same."""

    branch: str
    base: str
    remote: str
    commit: str
    fresh: bool


class PolicyRepository:
    """The repository that a folder is in, and one of its remotes; `environment` is this process's."""

    def __init__(self, environment: Mapping[str, str], folder: Path, remote: str = "origin") -> None:
        here = GitProgram(environment, None)
        if not _NAME.fullmatch(remote):
            message = f"{remote!r} is no name of a remote"
            raise InvalidInputError(message)
        try:
            found = here.run("-C", str(folder), "rev-parse", "--absolute-git-dir", "--show-prefix").decode()
        except RefusedError as err:
            message = f"{folder}: in no git repository: {err}"
            raise InvalidInputError(message) from err
        directory, _, prefix = found.partition("\n")
        self._git = GitProgram(environment, Path(directory))
        self._prefix = prefix.strip()
        self._remote = remote
        self._protocols = dict(_ALLOWED)

    def address(self) -> str:
        """Where the remote is, as its configuration says.

        Raises:
            InvalidInputError: there is no such remote.
        """
        try:
            return self._git.run("config", "--get", f"remote.{self._remote}.url").decode().strip()
        except RefusedError as err:
            message = f"the repository has no remote {self._remote!r}: name another with --remote"
            raise InvalidInputError(message) from err

    def propose(
        self, name: str, change: Callable[[str | None], str], branch: str, message: str, base: str = ""
    ) -> Pushed:
        """Push `branch` with `name` changed, as the remote's `base` has it now; without a base its default branch.

        Raises:
            InvalidInputError: no such branch, or nothing would change.
            UnavailableError: the remote could not be reached, or takes no push.
        """
        self.address()
        base = base or self._default()
        if not _NAME.fullmatch(base):
            said = f"{base!r} is no name of a branch"
            raise InvalidInputError(said)
        tip = self._fetched(base)
        path = f"{self._prefix}{name}"
        text = self._text(tip, path)
        changed = change(text)
        if changed == text:
            said = f"{path}: nothing would change on {base}"
            raise InvalidInputError(said)
        tree = self._tree(tip, path, changed)
        for count in range(1, _TRIES + 1):
            tried = branch if count == 1 else f"{branch}-{count}"
            there = self._tip_of(tried)
            if there and self._text(self._fetched(tried), path) == changed:
                return Pushed(tried, base, self._remote, there, fresh=False)
            if not there and self.push_new(commit := self._commit(tree, tip, message), tried):
                return Pushed(tried, base, self._remote, commit, fresh=True)
        said = f"{branch} and {_TRIES - 1} more of that name are there already: merge or delete some"
        raise InvalidInputError(said)

    def _default(self) -> str:
        said = self._asked("ls-remote", "--symref", "--", self._remote, "HEAD")
        found = re.match(r"ref: refs/heads/(\S+)\tHEAD", said)
        if found is None:
            message = f"the remote {self._remote} names no default branch: name one with --base"
            raise InvalidInputError(message)
        return found[1]

    def _tip_of(self, branch: str) -> str:
        return (
            self._asked("ls-remote", "--heads", "--", self._remote, f"refs/heads/{branch}").partition("\t")[0].strip()
        )

    def _fetched(self, branch: str) -> str:
        kept = "refs/costguard/base"
        try:
            self._asked(
                "fetch",
                "--quiet",
                "--no-tags",
                "--no-write-fetch-head",
                "--",
                self._remote,
                f"+refs/heads/{branch}:{kept}",
            )
            commit = self._git.run("rev-parse", "--verify", f"{kept}^{{commit}}").decode().strip()
            self._git.run("update-ref", "-d", kept)
        except RefusedError as err:
            message = f"the remote {self._remote} has no branch {branch!r}: {err}"
            raise InvalidInputError(message) from err
        return commit

    def _asked(self, *arguments: str) -> str:
        try:
            return self._git.run(*arguments, environment=self._protocols, seconds=PUSH_SECONDS).decode(
                "utf-8", "replace"
            )
        except RefusedError as err:
            if arguments[0] == "fetch":
                raise
            message = f"the remote {self._remote} does not answer: {err}"
            raise UnavailableError(message, operation=f"git:{arguments[0]}", code="refused") from err

    def _text(self, commit: str, path: str) -> str | None:
        try:
            raw = self._git.run("cat-file", "blob", f"{commit}:{path}")
        except RefusedError:
            return None
        if len(raw) > MAX_BYTES:
            message = f"{path}: longer than a policy file may be"
            raise InvalidInputError(message)
        return decoded(path, raw)

    def _tree(self, tip: str, path: str, text: str) -> str:
        blob = self._git.run("hash-object", "-w", "--stdin", stdin=text.encode()).decode().strip()
        with TemporaryDirectory(prefix="costguard-index-") as folder:
            aside = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            self._git.run("read-tree", tip, environment=aside)
            self._git.run("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", environment=aside)
            return self._git.run("write-tree", environment=aside).decode().strip()

    def _commit(self, tree: str, tip: str, message: str) -> str:
        try:
            made = self._git.run("commit-tree", tree, "-p", tip, "-F", "-", stdin=message.encode()).decode().strip()
        except RefusedError as err:
            said = f"git makes no commit: {err}; set user.name and user.email"
            raise InvalidInputError(said) from err
        if not _HASH.fullmatch(made):
            said = "git made no commit"
            raise UnavailableError(said, operation="git:commit-tree")
        return made

    def push_new(self, commit: str, branch: str) -> bool:
        """Push a branch that is not there; False where somebody was quicker, and nothing is overwritten."""
        where = f"refs/heads/{branch}"
        try:
            self._asked("push", "--quiet", f"--force-with-lease={where}:", self._remote, f"{commit}:{where}")
        except UnavailableError:
            if self._tip_of(branch):
                return False
            raise
        return True
