"""An exception that somebody asks for: what is wrong with it, and the file of exceptions with it at the end. Pure.

The file is text that people wrote: everything in it stays as it is, and what is added says exactly what was asked for,
whatever letters are in it. Both are proved by reading the new file again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from costguard.domain.errors import InvalidInputError
from costguard.policy.model.policy import LONGEST_EXCEPTION
from costguard.policy.syntax.problems import invalid
from costguard.policy.syntax.yaml12 import read_yaml
from costguard.policy.syntax.yaml_nodes import Sequence as ListNode
from costguard.policy.syntax.yaml_nodes import plain

FILE = "exceptions.yaml"
_LONGEST_REASON = 300
_EMPTY_LIST = re.compile(r"^\[\s*\][ \t]*(#.*)?$", re.MULTILINE)
_NOT_IN_A_BRANCH = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class ExceptionRequest:
    """Who asks that one resource is left alone until when, and why; `approver` agrees to it, and is somebody else."""

    resource: str
    owner: str
    reason: str
    approver: str
    expires: datetime
    by: str

    @property
    def entry(self) -> Mapping[str, str]:
        """What stands in the file."""
        moment = self.expires.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        said = {"resource": self.resource, "owner": self.owner, "reason": self.reason, "approver": self.approver}
        return {**said, "expires": moment}

    @property
    def branch(self) -> str:
        """What its branch is called: the same request has the same name."""
        named = _NOT_IN_A_BRANCH.sub("-", self.resource.rpartition(":")[2]).strip(".-")[:60]
        return f"costguard/exception-{named or 'resource'}-{self.expires.astimezone(timezone.utc):%Y%m%d}"

    @property
    def title(self) -> str:
        """In one line, for the commit and the pull request."""
        return f"Except {self.resource} until {self.expires.astimezone(timezone.utc):%Y-%m-%d}"


def check_request(asked: ExceptionRequest, now: datetime, longest: timedelta = LONGEST_EXCEPTION) -> None:
    """That it is one that may be asked for; `longest` as the policy has it.

    Raises:
        InvalidInputError: it may not; says which part, and what is expected.
    """
    texts = {"resource": asked.resource, "owner": asked.owner, "reason": asked.reason, "approver": asked.approver}
    for name, text in texts.items():
        if not text.strip():
            message = f"the {name} is empty: say {'why' if name == 'reason' else 'who or what'} it is"
            raise InvalidInputError(message)
        if not text.isprintable():
            message = f"the {name} holds letters that cannot be seen, such as a line break: write one line"
            raise InvalidInputError(message)
        if len(text) > _LONGEST_REASON:
            message = f"the {name} is longer than {_LONGEST_REASON} letters"
            raise InvalidInputError(message)
    if asked.approver.strip().casefold() == asked.by.strip().casefold():
        message = f"{asked.by} asks for it, so that somebody else has to agree: name another approver"
        raise InvalidInputError(message)
    if asked.expires <= now:
        message = f"{asked.expires:%Y-%m-%d %H:%M} UTC is past: an exception ends later than now"
        raise InvalidInputError(message)
    if asked.expires > now + longest:
        last = (now + longest).strftime("%Y-%m-%d")
        message = f"an exception lasts {longest.days} days at most, until {last}; what lasts longer belongs into a rule"
        raise InvalidInputError(message)


def with_exception(text: str | None, asked: ExceptionRequest, *, path: str = FILE) -> str:
    """The file with one more entry at its end; None is a file that is not there.

    Raises:
        InvalidInputError: it is no list, is written in brackets, or has an entry for this resource that ends as late.
    """
    if text is None or not _says_something(text):
        before: list[Any] = []
        after = f"{_with_break(text or '')}{_written(asked, '')}"
    else:
        document = read_yaml(path, text)
        if document.root is None or document.problems:
            raise invalid(document.problems)
        root, now = document.root, document.text
        if not isinstance(root, ListNode):
            message = f"{path}: not a list of exceptions; `costguard policy check` says what is wrong"
            raise InvalidInputError(message)
        before = list(plain(root))
        _refuse_known(before, asked, path)
        if not before:
            after = _EMPTY_LIST.sub("", now, count=1)
            after = f"{_with_break(after.rstrip(chr(10)))}{_written(asked, '')}"
        elif now.split("\n")[root.mark.line - 1][root.mark.column - 1] == "[":
            message = f"{path}: its list is written in brackets: write each exception as a line that begins with -"
            raise InvalidInputError(message)
        else:
            after = f"{_with_break(now)}{_written(asked, ' ' * (root.mark.column - 1))}"
    read = read_yaml(path, after)
    said = plain(read.root) if read.root is not None else None
    if read.problems or said is None or list(said) != [*before, dict(asked.entry)]:
        message = f"{path}: cannot be added to without changing what it says; write the entry by hand"
        raise InvalidInputError(message)
    return after


def _says_something(text: str) -> bool:
    return any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines())


def _with_break(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _written(asked: ExceptionRequest, margin: str) -> str:
    """Each value in quotes, as JSON writes text: YAML reads it back letter by letter."""
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in asked.entry.items()]
    return "".join(f"{margin}{'- ' if at == 0 else '  '}{line}\n" for at, line in enumerate(lines))


def _refuse_known(before: list[Any], asked: ExceptionRequest, path: str) -> None:
    for each in before:
        if isinstance(each, dict) and each.get("resource") == asked.resource:
            try:
                until = datetime.fromisoformat(str(each.get("expires", "")).replace("Z", "+00:00"))
            except ValueError:
                continue
            if until.tzinfo is not None and until >= asked.expires:
                message = f"{path}: {asked.resource} is excepted already, until {each['expires']}"
                raise InvalidInputError(message)
