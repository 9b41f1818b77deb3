"""Whoever deploys on AWS: a tree, a virtual environment, command lines, and accounts in the sandbox."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from moto.sts.models import sts_backends
from tests.deploy_pages.aws_functions import LAMBDA_PYTHON, Functions
from tests.deploy_pages.pages import fresh_venv, kept_environ, tree_copy
from tests.infra.aws_sandbox import EMULATED, Account, account_served
from tests.infra.aws_terraform import NotPossibleError, environment

from cloudstand.demo.fleet import aws_fleet
from cloudstand.fleets import PRODUCT, aws_machine
from cloudstand.world import workload as does
from cloudstand.world.fleet import MachineSpec
from costguard.cli.sandbox.running import Sandbox

ANOTHER = "777788889999"
MEMBERS = (PRODUCT, ANOTHER)
"""The accounts beside the one that Costguard runs in."""
ADMINISTRATOR = "OrganizationAccountAccessRole"
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_NOT_OURS = ("AWS_", "TF_", "COSTGUARD_", "PYTHON", "VIRTUAL_ENV", "PYENV_VERSION")
_READS_ENDPOINT = (2, 13)  # the first of AWS's command lines that reads AWS_ENDPOINT_URL


@dataclass(frozen=True, slots=True)
class Desk:
    """A reader's: the tree, a terminal's environment, and the account."""

    tree: Path
    environ: Mapping[str, str]
    account: Account
    functions: Functions
    sandbox: Sandbox

    def keys_of(self, member: str) -> Mapping[str, str]:
        """Of an administrator in a member account."""
        return _keys_of(self.account, member)


@contextmanager
def opened() -> Iterator[Desk]:
    """A fresh tree, virtual environment and account.

    Raises:
        NotPossibleError: there is no Terraform here, no second version of AWS's command line, or another Python.
    """
    if sys.version_info[:2] != LAMBDA_PYTHON:
        raise NotPossibleError("Lambda's Python is 3.13, and this is another: bundles would not run")
    if shutil.which("terraform") is None:
        raise NotPossibleError("there is no terraform")
    cli, version = _command_line()
    fronts: list[Functions] = []
    with TemporaryDirectory(prefix="costguard-desk-") as name, tree_copy() as tree:
        desk = Path(name)

        def in_front(sandbox: Sandbox) -> Functions:
            more = {"COSTGUARD_SLACK_URL": sandbox.slack.base_url}
            fronts.append(Functions(sandbox, desk / "functions", more))
            return fronts[0]

        with account_served(in_front, fleet) as (account, _):
            fronts[0].more["AWS_ENDPOINT_URL"] = account.url
            sys.stdout.write(
                f"  aws: {cli} {'.'.join(map(str, version))}; Terraform's provider against {account.url}\n"
            )
            (desk / "bin").mkdir()
            told = "" if version >= _READS_ENDPOINT else ' --endpoint-url "$AWS_ENDPOINT_URL"'
            (desk / "bin" / "aws").write_text(f'#!/bin/sh\nexec {cli}{told} "$@"\n', "utf-8")
            (desk / "bin" / "aws").chmod(0o755)
            for module in ("infra/aws", "infra/aws/member"):
                (tree / module / "sandbox_override.tf").write_text(EMULATED, "utf-8")
            venv = fresh_venv(desk / "venv")
            environ = {
                **kept_environ(_NOT_OURS),
                "TF_CLI_CONFIG_FILE": environment(desk)["TF_CLI_CONFIG_FILE"],
                "NO_COLOR": "1",
                **venv,
                **{name: value for name, value in account.keys.items() if name != "AWS_REGION"},
                "COSTGUARD_SLACK_URL": fronts[0].sandbox.slack.base_url,
                "PATH": f"{desk / 'bin'}{os.pathsep}{venv['PATH']}",
            }
            _administered(account)
            yield Desk(tree, environ, account, fronts[0], fronts[0].sandbox)


def fleet(at: datetime) -> tuple[MachineSpec, ...]:
    return (*aws_fleet(at), aws_machine("far-notebook", "g5g.16xlarge", does.idle(), at, account=ANOTHER))


def _command_line() -> tuple[str, tuple[int, ...]]:
    """The first `aws` on the path of a second version."""
    seen: list[str] = []
    for folder in os.get_exec_path():
        program = Path(folder) / "aws"
        if not os.access(program, os.X_OK):
            continue
        told = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
        found = re.match(r"aws-cli/(\d+)\.(\d+)\.(\d+)", told)
        if found is not None and found[1] == "2":
            return str(program), tuple(map(int, found.groups()))
        seen.append(told.partition(" ")[0])
    message = f"the page means the AWS CLI of version 2; here there is {', '.join(seen) or 'none'}"
    raise NotPossibleError(message)


def _administered(account: Account) -> None:
    """What AWS Organizations makes in each account: a role that the management account may take."""
    trust = {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{account.number}:root"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    for member in MEMBERS:
        iam = account.client("iam", _keys_of(account, member))
        iam.create_role(RoleName=ADMINISTRATOR, AssumeRolePolicyDocument=document)


def _keys_of(account: Account, member: str) -> Mapping[str, str]:
    sts = sts_backends[account.number]["aws"]
    made = sts.assume_role("us-east-1", "administrator", f"arn:aws:iam::{member}:role/{ADMINISTRATOR}", "", 3600, "")
    return dict(zip(KEYS, (made.access_key_id, made.secret_access_key, made.session_token), strict=True))
