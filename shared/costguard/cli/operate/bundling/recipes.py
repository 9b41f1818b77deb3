"""What each host and function takes: Pythons, platforms, packages, limits; and where functions and locks are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType

import costguard
from costguard.cli.operate.bundling.locks import Pin, merged, read_lock
from costguard.cli.operate.bundling.trimming import SPARED
from costguard.domain.errors import InvalidInputError

MEGABYTE = 1_000_000


class LedgerKind(str, Enum):
    """Which ledgers a bundle can open."""

    DYNAMODB = "dynamodb"
    SQL = "sql"


class Arch(str, Enum):
    """The processor, in the words of wheels."""

    X86_64 = "x86_64"
    ARM64 = "arm64"


@dataclass(frozen=True, slots=True)
class HostRecipe:
    """One host. `pythons` are its managed runtimes, the one to take first; other versions are for container images.

    `glibc` is the newest its libraries may ask for, `folder` where the host unpacks the zip.
    """

    name: str
    pythons: tuple[str, ...]
    arches: tuple[Arch, ...]
    glibc: int
    ledger: LedgerKind
    folder: str
    locks: tuple[str, str]


HOSTS: Mapping[str, HostRecipe] = MappingProxyType(
    {
        host.name: host
        for host in (
            HostRecipe(
                "lambda",
                ("3.13", "3.12"),
                (Arch.X86_64, Arch.ARM64),
                28,
                LedgerKind.DYNAMODB,
                "/var/task",
                ("lambda.txt", "charts-lambda.txt"),
            ),
            HostRecipe(
                "fc", ("3.10", "3.12"), (Arch.X86_64,), 28, LedgerKind.SQL, "/code", ("fc.txt", "charts-fc.txt")
            ),
            HostRecipe(
                "scf", ("3.10",), (Arch.X86_64,), 17, LedgerKind.SQL, "/var/user", ("scf.txt", "charts-scf.txt")
            ),
        )
    }
)
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
"""What any bundle can be made for: managed runtimes, and images beyond them."""

WITH_CHARTS = frozenset({"digest"})
WITHOUT_CLOUDS = frozenset({"slack_actions"})
"""Functions that ask no cloud: they read a ledger, a policy, and talk to Slack."""

SQL_PACKAGES = frozenset({"sqlalchemy", "psycopg", "psycopg-binary", "greenlet"})
CLOUD_PACKAGES = frozenset({"aliyun-python-sdk-core", "tencentcloud-sdk-python-common"})
"""SDKs that only reading or changing their own cloud takes; boto3 is the DynamoDB ledger's and the bucket's too."""

_ZIPPED_LIMITS = {LedgerKind.DYNAMODB: 12 * MEGABYTE, LedgerKind.SQL: 18 * MEGABYTE}
_ZIPPED_LIMIT_WITH_CHARTS = 50 * MEGABYTE  # what Lambda and SCF take in a direct upload
UNZIPPED_LIMIT = 250 * MEGABYTE  # Lambda; FC and SCF take 500


@dataclass(frozen=True, slots=True)
class Recipe:
    """One bundle that is asked for."""

    host: HostRecipe
    function: str
    python: str
    arch: Arch
    ledger: LedgerKind

    @property
    def with_charts(self) -> bool:
        """Whether it draws."""
        return self.function in WITH_CHARTS

    @property
    def without(self) -> frozenset[str]:
        """Packages of the lock that this function has no use for."""
        sql = frozenset() if self.ledger is LedgerKind.SQL else SQL_PACKAGES
        return SPARED | sql | (CLOUD_PACKAGES if self.function in WITHOUT_CLOUDS else frozenset())

    @property
    def zipped_limit(self) -> int:
        """Bytes the zip may have."""
        return _ZIPPED_LIMIT_WITH_CHARTS if self.with_charts else _ZIPPED_LIMITS[self.ledger]


def host_recipe(name: str) -> HostRecipe:
    """The host of that name.

    Raises:
        InvalidInputError: there is none.
    """
    found = HOSTS.get(name)
    if found is None:
        message = f"there is no host {name!r}; there is {', '.join(HOSTS)}"
        raise InvalidInputError(message)
    return found


def check_python(host: HostRecipe, python: str, arch: Arch) -> str:
    """The Python to build for, the host's first where none was named.

    Raises:
        InvalidInputError: no bundle can be made for it there.
    """
    if arch not in host.arches:
        message = f"{host.name} runs on {' or '.join(one.value for one in host.arches)}, not on {arch.value}"
        raise InvalidInputError(message)
    if python and python not in PYTHONS:
        message = f"--python {python!r}: expected one of {', '.join(PYTHONS)}"
        raise InvalidInputError(message)
    return python or host.pythons[0]


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
