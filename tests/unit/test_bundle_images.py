"""Recipes of container images, held against what can be known without building one."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
import typer

from costguard.cli import main as program
from costguard.cli.operate.bundling.build import SUMS
from costguard.cli.operate.bundling.recipes import HOSTS, PYTHONS, find_material

FOLDER = Path(__file__).parents[2] / "infra/images"
IMAGES = sorted(FOLDER.glob("*.Dockerfile"))
WRITTEN = {f"{host}/{name}" for host in HOSTS for name in (SUMS, "${FUNCTION}.zip", "${FUNCTION}.cdx.json")}


def instructions(path: Path) -> list[tuple[str, str]]:
    lines = [line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


def test_every_host_has_an_image() -> None:
    assert {path.stem for path in IMAGES} == set(HOSTS)


@pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.stem)
def test_an_image_copies_only_what_a_bundle_has(path: Path) -> None:
    sources = []
    for kind, rest in instructions(path):
        if kind == "COPY":
            *copied, _ = [word for word in rest.split() if not word.startswith("--from=")]
            sources += copied if "--from=" not in rest else []
        assert kind != "ADD", "fetches and unpacks whatever it is given"
    assert sources == [f"{path.stem}/{SUMS}", f"{path.stem}/${{FUNCTION}}.zip"]
    assert set(sources) <= WRITTEN


@pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.stem)
def test_an_image_stands_on_a_python_that_its_bundle_is_built_for(path: Path) -> None:
    """The base is named with its version, and is an argument, so that a digest can be given."""
    told = instructions(path)
    base = next(rest for kind, rest in told if kind == "ARG" and rest.startswith("BASE="))
    named = re.fullmatch(r"BASE=[a-z0-9./-]*python:(3\.\d+)[a-z-]*", base)
    assert named is not None
    assert named[1] in PYTHONS
    assert all(rest.split()[0] == "${BASE}" for kind, rest in told if kind == "FROM")
    command = re.search(r"^#   costguard (bundle .*)$", path.read_text("utf-8"), re.MULTILINE)
    assert command is not None
    words = shlex.split(command[1])
    options = typer.main.get_command(program.app).commands["bundle"].make_context("bundle", words[1:]).params  # type: ignore[attr-defined]
    assert options["host"] == path.stem
    assert (options["python"] or HOSTS[path.stem].pythons[0]) == named[1]


@pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.stem)
def test_an_image_starts_what_there_is_and_not_as_root(path: Path) -> None:
    told = dict(instructions(path))
    default = next(rest for kind, rest in instructions(path) if kind == "ARG" and rest.startswith("FUNCTION="))
    assert default.removeprefix("FUNCTION=") in find_material().names()
    if path.stem == "lambda":
        assert told["CMD"] == '["handler.handler"]'  # the base image brings the runtime client, and another user
        return
    assert told["USER"] == "nobody"
    assert told["EXPOSE"] == "9000"
    module = re.search(rf"python -m (\S+) {path.stem} \$\{{FUNCTION\}}", told["CMD"])
    assert module is not None
    assert importlib.util.find_spec(module[1]) is not None
