"""Runs Terraform, or a program like it, in one module. Its own words go straight to the person who waits."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from costguard.domain.errors import CostguardError, InvalidInputError

_NOTHING, _FAILED, _CHANGES = 0, 1, 2
"""What `terraform plan -detailed-exitcode` ends with."""


class TerraformError(CostguardError):
    """Terraform ended with an error, which it has told by itself."""


@dataclass(frozen=True, slots=True)
class Terraform:
    """One program and the module it is run in. `quiet` sends its own words to standard error, for answers in JSON."""

    program: str
    module: Path

    @classmethod
    def found(cls, program: str, module: Path) -> Terraform:
        """The program of that name or path.

        Raises:
            InvalidInputError: it is not there, or the folder is no module.
        """
        path = shutil.which(program)
        if path is None:
            message = (
                f"no program {program!r} is here: install Terraform 1.9 or newer, or name another with --terraform"
            )
            raise InvalidInputError(message)
        check_module(module)
        return cls(path, module)

    def make_ready(self, *more: str) -> None:
        """Fetch its providers and open its state; `more` says what becomes of a state that was kept elsewhere.

        Raises:
            TerraformError: it could not.
        """
        self._shown("init", "-input=false", *more)

    def tries(self, *asked: str) -> bool:
        """Whether it can do this; why not is told to nobody."""
        command = (self.program, f"-chdir={self.module}", *asked)
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)  # noqa: S603 - as below
        return done.returncode == _NOTHING

    def plan(self, into: Path, variables: Sequence[str]) -> bool:
        """Write a plan; whether anything would change.

        Raises:
            TerraformError: it could not.
        """
        asked = ("plan", "-input=false", "-detailed-exitcode", "-lock-timeout=60s", f"-out={into}", *variables)
        return self._run(asked, (_NOTHING, _CHANGES)) == _CHANGES

    def planned(self, plan: Path) -> Mapping[str, Any]:
        """What the plan says, as Terraform's JSON.

        Raises:
            TerraformError: it could not.
        """
        return self._told("show", "-json", str(plan))

    def apply(self, plan: Path) -> None:
        """Do what the plan says, and nothing else.

        Raises:
            TerraformError: it could not, or could only in part.
        """
        self._shown("apply", "-input=false", str(plan))

    def outputs(self) -> Mapping[str, Any]:
        """The outputs of the module, each its value; what the module calls sensitive is left out.

        Raises:
            TerraformError: it could not.
        """
        told = self._told("output", "-json")
        return {name: one.get("value") for name, one in told.items() if not one.get("sensitive")}

    def _shown(self, *asked: str) -> None:
        self._run(asked, (_NOTHING,))

    def _run(self, asked: Sequence[str], good: Sequence[int]) -> int:
        """What it ends with; its words go to standard error, so that standard output holds our answer alone."""
        command = (self.program, f"-chdir={self.module}", *asked)
        done = subprocess.run(command, stdout=2, check=False)  # noqa: S603 - the user's own program, no shell
        if done.returncode not in good:
            raise TerraformError(_ended(asked[0], done.returncode))
        return done.returncode

    def text_of(self, *asked: str) -> str:
        """What it answers on standard output.

        Raises:
            TerraformError: it could not.
        """
        command = (self.program, f"-chdir={self.module}", *asked)
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=False)  # noqa: S603 - as above
        if done.returncode != _NOTHING:
            raise TerraformError(_ended(asked[0], done.returncode))
        return done.stdout

    def _told(self, *asked: str) -> Mapping[str, Any]:
        answer = self.text_of(*asked)
        try:
            told = json.loads(answer)
        except ValueError as err:
            message = f"terraform {asked[0]} answered what is no JSON"
            raise TerraformError(message) from err
        if not isinstance(told, dict):
            message = f"terraform {asked[0]} answered JSON of another form than documented"
            raise TerraformError(message)
        return told


def check_module(module: Path) -> None:
    """That the folder holds a module.

    Raises:
        InvalidInputError: it does not.
    """
    if not any(module.glob("*.tf")):
        message = f"{module}: no Terraform module; name the folder that holds aws, alibaba and tencent with --infra"
        raise InvalidInputError(message)


def _ended(what: str, status: int) -> str:
    return f"terraform {what} ended with status {status}; what it said stands above"
