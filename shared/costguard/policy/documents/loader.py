"""From the text of a policy to the policy: every file read, every mistake told at once. Pure.

pydantic and ruamel.yaml are imported here and below only, so what never loads a policy never pays for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError

from costguard.policy.budget.checks import budgets_checked
from costguard.policy.documents.build import build_policy, slow_waits
from costguard.policy.documents.crosschecks import FileKind, PolicyFile, cross_checked
from costguard.policy.documents.policy import ExceptionDocument, MainDocument, OwnerDocument, RulesDocument
from costguard.policy.model.policy import Policy
from costguard.policy.syntax.explain import explained
from costguard.policy.syntax.problems import MAX_TOTAL_BYTES, Mark, Problem, did_you_mean, in_order, invalid, printable
from costguard.policy.syntax.yaml12 import read_yaml
from costguard.policy.syntax.yaml_nodes import plain

MAX_FILES = 1000
_SUFFIXES = {".yaml", ".yml"}
_NAMED = {"costguard": FileKind.MAIN, "owners": FileKind.OWNERS, "exceptions": FileKind.EXCEPTIONS}


class PolicyFiles(Protocol):
    """What a policy source hands over (`ports.PolicyText`): path → text, and where the files are from."""

    @property
    def files(self) -> Mapping[str, str]:
        """Every file by its path relative to the origin."""

    @property
    def origin(self) -> str:
        """The folder, file or bucket they were read from; only for messages."""


def load_policy(text: PolicyFiles) -> Policy:
    """The compiled policy.

    Raises:
        InvalidInputError: tells every mistake with file, line and column; there is no partial policy.
    """
    policy, problems = check_policy(text)
    if policy is None:
        raise invalid(problems)
    return policy


def check_policy(text: PolicyFiles) -> tuple[Policy | None, tuple[Problem, ...]]:
    """The policy, or None and every mistake, sorted by place."""
    files, found = _sorted_out(text)
    problems = list(found)
    models: list[tuple[PolicyFile, Any]] = []
    for file in files:
        problems += file.document.problems
        if file.document.root is None:
            continue
        adapter = _adapter(file.kind)
        try:
            models.append((file, adapter.validate_python(plain(file.document.root), strict=True)))
        except ValidationError as err:
            damaged = file.document.damaged
            problems += [each for each in explained(file.document, err, _MODELS[file.kind]) if each.mark not in damaged]
    problems += cross_checked(files)
    problems += budgets_checked(models)
    if problems:
        return None, in_order(problems)
    slow = tuple(slow_waits(models))
    if slow:
        return None, in_order(slow)
    return build_policy(models), ()


_MODELS: Mapping[FileKind, Any] = {
    FileKind.MAIN: MainDocument,
    FileKind.RULES: RulesDocument,
    FileKind.OWNERS: tuple[OwnerDocument, ...],
    FileKind.EXCEPTIONS: tuple[ExceptionDocument, ...],
}


def _adapter(kind: FileKind) -> TypeAdapter[Any]:
    return TypeAdapter(_MODELS[kind])


def _sorted_out(text: PolicyFiles) -> tuple[Sequence[PolicyFile], Sequence[Problem]]:
    """Which file is what; a file nobody would read is a mistake, for it may hold an exception."""
    if len(text.files) > MAX_FILES:
        message = f"{len(text.files)} files are more than a policy has; at most {MAX_FILES}"
        return (), (Problem(text.origin, Mark(), "", message, "point at the folder of the policy itself"),)
    size = sum(len(each.encode("utf-8", "surrogatepass")) for each in text.files.values())
    if size > MAX_TOTAL_BYTES:
        message = f"the files of the policy are longer than {MAX_TOTAL_BYTES // 1024} KiB together"
        return (), (Problem(text.origin, Mark(), "", message, "point at the folder of the policy itself"),)
    files: list[PolicyFile] = []
    problems: list[Problem] = []
    seen: dict[FileKind, str] = {}
    for path in sorted(text.files):
        shown = _shown(path, text.origin)
        kind = _kind(path, alone=len(text.files) == 1)
        if kind is None:
            fix = did_you_mean(path, [f"{name}.yaml" for name in _NAMED])
            problems.append(
                Problem(shown, Mark(), "", "no file of a policy is called so", f"{fix}; rules go under policies/")
            )
            continue
        if kind is not FileKind.RULES and kind in seen:
            problems.append(Problem(shown, Mark(), "", f"{seen[kind]} holds the same", "keep one of the two files"))
            continue
        seen[kind] = path
        files.append(PolicyFile(kind, read_yaml(shown, text.files[path])))
    if FileKind.MAIN not in seen:
        fix = "add costguard.yaml with at least version: 1 and mode: observe"
        problems.append(Problem(text.origin or "costguard.yaml", Mark(), "", "there is no costguard.yaml", fix))
    return files, problems


def _kind(path: str, *, alone: bool) -> FileKind | None:
    name = PurePosixPath(path)
    if name.suffix not in _SUFFIXES and not alone:
        return None
    if name.parts[:1] == ("policies",) and len(name.parts) > 1:
        return FileKind.RULES
    known = _NAMED.get(name.stem) if len(name.parts) == 1 or alone else None
    return FileKind.MAIN if known is None and alone else known


def _shown(path: str, origin: str) -> str:
    """The path a reader can open: below the origin, or the origin itself when it is the file."""
    if not origin or origin == path or origin.endswith(f"/{path}"):
        return printable(origin or path)
    return printable(f"{origin.rstrip('/')}/{path}")
