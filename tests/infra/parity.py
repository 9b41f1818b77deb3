"""The three clouds' modules are used alike: the same variables, of the same types, and the same outputs."""

from __future__ import annotations

import re
from pathlib import Path

from tests.infra.parity_hcl import Block, read_folder
from tests.infra.parity_schedules import check as check_schedules
from tests.infra.parity_words import check as check_words

ROOT = Path(__file__).parents[2]
CLOUDS = ("aws", "alibaba", "tencent")

_DEFAULTS_OF_THEIR_OWN = frozenset({"bundles"})  # the folder is named for the host
_OWN = {
    ("aws", "architecture"): "only Lambda has two",
    ("aws", "reserved_concurrency"): "Lambda alone queues what finds no room; the ledger keeps two runs apart",
    ("aws", "distributed"): "Step Functions; on FC and SCF one function goes on where it left off",
    ("aws", "distributed_concurrency"): "of the same",
    ("aws", "heartbeat_url"): "EventBridge calls an address after each good run; nothing of FC or SCF alone does",
    (
        "aws",
        "freeze_policies",
    ): "RAM and CAM narrow attaching to no policy of an organisation",
    ("aws", "member/freeze_policies"): "of the same",
    ("aws", "log_key_arn"): "SLS and CLS encrypt by a role of their own",
    ("alibaba", "desk_networks"): "DynamoDB is reached by permission alone, PostgreSQL by network too",
    ("tencent", "desk_networks"): "of the same",
    ("aws", "ledger_backup"): "DynamoDB's are paid apart; those of the databases are in their price",
    ("alibaba", "secret_store"): "its KMS alone asks for an instance; the others' stores cost cents",
    ("alibaba", "secret_keys"): "its secrets are kept with keys of the customer's own, always",
    ("alibaba", "alert_region"): "where SLS keeps people depends on the site",
}
"""Variables that one cloud alone has, and why; those of members after a slash."""

_MODULES = {".": "", "member": "member/", "state": "state/"}
_OUTPUTS = frozenset({"functions", "answer_url", "policy_source", "ledger", "roles", "logs", "alarms"})


def check() -> list[str]:
    """What differs, a line each; with it the schedules, and words that stand in several places."""
    problems: list[str] = []
    for module, shown in _MODULES.items():
        found = {cloud: read_folder(ROOT / "infra" / cloud / module) for cloud in CLOUDS}
        problems += _variables({cloud: _blocks(files, "variable") for cloud, files in found.items()}, shown)
        problems += _outputs({cloud: _blocks(files, "output") for cloud, files in found.items()}, shown)
    return problems + check_schedules() + check_words()


def _blocks(files: dict[str, Block], kind: str) -> dict[str, Block]:
    return {block.labels[0]: block for file in files.values() for block in file.inner(kind)}


def _variables(found: dict[str, dict[str, Block]], shown: str) -> list[str]:
    problems = []
    for name in sorted({name for variables in found.values() for name in variables}):
        having = {cloud: variables[name] for cloud, variables in found.items() if name in variables}
        own = {cloud for cloud in having if (cloud, f"{shown}{name}") in _OWN}
        if len(having) < len(found) and own != set(having):
            lacking = ", ".join(cloud for cloud in found if cloud not in having)
            problems.append(f"infra/*/{shown}variables.tf: {name} is missing on {lacking}")
        for field in ("type", "default"):
            if field == "default" and name in _DEFAULTS_OF_THEIR_OWN:
                continue
            said = {cloud: _even(block.arguments.get(field, "none")) for cloud, block in having.items()}
            if len(set(said.values())) > 1:
                problems.append(f"infra/*/{shown}variables.tf: {field} of {name} differs: {said}")
    return problems


def _outputs(found: dict[str, dict[str, Block]], shown: str) -> list[str]:
    problems = []
    for name in sorted({name for outputs in found.values() for name in outputs}):
        lacking = [cloud for cloud, outputs in found.items() if name not in outputs]
        if lacking and (shown or name in _OUTPUTS):
            problems.append(f"infra/*/{shown}outputs.tf: {name} is missing on {', '.join(lacking)}")
    if not shown:
        problems += [
            f"infra/{cloud}/outputs.tf: {name} is missing"
            for cloud, outputs in found.items()
            for name in sorted(_OUTPUTS - set(outputs))
        ]
    return problems


def _even(text: str) -> str:
    return re.sub(r"\s+", " ", text)
