"""`costguard bundle` from an installed wheel, outside any checkout: the bytes that a checkout gives."""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from pathlib import Path

from tests.bundles.calling import ROOT, base_of
from tests.bundles.reporting import UnexpectedError, done, say

from costguard.cli.operate.bundle import ordered
from costguard.cli.operate.bundling.build import build
from costguard.cli.operate.bundling.recipes import PACKED, Material
from costguard.cli.operate.distribution import ci_requirements

_PACKED = {"functions": "functions", "infra/requirements": "requirements"}
_OF_A_CHECKOUT = ("pyproject.toml", "README.md", "CHANGELOG.md", "shared", "functions", "infra/requirements")
_FUNCTION = "idle_gpu"


def from_a_wheel(wheels: Path, aside: Path) -> None:
    """Make a wheel of the project, install it by itself, and compare a bundle for Lambda that it makes.

    `wheels` are Lambda's. The packages that the command line needs come from the package index.
    """
    checkout, installed = aside / "checkout", aside / "installed"
    for name in _OF_A_CHECKOUT:
        _copied(ROOT / name, checkout / name)
    done([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", installed, checkout])
    (wheel,) = installed.glob("*.whl")
    _carries(wheel, checkout)
    done([base_of(sys.executable), "-m", "venv", installed / "venv"])
    locked = installed / "requirements.txt"  # as the CI of a policy repository installs it
    locked.write_text(ci_requirements(checkout / "infra/requirements", str(wheel)), encoding="utf-8")
    pip = (installed / "venv/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    done([*pip, "--require-hashes", "--only-binary", ":all:", "--find-links", installed, "--requirement", locked])
    elsewhere = installed / "elsewhere"
    elsewhere.mkdir()
    told = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COSTGUARD_"))}
    command = (installed / "venv/bin/costguard", "bundle", "lambda", _FUNCTION, "--out", "made", "--wheels", wheels)
    done(command, folder=elsewhere, environ=told)
    material = Material(checkout / "shared/costguard", checkout / "functions", checkout / "infra/requirements")
    order = ordered("lambda", _FUNCTION, wheels=str(wheels))
    build(type(order)(material, order.recipes, order.interpreter, order.wheels), installed / "of the checkout")
    _same(installed / "of the checkout/lambda", elsewhere / "made/lambda")
    say(f"installed from a wheel: the same bytes as from the checkout ({_FUNCTION} for Lambda, its bill and sums)")


def _copied(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copyfile(source, target)


def _carries(wheel: Path, checkout: Path) -> None:
    """Every function and every lock of the checkout, unchanged."""
    with zipfile.ZipFile(wheel) as archive:
        for here, there in _PACKED.items():
            for path in sorted((checkout / here).rglob("*")):
                name = f"costguard/{PACKED}/{there}/{path.relative_to(checkout / here).as_posix()}"
                if path.is_file() and archive.read(name) != path.read_bytes():
                    raise UnexpectedError(wheel.name, "has another", name)


def _same(one: Path, two: Path) -> None:
    files = {path.name: path.read_bytes() for path in one.iterdir()}
    others = {path.name: path.read_bytes() for path in two.iterdir()}
    differing = sorted(name for name in files.keys() | others.keys() if files.get(name) != others.get(name))
    if differing:
        raise UnexpectedError("an installed package makes another", *differing)
