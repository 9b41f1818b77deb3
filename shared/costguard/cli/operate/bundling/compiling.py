"""Finding an interpreter of the host's version, and compiling with it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from costguard.cli.operate.bundling.locks import FetchError
from costguard.domain.errors import InvalidInputError

_TELL = "import platform, sys; print(sys.implementation.name, platform.python_version())"
_CLEAN = {"PYTHONHASHSEED": "0"}  # the order of sets in constants
_SCRIPT = Path(__file__).with_name("compile_tree.py")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A CPython at hand; `version` with its patch level."""

    path: str
    version: str


def named_interpreter(path: str, python: str) -> Interpreter:
    """The interpreter that was asked for by its path.

    Raises:
        InvalidInputError: it does not start, or is of another version.
    """
    version = _version(path)
    if version is None or not _is(version, python):
        found = "no CPython that starts" if version is None else f"Python {version}"
        message = f"--interpreter {path}: {found}; expected Python {python}"
        raise InvalidInputError(message)
    return Interpreter(path, version)


def find_interpreter(python: str) -> Interpreter | None:
    """A CPython of that version: this one, one on the path, pyenv's, or uv's."""
    for path in _candidates(python):
        version = _version(path)
        if version is not None and _is(version, python):
            return Interpreter(path, version)
    return None


def _candidates(python: str) -> Iterator[str]:
    if sys.version_info[:2] == tuple(map(int, python.split("."))):
        yield sys.executable
    on_path = shutil.which(f"python{python}")
    if on_path is not None:
        yield on_path
    kept = Path.home() / ".pyenv" / "versions"
    yield from sorted(map(str, kept.glob(f"{python}.*/bin/python{python}")), reverse=True)
    uv = shutil.which("uv")
    if uv is not None:
        command = [uv, "python", "find", "--no-python-downloads", python]
        found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own arguments
        if found.returncode == 0:
            yield found.stdout.strip()


def _version(path: str) -> str | None:
    """What it says it is; None where it does not start, as the stubs of version managers, or is no CPython."""
    try:
        said = subprocess.run(  # noqa: S603 - the interpreter the user has or named
            [path, "-I", "-S", "-c", _TELL], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    name, _, version = said.stdout.strip().partition(" ")
    return version if said.returncode == 0 and name == "cpython" else None


def _is(version: str, python: str) -> bool:
    return version.split(".")[:2] == python.split(".")


def compile_tree(
    interpreter: Interpreter, root: Path, files: Iterable[str], bare: Collection[str], prefix: str
) -> Mapping[str, str]:
    """Compile `files` below `root`, never to be checked against their sources again; source → compiled, below `root`.

    Those in `bare` lose their docstrings. Files in another Python's syntax, which some packages ship and never import
    there, stay as they are.

    Raises:
        FetchError: the interpreter failed.
    """
    asked = json.dumps({"root": root.as_posix(), "prefix": prefix, "files": sorted(files), "bare": sorted(bare)})
    done = subprocess.run(  # noqa: S603 - the interpreter the user has or named
        [interpreter.path, "-S", "-s", "-W", "ignore", str(_SCRIPT)],
        input=asked,
        capture_output=True,
        text=True,
        check=False,
        env=_CLEAN,
    )
    if done.returncode:
        message = f"{interpreter.path} could not compile: {done.stderr.strip()[-500:]}"
        raise FetchError(message)
    made: Mapping[str, str] = json.loads(done.stdout)
    return made
