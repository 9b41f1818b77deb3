"""A small project to be bundled: two modules, two functions, four packages as wheels, and a lock of them."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from costguard.cli.operate.bundling.build import Order
from costguard.cli.operate.bundling.compiling import Interpreter, find_interpreter
from costguard.cli.operate.bundling.recipes import Arch, LedgerKind, Material, Recipe, host_recipe

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
HANDLER = (
    '"""A function."""\n\nfrom costguard.faas.handler import build_handler\n\nhandler = build_handler("idle_gpu")\n'
)
MODULES = {
    "__init__.py": '"""The package."""\n',
    "faas/__init__.py": "",
    "faas/container.py": "",
    "faas/handler.py": '"""The edge."""\n\n\ndef build_handler(name):\n    """Make one."""\n'
    "    from costguard.late import found\n\n    return found\n",
    "late.py": 'found = {"b", "a", "c"}\n\n\ndef known(x):\n    return x in {"one", "two", "three", "four", "five"}\n',
    "unused.py": "",
}
ALPHA = {
    "alpha/__init__.py": '"""Alpha."""\n\n\ndef one():\n    """One."""\n    assert True\n    return 1\n',
    "alpha/other_syntax.py": "print 'of another Python'\n",
    "alpha/__init__.pyi": "",
    "alpha/tests/test_it.py": "",
    "alpha-1.0.dist-info/METADATA": "Name: alpha\nVersion: 1.0\nSummary: First\nLicense-Expression: MIT\n\nLong text\n",
    "alpha-1.0.dist-info/RECORD": "",
    "alpha-1.0.dist-info/licenses/LICENSE": "MIT",
}
PACKAGES: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "alpha": ("1.0", "-r infra/requirements/function.in", ALPHA),
    "beta-two": (
        "2.0",
        "alpha",
        {"beta.py": "", "beta_two-2.0.dist-info/METADATA": "Name: beta-two\nClassifier: License :: OSI :: ISC\n"},
    ),
    "sqlalchemy": ("2.0.1", "-r infra/requirements/function.in", {"sqlalchemy/__init__.py": ""}),
    "greenlet": ("3.0", "sqlalchemy", {"greenlet/__init__.py": ""}),
}


@dataclass(frozen=True)
class Kit:
    """Where it is."""

    root: Path
    wheels: Path

    def material(self) -> Material:
        return Material(self.root / "costguard", self.root / "functions", self.root / "requirements")

    def order(
        self,
        *functions: str,
        host: str = "lambda",
        ledger: LedgerKind = LedgerKind.DYNAMODB,
        compiled: bool = True,
        arch: Arch = Arch.X86_64,
    ) -> Order:
        interpreter: Interpreter | None = find_interpreter(PYTHON) if compiled else None
        recipes = [Recipe(host_recipe(host), name, PYTHON, arch, ledger) for name in functions or ("idle_gpu",)]
        return Order(self.material(), recipes, interpreter, self.wheels)


def make_kit(root: Path) -> Kit:
    """Write it all below `root`."""
    wheels = root / "wheels"
    wheels.mkdir(parents=True)
    lock = "".join(_pinned(wheels, name, *about) for name, about in PACKAGES.items())
    files = {f"costguard/{name}": text for name, text in MODULES.items()}
    for function in ("idle_gpu", "digest"):
        files[f"functions/{function}/handler.py"] = HANDLER
        files[f"functions/{function}/function.yaml"] = "timeout_seconds: 60\n"
    files |= {f"requirements/{name}.txt": lock for name in ("lambda", "charts-lambda", "fc", "charts-fc")}
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return Kit(root, wheels)


def write_wheel(folder: Path, file_name: str, files: Mapping[str, str]) -> Path:
    """A wheel, the same bytes for the same files."""
    path = folder / file_name
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return path


def _pinned(wheels: Path, name: str, version: str, asked_by: str, files: Mapping[str, str]) -> str:
    path = write_wheel(wheels, f"{name.replace('-', '_')}-{version}-py3-none-any.whl", files)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{name}=={version} \\\n    --hash=sha256:{digest}\n    # via {asked_by}\n"
