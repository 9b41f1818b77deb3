"""Terraform as the checks run it: in a copy of the tree, with the plugins found on this machine where there are any."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

ROOT = Path(__file__).parents[2]
_COPIED = ("infra/aws", "infra/modules", "functions")
_OWN_STATE = (".terraform", ".terraform.lock.hcl", "terraform.tfstate*", "__pycache__")
_NOT_OURS = ("AWS_", "TF_", "COSTGUARD_")


class NotPossibleError(Exception):
    """This machine has no Terraform, or no provider for it."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of one command."""

    status: int
    text: str


@dataclass(frozen=True, slots=True)
class Workshop:
    """A copy of the tree in which modules may be initialised; `bundles` has a file for each function."""

    root: Path
    program: str
    environment: Mapping[str, str] = field(repr=False)

    @property
    def bundles(self) -> Path:
        """Where the bundles stand."""
        return self.root / "bundles"

    def run(self, module: str, *words: str, more: Mapping[str, str] | None = None, seconds: int = 600) -> Ran:
        """`terraform WORDS` in a module of the copy."""
        done = subprocess.run(  # noqa: S603 - Terraform, with words of these checks
            [self.program, f"-chdir={self.root / module}", *words],
            env={**self.environment, **(more or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
        )
        return Ran(done.returncode, done.stdout)

    def ready(self, module: str) -> None:
        """Initialise a module.

        Raises:
            NotPossibleError: its provider is neither here nor to be had.
        """
        made = self.run(module, "init", "-backend=false", "-input=false", "-no-color")
        if made.status:
            message = f"terraform init of {module}: {_gist(made.text)}"
            raise NotPossibleError(message)


@contextmanager
def workshop(copied: Sequence[str] = _COPIED) -> Iterator[Workshop]:
    """A fresh copy, gone afterwards.

    Raises:
        NotPossibleError: there is no Terraform here.
    """
    program = shutil.which("terraform")
    if program is None:
        message = "there is no terraform"
        raise NotPossibleError(message)
    with TemporaryDirectory(prefix="costguard-infra-") as name:
        root = Path(name)
        for part in copied:
            shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns(*_OWN_STATE))
        (root / "bundles").mkdir()
        for function in sorted((ROOT / "functions").glob("*/function.yaml")):
            with ZipFile(root / "bundles" / f"{function.parent.name}.zip", "w"):
                pass  # nobody unpacks it
        yield Workshop(root, program, environment(root))


def environment(root: Path) -> dict[str, str]:
    """That of this process without what would steer Terraform or name an account, and with plugins found here."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_OURS)}
    kept |= {"CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1", "NO_COLOR": "1"}
    mirror = _mirror()
    lines = ["disable_checkpoint = true"]
    if mirror is not None:
        lines += ["provider_installation {", "  filesystem_mirror {", f'    path = "{mirror}"', "  }", "}"]
    (root / "terraform.rc").write_text("\n".join([*lines, ""]), "utf-8")
    return {**kept, "TF_CLI_CONFIG_FILE": str(root / "terraform.rc")}


def _mirror() -> Path | None:
    """A folder of plugins laid out as `terraform providers mirror` does, at most three deep, if there is one."""
    for depth in ("*", "*/*"):
        for found in sorted(Path("/").glob(f"{depth}/registry.terraform.io")):
            if found.parts[1] not in {"proc", "sys"} and found.is_dir():
                return found.parent
    return None


def _gist(text: str) -> str:
    """The lines of an answer that say what is wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = next((at for at, line in enumerate(lines) if line.startswith("Error")), 0)
    return " ".join(lines[first : first + 6])
