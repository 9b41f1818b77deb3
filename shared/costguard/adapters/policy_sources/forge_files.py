"""A change of one file of a policy repository by the forge's own API, where there is no git program: as functions are.

A branch appears with its commit in one call, so that a process that dies leaves none half made; one that exists is
never moved. API: GitHub REST "Get a repository", "Get a reference", "Get repository content", "Create a tree", "Create
a commit", "Create a reference" (fine-grained tokens: Contents write, Pull requests write); GitLab "Get a project", "Get
a branch", "Get raw file", "Create a commit with multiple files and actions" with `start_sha` (scope `api`, Developer).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

from costguard.adapters.policy_sources.forges import GITHUB, Forge, headers_of, sent
from costguard.domain.errors import AccessDeniedError, InvalidInputError, RefusedError
from costguard.policy.syntax.problems import MAX_BYTES, decoded

_TRIES = 9  # of names: NAME, NAME-2 and so on
_OK, _NONE, _DENIED, _THERE = 300, 404, {401, 403}, {400, 409, 422}


def propose_file(
    forge: Forge, token: str, path: str, change: Callable[[str | None], str], branch: str, message: str
) -> tuple[str, str]:
    """The branch that has `path` changed as the default branch has it now, and that: `(branch, base)`.

    The same change twice is one branch.

    Raises:
        InvalidInputError: nothing would change, or every name is taken.
        AccessDeniedError: the token may not.
        RefusedError: the forge refuses it.
        UnavailableError: no answer came.
    """
    project = _Project(forge, token)
    base = project.default()
    tip = project.tip(base)
    text = project.text(path, tip)
    changed = change(text)
    if changed == text:
        message = f"{path}: nothing would change on {base}"
        raise InvalidInputError(message)
    for count in range(1, _TRIES + 1):
        tried = branch if count == 1 else f"{branch}-{count}"
        there = project.tip(tried, missing=True)
        if there and project.text(path, there) == changed:
            return tried, base
        if not there and project.push_new(tried, tip, path, changed, message, fresh=text is None):
            return tried, base
    message = f"{branch} and {_TRIES - 1} more of that name are there already: merge or delete some"
    raise InvalidInputError(message)


class _Project:
    def __init__(self, forge: Forge, token: str) -> None:
        self._forge, self._headers = forge, headers_of(forge, token)
        self._github = forge.kind == GITHUB
        project = forge.project if self._github else quote(forge.project, safe="")
        self._root = f"/repos/{project}" if self._github else f"/projects/{project}"

    def default(self) -> str:
        return self._said(self._asked("GET", ""), "default_branch")

    def tip(self, branch: str, *, missing: bool = False) -> str:
        named = quote(branch, safe="/" if self._github else "")
        where = f"/git/ref/heads/{named}" if self._github else f"/repository/branches/{named}"
        answer = self._asked("GET", where, missing=missing)
        if answer is None:
            return ""
        return self._said(answer.get("object" if self._github else "commit"), "sha" if self._github else "id")

    def text(self, path: str, commit: str) -> str | None:
        if self._github:
            where = f"/contents/{quote(path)}?{urlencode({'ref': commit})}"
        else:
            where = f"/repository/files/{quote(path, safe='')}?{urlencode({'ref': commit})}"
        answer = self._asked("GET", where, missing=True)
        if answer is None:
            return None
        try:
            raw = base64.b64decode(self._said(answer, "content"))
        except (binascii.Error, ValueError) as err:
            raise self._odd("content") from err
        if len(raw) > MAX_BYTES or answer.get("encoding") != "base64":
            message = f"{path}: longer than a policy file may be"
            raise InvalidInputError(message)
        return decoded(path, raw)

    def push_new(self, branch: str, tip: str, path: str, text: str, message: str, *, fresh: bool) -> bool:
        """False where somebody was quicker with a branch of that name."""
        if not self._github:
            action = {"action": "create" if fresh else "update", "file_path": path, "content": text}
            body = {"branch": branch, "start_sha": tip, "commit_message": message, "actions": [action]}
            return self._made("/repository/commits", body, branch)
        entry = {"path": path, "mode": "100644", "type": "blob", "content": text}
        tree = self._said(self._asked("POST", "/git/trees", {"base_tree": tip, "tree": [entry]}), "sha")
        made = self._asked("POST", "/git/commits", {"message": message, "tree": tree, "parents": [tip]})
        return self._made("/git/refs", {"ref": f"refs/heads/{branch}", "sha": self._said(made, "sha")}, branch)

    def _made(self, where: str, body: dict[str, Any], branch: str) -> bool:
        status, _ = sent(self._forge, "POST", f"{self._root}{where}", self._headers, json.dumps(body).encode())
        if status in _THERE and self.tip(branch, missing=True):
            return False
        self._check(status, where)
        return True

    def _asked(self, method: str, where: str, body: dict[str, Any] | None = None, *, missing: bool = False) -> Any:
        raw = b"" if body is None else json.dumps(body).encode()
        status, answer = sent(self._forge, method, f"{self._root}{where}", self._headers, raw)
        if missing and status == _NONE:
            return None
        self._check(status, where)
        if not isinstance(answer, dict):
            raise self._odd(where)
        return answer

    def _check(self, status: int, where: str) -> None:
        forge = self._forge
        if status in _DENIED:
            message = f"{forge.kind}: the token may not change {forge.project}; grant it writing contents"
            raise AccessDeniedError(message, operation=f"{forge.kind}:{where}", code=str(status))
        if status >= _OK or not status:
            message = f"{forge.kind}: {forge.project} was not changed (status {status})"
            raise RefusedError(message, operation=f"{forge.kind}:{where}", code=str(status))

    def _said(self, answer: object, name: str) -> str:
        value = answer.get(name) if isinstance(answer, dict) else None
        if not isinstance(value, str) or not value:
            raise self._odd(name)
        return value

    def _odd(self, what: str) -> RefusedError:
        message = f"{self._forge.kind}: did not answer as documented ({what})"
        return RefusedError(message, operation=f"{self._forge.kind}:read", code="odd")
