"""The page about answers is true: the manifest people paste asks for what the code uses, and for nothing else."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from costguard.adapters.notifiers.slack.requests import WINDOW
from costguard.faas.slack_actions import SLACK_PATHS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/answers.md").read_text("utf-8")
SCOPE_OF = {"chat_postMessage": "chat:write", "chat_update": "chat:write", "views_open": None}
"""What Slack's reference asks of each method."""


def manifest() -> Any:
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return YAML(typ="safe").load(block)


def methods_called() -> set[str]:
    """Every method of Slack's SDK that the notifier calls."""
    tree = ast.parse((ROOT / "shared/costguard/adapters/notifiers/slack/notifier.py").read_text("utf-8"))
    return {
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "client"
    }


def test_the_scopes_are_those_of_the_methods_called_and_of_the_command() -> None:
    assert methods_called() == set(SCOPE_OF)
    scopes = {SCOPE_OF[method] for method in methods_called()} - {None}
    asked = manifest()

    assert set(asked["oauth_config"]["scopes"]["bot"]) == scopes | {"commands"}
    assert set(re.findall(r"^\| `([a-z:]+)` \| to ", PAGE, re.MULTILINE)) == scopes | {"commands"}
    assert "user" not in asked["oauth_config"]["scopes"]


def test_the_addresses_are_served() -> None:
    asked = manifest()
    (command,) = asked["features"]["slash_commands"]
    addresses = {command["url"], asked["settings"]["interactivity"]["request_url"]}

    assert {re.sub(r"^https://[^/]+", "", address) for address in addresses} <= SLACK_PATHS
    assert command["command"] == "/costguard"
    assert asked["settings"]["interactivity"]["is_enabled"] is True


def test_the_words_of_the_manifest_are_within_slacks_limits() -> None:
    """App name 35, description 140, command description 2,000, usage hint 1,000 characters."""
    asked = manifest()
    (command,) = asked["features"]["slash_commands"]
    assert len(asked["display_information"]["name"]) <= 35
    assert len(asked["display_information"]["description"]) <= 140
    assert len(command["usage_hint"]) <= 1000


@pytest.mark.release
def test_the_window_of_time_is_the_one_that_holds() -> None:
    assert WINDOW.total_seconds() == 300
    assert "at most five minutes away" in PAGE
