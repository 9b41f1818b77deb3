"""Where Terraform keeps its state: in an encrypted, versioned, locked bucket of the account, made before anything else.

The bucket is a module of its own (infra/CLOUD/state), so that Terraform makes it: a name that somebody has is refused
there, and nothing is written over. What was kept beside a module is moved by `terraform init -migrate-state`, which
overwrites what it finds; so it is asked first whether there is anything to overwrite.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from costguard.cli.operate.deploying.changes import Change, changes_in
from costguard.cli.operate.deploying.terraform import Terraform, TerraformError
from costguard.domain.errors import InvalidInputError

KINDS: Mapping[str, str] = {"aws": "s3", "alibaba": "oss", "tencent": "cos"}
"""Cloud → Terraform's word for the backend."""

FILE = "backend.tf"
_FIRST = "# Written by `costguard deploy --backend`: where the state of this module is kept. Keep it with the module."
_DECLARED = re.compile(r"^\s*(?:backend\s+\"|cloud\s*\{)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Backend:
    """One of Terraform's backends and its arguments."""

    kind: str
    arguments: Mapping[str, str | bool]

    @property
    def bucket(self) -> str:
        """The bucket's name."""
        return str(self.arguments["bucket"])

    def text(self) -> str:
        """The file that declares it."""
        width = max(map(len, self.arguments))
        said = "".join(f"    {name:<{width}} = {json.dumps(value)}\n" for name, value in self.arguments.items())
        return f'{_FIRST}\n\nterraform {{\n  backend "{self.kind}" {{\n{said}  }}\n}}\n'

    def at(self, key: str) -> Backend:
        """The same with this key."""
        return replace(self, arguments={**self.arguments, "key": key})


def declared_in(module: Path) -> str:
    """The file of the module that says where its state is kept; empty where it is kept beside it."""
    found = (path.name for path in sorted(module.glob("*.tf")) if _DECLARED.search(path.read_text(encoding="utf-8")))
    return next(found, "")


def keep_in_bucket(main: Terraform, cloud: str, variables: Mapping[str, Any]) -> Backend:
    """Have the bucket, move the module's state into it, and answer where it is. Safe to do again after a failure.

    Raises:
        InvalidInputError: no region was named; the bucket, or a state in it, is of somebody else.
        TerraformError: Terraform could not, which it has told by itself.
    """
    region, name = variables.get("region"), str(variables.get("name") or "costguard")
    if not region:
        message = "--backend makes a bucket in the deployment's region: name it, such as --var region=eu-central-1"
        raise InvalidInputError(message)
    if (main.module / "terraform.tfstate.d").exists():
        message = f"{main.module}: has workspaces; move their state by hand, with terraform init -migrate-state"
        raise InvalidInputError(message)
    given = (f"-var=name={name}", f"-var=region={region}")
    state = Terraform.found(main.program, main.module / "state")
    bucket = _had(state, KINDS[cloud], name, given)
    ours = bucket.at(f"{name}/terraform.tfstate")
    if _has_state(main.module) and _pulled(main, ours):
        message = (
            f"{main.module} has a state beside it, and the bucket {ours.bucket} has another at "
            f"{ours.arguments['key']}: nothing was overwritten. Remove the one that is not of this deployment, or give "
            "it another `name`"
        )
        raise InvalidInputError(message)
    _move(main, ours)
    return ours


def _had(state: Terraform, kind: str, name: str, given: Sequence[str]) -> Backend:
    """The bucket, made where it is not there; its own state is kept in it."""
    own = f"{name}/state.tfstate"
    file = state.module / FILE
    with TemporaryDirectory(prefix="costguard-plan-") as private:
        plan = Path(private) / "plan"
        if not file.exists():
            state.make_ready()
            state.plan(plan, given)
            backend = Backend(kind, _outputs(state.planned(plan))).at(own)
            if _has_state(state.module) or not _reaches(state, backend):
                state.apply(plan)
                _move(state, backend)
                return backend
            file.write_text(backend.text(), encoding="utf-8")
        state.make_ready("-reconfigure")
        changes = state.plan(plan, given)
        planned = state.planned(plan)
        backend = Backend(kind, _outputs(planned)).at(own)
        if any(one.change is not Change.UPDATE for one in changes_in(planned)):
            file.unlink()
            message = (
                f"a bucket {backend.bucket} is there already and was not made by this: nothing was written into it. "
                "Remove it if it is yours and empty, or give the deployment another `name`"
            )
            raise InvalidInputError(message)
        if changes:
            state.apply(plan)  # somebody took a safeguard away: versions, encryption, the block of public access
        return backend


def _move(program: Terraform, backend: Backend) -> None:
    """Declare the backend and move what is kept beside the module into it."""
    file = program.module / FILE
    file.write_text(backend.text(), encoding="utf-8")
    try:
        program.make_ready(*(("-migrate-state", "-force-copy") if _has_state(program.module) else ("-reconfigure",)))
    except TerraformError:
        file.unlink()
        raise


def _outputs(planned: Mapping[str, Any]) -> dict[str, str | bool]:
    told = planned.get("planned_values", {}).get("outputs", {}).get("backend", {}).get("value")
    if not isinstance(told, dict) or not told.get("bucket"):
        message = "the module of the state's bucket does not tell its name; upgrade"
        raise InvalidInputError(message)
    return dict(told)


def _has_state(module: Path) -> bool:
    """Whether a state with anything in it lies beside the module."""
    file = module / "terraform.tfstate"
    return file.is_file() and _holds_something(file.read_text(encoding="utf-8"), str(file))


def _holds_something(text: str, where: str) -> bool:
    try:
        state = json.loads(text.strip() or "{}")
        return bool(state.get("resources") or state.get("outputs"))
    except (ValueError, AttributeError) as err:
        message = f"{where}: not a state that Terraform wrote"
        raise InvalidInputError(message) from err


def _reaches(program: Terraform, backend: Backend) -> bool:
    """Whether the bucket is there and lets us in."""
    with _alone(program, backend) as alone:
        return alone.tries("init", "-input=false")


def _pulled(program: Terraform, backend: Backend) -> bool:
    """Whether something is kept there already; a state of nothing is not."""
    with _alone(program, backend) as alone:
        alone.make_ready()
        return _holds_something(alone.text_of("state", "pull"), backend.bucket)


@contextmanager
def _alone(program: Terraform, backend: Backend) -> Iterator[Terraform]:
    """Terraform in a folder with nothing but that backend, gone afterwards."""
    with TemporaryDirectory(prefix="costguard-backend-") as folder:
        (Path(folder) / FILE).write_text(backend.text(), encoding="utf-8")
        yield replace(program, module=Path(folder))
