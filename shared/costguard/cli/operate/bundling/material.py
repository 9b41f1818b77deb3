"""Where functions and locks are: packed into the installed package, or in the checkout that it is run from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import costguard
from costguard.cli.operate.bundling.locks import Pin, merged, read_lock
from costguard.cli.operate.bundling.recipes import HostRecipe
from costguard.domain.errors import InvalidInputError

PACKED = "_deploy"
"""The folder of the package that a wheel carries functions/ and infra/requirements/ in: see pyproject.toml."""


@dataclass(frozen=True, slots=True)
class Material:
    """What a bundle is made of, beside packages from an index."""

    package: Path
    functions: Path
    requirements: Path

    def names(self) -> tuple[str, ...]:
        """Every function there is."""
        return tuple(sorted(path.parent.name for path in self.functions.glob("*/handler.py")))

    def files_of(self, function: str) -> Mapping[str, Path]:
        """The function's own files by their names in the zip.

        Raises:
            InvalidInputError: there is no such function.
        """
        if function not in self.names():
            message = f"there is no function {function!r}; there is {', '.join(self.names())}"
            raise InvalidInputError(message)
        return {name: self.functions / function / name for name in ("function.yaml", "handler.py")}

    def lock(self, host: HostRecipe, *, charts: bool) -> Mapping[str, Pin]:
        """Every package that may ship to `host`.

        Raises:
            InvalidInputError: a lock is missing or cannot be read.
        """
        plain, with_charts = (self.requirements / name for name in host.locks)
        pins = _read(plain)
        return merged(pins, _read(with_charts), with_charts.name) if charts else pins


def find_material(package: Path | None = None) -> Material:
    """The wheel's own, else the checkout's.

    Raises:
        InvalidInputError: neither is there.
    """
    package = package or Path(costguard.__file__).parent
    packed, checkout = package / PACKED, package.parents[1]
    places = (
        (packed / "functions", packed / "requirements"),
        (checkout / "functions", checkout / "infra" / "requirements"),
    )
    for functions, requirements in places:
        if functions.is_dir() and requirements.is_dir():
            return Material(package, functions, requirements)
    message = f"{package}: neither this installation nor a checkout around it has functions/ and infra/requirements/"
    raise InvalidInputError(message)


def _read(path: Path) -> Mapping[str, Pin]:
    try:
        return read_lock(path.read_text("utf-8"), path.name)
    except OSError as err:
        message = f"{path}: cannot be read: {err.strerror}"
        raise InvalidInputError(message) from err
