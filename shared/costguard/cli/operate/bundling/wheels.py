"""Wheels: which file of a release suits a host, fetched by pip with hashes, or taken from a folder."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from costguard.cli.operate.bundling.locks import FetchError, Pin, RefusedBundleError, canonical, requirements_text
from costguard.cli.operate.bundling.recipes import Arch
from costguard.domain.errors import InvalidInputError

_OLDEST_GLIBC = 5  # manylinux1
_NAMED = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
_MACHINE = {Arch.X86_64: "x86_64", Arch.ARM64: "aarch64"}
_ADDRESS = re.compile(r"\b\w+://\S+")
_TOLD_LINES = 12


@dataclass(frozen=True, slots=True)
class WheelTarget:
    """The Python and platform that wheels have to suit."""

    python: str
    glibc: int
    arch: Arch

    @property
    def platforms(self) -> tuple[str, ...]:
        """Platform tags, the newest library first."""
        machine = _MACHINE[self.arch]
        numbers = range(self.glibc, _OLDEST_GLIBC - 1, -1)
        named = [name for n in numbers for name in (f"manylinux_2_{n}", _NAMED.get(n)) if name]
        return (*(f"{name}_{machine}" for name in named), f"linux_{machine}")

    def rank(self, file_name: str) -> int | None:
        """How well a wheel suits, the least best; None where it does not."""
        parts = file_name.removesuffix(".whl").split("-")
        pythons, abis, platforms = (part.split(".") for part in parts[-3:])
        minor = int(self.python.partition(".")[2])
        native = "any" not in platforms
        if native and not set(platforms) & set(self.platforms):
            return None
        exact = f"cp3{minor}"
        if exact in pythons and set(abis) & {exact, "none"}:
            return 0
        older = any(re.fullmatch(r"cp3\d+", one) and int(one[3:]) <= minor for one in pythons)
        if older and "abi3" in abis:
            return 1
        plain = {"py3", *(f"py3{n}" for n in range(minor + 1))}
        return (2 if native else 3) if "none" in abis and plain & set(pythons) else None


@dataclass(frozen=True, slots=True)
class Wheel:
    """One wheel whose hash is a pinned one."""

    pin: Pin
    path: Path
    sha256: str


def in_folder(folder: Path, pins: Iterable[Pin], wanted: WheelTarget) -> Sequence[Wheel]:
    """The best wheel of every pin that the folder has.

    Raises:
        InvalidInputError: none of a package's version suits.
        RefusedBundleError: its hash is not pinned.
    """
    files: dict[tuple[str, str], list[Path]] = {}
    for path in sorted(folder.glob("*.whl")):
        name, version = path.name.split("-")[:2]
        files.setdefault((canonical(name), version), []).append(path)
    return [_best(files.get((pin.name, pin.version), []), pin, wanted, folder) for pin in pins]


def _best(paths: Sequence[Path], pin: Pin, wanted: WheelTarget, folder: Path) -> Wheel:
    ranked = sorted((rank, path) for path in paths if (rank := wanted.rank(path.name)) is not None)
    if not ranked:
        message = f"{folder}: no wheel of {pin.name} {pin.version} for Python {wanted.python} on {wanted.platforms[0]}"
        raise InvalidInputError(message)
    hashed = [(hashlib.sha256(path.read_bytes()).hexdigest(), path) for _, path in ranked]
    for digest, path in hashed:
        if digest in pin.hashes:
            return Wheel(pin, path, digest)
    digest, path = hashed[0]
    message = f"{path.name}: sha256 {digest} is not among the hashes pinned for {pin.name} {pin.version}"
    raise RefusedBundleError(message)


def fetch(pins: Sequence[Pin], wanted: WheelTarget, into: Path) -> Sequence[Wheel]:
    """Download what is pinned, and nothing else; every hash is checked by pip and again here.

    Raises:
        FetchError: no pip, no network, or an index without such a file.
        RefusedBundleError: a hash is not pinned.
    """
    asked = into / "requirements.txt"
    asked.write_text(requirements_text(pins), "utf-8")
    minor = wanted.python.replace(".", "")
    command = [
        *_pip(),
        *("download", "--quiet", "--no-input", "--disable-pip-version-check", "--require-hashes", "--no-deps"),
        *("--only-binary", ":all:", "--implementation", "cp", "--python-version", wanted.python),
        *(word for abi in (f"cp{minor}", "abi3", "none") for word in ("--abi", abi)),
        *(word for platform in wanted.platforms for word in ("--platform", platform)),
        *("--dest", str(into), "--requirement", str(asked)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - pip, our own arguments
    if done.returncode:
        told = _told(done.stderr)
        if "DO NOT MATCH THE HASHES" in done.stderr.upper():
            message = f"a package is not the one that was pinned:\n{told}"
            raise RefusedBundleError(message)
        message = f"packages could not be fetched (or give their folder with --wheels):\n{told}"
        raise FetchError(message)
    return in_folder(into, pins, wanted)


def _pip() -> Sequence[str]:
    """This interpreter's pip, else one that uv brings."""
    if importlib.util.find_spec("pip") is not None:
        return (sys.executable, "-m", "pip")
    uv = shutil.which("uv")
    if uv is None:
        message = "packages are fetched by pip or uv, and neither is here: install one, or give a folder with --wheels"
        raise FetchError(message)
    return (uv, "tool", "run", "pip")


def _told(stderr: str) -> str:
    """The end of what pip said, without addresses: they may hold a password."""
    lines = [line for line in stderr.splitlines() if line.strip() and not line.startswith("WARNING: Location")]
    return "\n".join(_ADDRESS.sub("…", line) for line in lines[-_TOLD_LINES:])
