"""The page about the policy and the starter people copy are true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from costguard.adapters.policy_sources.files import FilePolicySource
from costguard.guards.rules.common import Mode
from costguard.policy.budget.steps import WORD_OF
from costguard.policy.documents.fields import Document
from costguard.policy.documents.loader import load_policy
from costguard.policy.idle.documents import DEFAULT_WAITS
from costguard.policy.trial.documents import read_described, read_tests
from costguard.ports import PolicyText

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
STARTER = ROOT / "infra" / "config-repo"


def below(model: type[Document]) -> set[type[Document]]:
    return {each for child in model.__subclasses__() for each in (child, *below(child))}


MODELS = sorted(
    (model for model in below(Document) if model.__module__.startswith("costguard.")), key=lambda model: model.__name__
)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_every_example_loads(block: str) -> None:
    """A block that begins with the name of a file is that file, beside a minimal policy."""
    if block.startswith("# tests/"):
        assert read_tests("tests/docs.yaml", block)[0].tests
        return
    if block.startswith("# machine.yaml"):
        assert read_described("machine.yaml", block).instance.cloud
        return
    named = re.match(r"# ((?:policies/)?[a-z]+\.yaml)\n", block)
    files = (
        {named.group(1): block, "costguard.yaml": "version: 1\nidle_gpu: [{name: m}]\n"} if named else {"c.yaml": block}
    )

    assert load_policy(PolicyText(files, "r1")).idle_gpu


def test_the_page_has_its_examples() -> None:
    assert len(BLOCKS) >= 5


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_key_is_on_the_page(model: type[Document]) -> None:
    keys = [each.alias or name for name, each in model.model_fields.items()]
    missing = [key for key in keys if not re.search(rf"`{key}`|\b{key}:", PAGE)]

    assert missing == []


def test_every_step_is_on_the_page() -> None:
    assert all(f"| `{word}` |" in PAGE for word in (*(verb.value for verb in DEFAULT_WAITS), *WORD_OF.values()))


def test_the_starter_loads_and_observes() -> None:
    policy = load_policy(
        PolicyText({name: _chosen(text) for name, text in FilePolicySource(STARTER).read().files.items()}, "r1")
    )

    assert policy.mode is Mode.OBSERVE
    assert [rule.mode for rule in policy.idle_gpu] == [Mode.OBSERVE]


def test_the_starter_loads_with_every_comment_taken_off() -> None:
    """What is offered as a comment is valid too: a writer only removes the `# `."""
    text = FilePolicySource(STARTER).read()
    files = {name: _chosen(_uncommented(content)) for name, content in text.files.items()}

    policy = load_policy(PolicyText(files, "r1"))

    assert [rule.name for rule in policy.idle_gpu] == ["default", "experiments"]
    assert policy.calendar is not None
    assert len(policy.accounts) == 4
    assert [budget.name for budget in policy.budgets] == ["research"]
    assert len(policy.exchange_rates) == 1
    assert policy.answers.approvers
    assert len(policy.owners) == 2
    assert len(policy.exemptions) == 2


def _chosen(content: str) -> str:
    """The zone that whoever begins has to choose."""
    return content.replace("zone: CHOOSE", "zone: Asia/Shanghai")


def _uncommented(content: str) -> str:
    """Commented YAML made live; sentences stay comments, and the `[]` of an empty list goes."""
    key = re.compile(r"^(\s*)# (\s*(?:- )?(?:[a-z_]+:|\{).*)$")
    lines = []
    for line in content.splitlines():
        match = key.match(line)
        sentence = re.match(r"^\s*# [a-z_]+: [a-z ]+\. ", line)
        lines.append(match.group(1) + match.group(2) if match and not sentence else line)
    live = [line for line in lines if line != "[]"] if any(re.match(r"- ", line) for line in lines) else lines
    live = [line for line in live if line != "budgets: []"] if "budgets:" in live else live
    return "\n".join(live) + "\n"
