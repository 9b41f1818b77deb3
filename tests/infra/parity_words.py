"""Words that Terraform repeats from elsewhere: log lines that alarms look for, settings that are secret, purposes."""

from __future__ import annotations

import re
from pathlib import Path

from tests.infra.parity_hcl import read_file

from costguard.settings.variables import VARIABLES

ROOT = Path(__file__).parents[2]
_CLOUDS = ("alibaba", "tencent")
_MOST_CHARACTERS = 6144  # of one custom policy (RAM, CAM "Limits")


def check() -> list[str]:
    """Whatever no longer agrees, a line each."""
    return [problem for cloud in _CLOUDS for problem in (*_lines(cloud), *_secrets(cloud), *_policies(cloud))]


def _lines(cloud: str) -> list[str]:
    """Every line that an alarm looks for is written by the program."""
    text = "".join((ROOT / "infra" / cloud / name).read_text(encoding="utf-8") for name in ("alarms.tf", "dead_man.tf"))
    looked_for = {
        words for listed in re.findall(r"words = \[([^\]]*)\]", text) for words in re.findall(r'"([^"]+)"', listed)
    } | set(re.findall(r'"\\"([a-z ]+)\\""', text))
    written = set()
    for path in (ROOT / "shared" / "costguard").rglob("*.py"):
        written |= set(
            re.findall(r"""(?:log|_LOG)\.\w+\(\s*"([^"]+)"|else "([^"]+)", extra""", path.read_text(encoding="utf-8"))
        )
    known = {words for pair in written for words in pair}
    if not looked_for:
        return [f"infra/{cloud}/alarms.tf looks for no line at all"]
    return [f'infra/{cloud}: an alarm looks for "{words}", which no line says' for words in sorted(looked_for - known)]


def _secrets(cloud: str) -> list[str]:
    """`secret_settings` are those that docs/settings.md calls secret and that a function may be given."""
    folder = ROOT / "infra" / cloud
    (local, *_) = (
        block for block in read_file(folder / "functions.tf").inner("locals") if "secret_settings" in block.arguments
    )
    said = set(re.findall(r'"(COSTGUARD_\w+)"', local.arguments["secret_settings"]))
    known = {variable.name for variable in VARIABLES if variable.secret and variable.name.startswith("COSTGUARD_")}
    return [
        f"infra/{cloud}/functions.tf: secret_settings and docs/settings.md differ in {name}"
        for name in sorted(said ^ known)
    ]


def _policies(cloud: str) -> list[str]:
    """The denials, and all that one function may be given joined, fit into one policy each."""
    folder = ROOT / "infra" / cloud / "policies"
    sizes = {path.stem: len(re.sub(r"\s", "", path.read_text(encoding="utf-8"))) for path in folder.glob("*.json")}
    problems = [] if "deny" in sizes else [f"infra/{cloud}/policies/deny.json is missing"]
    return problems + [
        f"infra/{cloud}/policies/{name}.json: {size} letters" for name, size in sizes.items() if size > _MOST_CHARACTERS
    ]
