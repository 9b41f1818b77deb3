"""Pull requests on GitHub and merge requests on GitLab: opened for a branch that was pushed, and found again.

API: GitHub REST "Create a pull request", "List pull requests"; GitLab "Create MR", "List project merge requests".
Requests go to the forge's own host alone, without redirects and proxies, with a token that is never logged.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from costguard.domain.errors import AccessDeniedError, InvalidInputError, RefusedError, UnavailableError

GITHUB, GITLAB = "github", "gitlab"
_SECONDS = 20.0
_MOST_BYTES = 4 * 1024 * 1024
_HTTPS = re.compile(r"https?://(?:[^@/]*@)?(?P<host>[^/:]+)(?::\d+)?/(?P<path>.+?)(?:\.git)?/?")
_SSH = re.compile(r"(?:ssh://)?(?:[^@/]+@)(?P<host>[^/:]+)(?::\d+/|[:/])(?P<path>.+?)(?:\.git)?/?")
_PATH = re.compile(r"[A-Za-z0-9._~-]+(?:/[A-Za-z0-9._~-]+)+", re.ASCII)
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_DENIED, _THERE = {401, 403}, {409, 422}
_OK = 300


@dataclass(frozen=True, slots=True)
class Forge:
    """A project on GitHub or GitLab, and the address of its API."""

    kind: str
    api: str
    project: str


def forge_of(address: str, *, kind: str = "", api: str = "") -> Forge | None:
    """What a remote's address says; None for a plain git server. `kind` and `api` say what it cannot.

    Raises:
        InvalidInputError: no project is named, or an API that a token may not be sent to.
    """
    found = _HTTPS.fullmatch(address) or _SSH.fullmatch(address)
    host, path = (found["host"].lower(), found["path"]) if found is not None else ("", "")
    kind = kind or (GITHUB if host == "github.com" else GITLAB if host.split(".")[0] == "gitlab" else "")
    if not kind:
        return None
    if kind not in {GITHUB, GITLAB}:
        message = f"there is no forge {kind!r}; there is {GITHUB} and {GITLAB}"
        raise InvalidInputError(message)
    if found is None or not _PATH.fullmatch(path):
        message = f"the remote names no project on {kind}, such as https://github.com/OWNER/REPO"
        raise InvalidInputError(message)
    own = "https://api.github.com" if host == "github.com" else f"https://{host}/api/v3"
    api = (api or (own if kind == GITHUB else f"https://{host}/api/v4")).rstrip("/")
    parts = urlsplit(api)
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)):
        message = "a token is sent over https, or to this machine; give the API's address as https://HOST/…"
        raise InvalidInputError(message)
    return Forge(kind, api, path)


def open_request(forge: Forge, token: str, branch: str, base: str, title: str, body: str) -> str:
    """Where the pull request is: a fresh one, or the open one of this branch.

    Raises:
        AccessDeniedError: the token may not.
        RefusedError: the forge refuses it.
        UnavailableError: no answer came.
    """
    if forge.kind == GITHUB:
        owner = forge.project.partition("/")[0]
        where, asked = f"/repos/{forge.project}/pulls", {"title": title, "head": branch, "base": base, "body": body}
        listed, shown = urlencode({"head": f"{owner}:{branch}", "state": "open"}), "html_url"
    else:
        where = f"/projects/{quote(forge.project, safe='')}/merge_requests"
        asked = {"title": title, "source_branch": branch, "target_branch": base, "description": body}
        listed, shown = urlencode({"source_branch": branch, "state": "opened"}), "web_url"
    headers = headers_of(forge, token)
    status, answer = sent(forge, "POST", where, headers, json.dumps(asked).encode())
    if status in _THERE:
        status, listing = sent(forge, "GET", f"{where}?{listed}", headers)
        answer = listing[0] if status < _OK and isinstance(listing, list) and listing else answer
    if status in _DENIED:
        message = f"{forge.kind}: the token may open no request in {forge.project}; grant it writing pull requests"
        raise AccessDeniedError(message, operation=f"{forge.kind}:open", code=str(status))
    url = answer.get(shown) if isinstance(answer, dict) else None
    if status >= _OK or not isinstance(url, str) or not url.isprintable():
        message = (
            f"{forge.kind}: no request was opened in {forge.project} (status {status}); the branch {branch} is there"
        )
        raise RefusedError(message, operation=f"{forge.kind}:open", code=str(status))
    return url


def headers_of(forge: Forge, token: str) -> dict[str, str]:
    """What proves the token to that forge."""
    if forge.kind == GITHUB:
        return {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
    return {"PRIVATE-TOKEN": token}


def sent(forge: Forge, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> tuple[int, Any]:
    """The status and the JSON of one answer, None where it is none.

    Raises:
        UnavailableError: no answer came.
    """
    parts = urlsplit(forge.api)
    connect = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = connect(parts.hostname or "", parts.port, timeout=_SECONDS)
    status = 0
    try:
        said = {**headers, "User-Agent": "costguard", "Content-Type": "application/json"}
        connection.request(method, f"{parts.path}{path}", body or None, said)
        answer = connection.getresponse()
        status = answer.status
        return status, json.loads(answer.read(_MOST_BYTES) or b"null")
    except (OSError, HTTPException) as err:
        message = f"{forge.kind} at {parts.hostname} does not answer: {type(err).__name__}"
        raise UnavailableError(message, operation=f"{forge.kind}:{method}", code=type(err).__name__) from err
    except ValueError:
        return status, None
    finally:
        connection.close()
