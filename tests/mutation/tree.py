"""What is mutated, which tests judge it, and the private copy both are put into."""

from __future__ import annotations

import ast
import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
PACKAGES = ("cases", "planning")
# Savings that came true and rules in the shadow are only told: no call rests on them.
LEFT_OUT = frozenset({"planning/observed.py", "planning/realised.py", "planning/shadows.py"})
TESTS = ("test_cases*.py", "test_planning*.py", "test_budget_steps*.py", "test_cloud_protection.py")
BUILDERS = "tests/builders.py"

# `src` is where mutmut expects a package; the rest keeps one mutant's run short and always the same:
# no plugin that writes or spreads, examples drawn alike every time, and no hunt for the smallest one.
_PYPROJECT = """\
[tool.pytest.ini_options]
addopts = ["--import-mode=importlib", "-p", "no:cacheprovider", "-p", "no:xdist"]
pythonpath = ["."]
filterwarnings = ["error"]

[tool.mutmut]
source_paths = ["src"]
only_mutate = ONLY
pytest_add_cli_args_test_selection = ["tests/unit"]
use_git_change_detection = false
track_dependencies = false
"""
_CONFTEST = """\
from hypothesis import Phase, settings

settings.register_profile(
    "mutation",
    derandomize=True,
    database=None,
    deadline=None,  # a slow moment of the machine kills no mutant
    phases=[Phase.explicit, Phase.generate],
    max_examples=25,
)
settings.load_profile("mutation")
"""


def sources() -> Mapping[str, Path]:
    """The mutated modules, by their name below `costguard`: `cases/advance.py`."""
    package = ROOT / "shared/costguard"
    return {
        path.relative_to(package).as_posix(): path
        for name in PACKAGES
        for path in sorted((package / name).glob("*.py"))
        if f"{name}/{path.name}" not in LEFT_OUT
    }


def judges() -> Mapping[str, Path]:
    """The tests that judge the mutants, and the builders they share, by their place in the repository."""
    found = sorted({path for pattern in TESTS for path in (ROOT / "tests/unit").glob(pattern)})
    return {path.relative_to(ROOT).as_posix(): path for path in [*found, ROOT / BUILDERS]}


def private_copy(folder: Path, modules: Iterable[str]) -> None:
    """The whole package and the judging tests, laid out in `folder` as mutmut wants them to mutate `modules`."""
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(ROOT / "shared/costguard", folder / "src/costguard", ignore=ignored)
    (folder / "tests/unit").mkdir(parents=True)
    for name, path in judges().items():
        shutil.copy(path, folder / name)
    only = [f"src/costguard/{module}" for module in modules]
    (folder / "pyproject.toml").write_text(_PYPROJECT.replace("ONLY", json.dumps(only)), "utf-8")
    (folder / "tests/conftest.py").write_text(_CONFTEST, "utf-8")


def digests(files: Mapping[str, Path]) -> dict[str, str]:
    """A short hash of what each file does: comments, docstrings and layout do not change it."""
    return {name: _digest(path) for name, path in files.items()}


def _digest(path: Path) -> str:
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return hashlib.sha256(repr(_shape(tree)).encode()).hexdigest()[:16]


def _shape(node: object) -> object:
    """A tree as tuples, alike in every version of Python: what is empty is left out."""
    if isinstance(node, list):
        return [_shape(each) for each in node]
    if isinstance(node, ast.AST):
        said = [(name, _shape(value)) for name, value in ast.iter_fields(node) if value not in (None, [])]
        return (type(node).__name__, *said)
    return node
