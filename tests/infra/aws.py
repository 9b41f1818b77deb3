"""infra/aws: formatted, valid, its own tests green, and true to the code it deploys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.infra.aws_sandbox import deployed_and_gone
from tests.infra.aws_template import wrong_template
from tests.infra.aws_terraform import ROOT, Workshop, workshop

from costguard.faas.logs import NAMESPACE
from costguard.settings import VARIABLES
from costguard.settings.variables import DEFAULT_NAME

AWS = "infra/aws"
_MODULES = (AWS, f"{AWS}/member", f"{AWS}/state")


def check(*, apply: bool) -> list[str]:
    """What is wrong; `apply` sets it up in the sandbox as well."""
    with workshop() as shop:
        wrong = [*_misformatted(shop), *_untrue(ROOT / AWS), *wrong_template()]
        for module in _MODULES:
            shop.ready(module)
            wrong += _invalid(shop, module)
        if apply and not wrong:
            wrong += deployed_and_gone(shop)
    return wrong


def _misformatted(shop: Workshop) -> Iterator[str]:
    ran = shop.run(AWS, "fmt", "-check", "-recursive")
    if ran.status:
        yield f"terraform fmt would change {' '.join(ran.text.split())}"


def _invalid(shop: Workshop, module: str) -> Iterator[str]:
    valid = shop.run(module, "validate", "-no-color")
    if valid.status:
        yield f"terraform validate in {module}:\n{valid.text}"
        return
    variables = ("-var", f"bundles={shop.bundles}") if module == AWS else ()
    tested = shop.run(module, "test", "-no-color", *variables)
    if tested.status:
        # after a failure Terraform lists all that its stand-in had made
        left = re.compile(r"Terraform left the following resources.*?(?=^tests/|\Z)", re.DOTALL | re.MULTILINE)
        yield f"terraform test in {module}:\n{left.sub('', tested.text)}"


def _untrue(folder: Path) -> Iterator[str]:
    """What the modules say of the code that the code does not."""
    functions = (folder / "functions.tf").read_text("utf-8")
    said = set(re.findall(r'"(COSTGUARD_[A-Z_]+)"', _between(functions, "secret_settings = [", "]")))
    secret = {variable.name for variable in VARIABLES if variable.secret and variable.name.startswith("COSTGUARD_")}
    if said != secret:
        yield f"functions.tf: secret_settings differ from settings/variables.py: {sorted(said ^ secret)}"

    alarms = (folder / "alarms.tf").read_text("utf-8")
    code = "".join(path.read_text("utf-8") for path in (ROOT / "shared/costguard").rglob("*.py"))
    lines = re.findall(r'"([^"]+)"', "".join(re.findall(r"messages = \[([^\]]+)\]", alarms)))
    yield from (f"alarms.tf: no line of the code says {line!r}" for line in lines if f'("{line}"' not in code)
    if not lines:
        yield "alarms.tf: no lines of logs are counted"
    if f'alarm_namespace = "{NAMESPACE}"' not in alarms:
        yield "alarms.tf: its namespace is not that of faas/logs.py"
    for name in ("alarms.tf", "dead_man.tf"):
        if not re.search(
            r"dimensions += \{ service = var\.name, function = each\.key \}", (folder / name).read_text("utf-8")
        ):
            yield f"{name}: its dimensions are not those of faas/logs.py"
    default = re.search(r'variable "name" {[^}]*default\s*= "([^"]+)"', (folder / "variables.tf").read_text("utf-8"))
    if default is None or default[1] != DEFAULT_NAME:
        yield f"variables.tf: its default name is not that of settings/variables.py, {DEFAULT_NAME}"


def _between(text: str, first: str, last: str) -> str:
    return text.partition(first)[2].partition(last)[0]
