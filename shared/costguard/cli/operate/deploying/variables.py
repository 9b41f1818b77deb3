"""What a module's variables are before anything is planned: read by Terraform, without provider or credentials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from costguard.cli.operate.deploying.terraform import Terraform

READ: Mapping[str, str] = {
    "name": "string",
    "region": "string",
    "functions": "set(string)",
    "schedules": "map(string)",
    "secrets": "map(string)",
    "log_retention_days": "number",
    "alarm_mail": "string",
    "architecture": "string",
    "distributed": "bool",
    "log_key_arn": "string",
    "ledger_backup": "bool",
    "secret_store": "string",
}
"""What decides the cost, and where the state is kept; with the types that the modules give. A test compares."""


def variables_given(terraform: str, module: Path, files: Sequence[Path], assignments: Sequence[str]) -> dict[str, Any]:
    """The variables in `READ`; one that nobody set is left out or None.

    Terraform reads them as it would for the module: `terraform.tfvars`, `*.auto.tfvars` and `TF_VAR_…` first, then
    `files`, then `assignments`. It is not needed where nothing is set.

    Raises:
        InvalidInputError: there is no such program, and something to read.
        TerraformError: a file or a value is wrong, which it has told by itself.
    """
    own = [module / name for name in ("terraform.tfvars", "terraform.tfvars.json") if (module / name).is_file()]
    own += sorted(path for pattern in ("*.auto.tfvars", "*.auto.tfvars.json") for path in module.glob(pattern))
    known = [each for each in assignments if each.partition("=")[0] in READ]
    if not (own or files or known):
        return {}
    declared = "\n".join(
        f'variable "{name}" {{\n  type    = {kind}\n  default = null\n}}' for name, kind in READ.items()
    )
    with TemporaryDirectory(prefix="costguard-variables-") as folder:
        (Path(folder) / "variables.tf").write_text(declared + "\n", encoding="utf-8")
        program = Terraform.found(terraform, Path(folder))
        plan = Path(folder) / "plan"
        program.plan(plan, [*(f"-var-file={path}" for path in (*own, *files)), *(f"-var={each}" for each in known)])
        return variables_of(program.planned(plan))


def variables_of(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The variables of a plan as `terraform show -json` tells it, those in `READ`."""
    told = plan.get("variables")
    found = told if isinstance(told, dict) else {}
    return {name: found[name].get("value") for name in READ if isinstance(found.get(name), dict)}
