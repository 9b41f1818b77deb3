"""docs/deploy-alibaba.md, followed against the sandbox: built bundles; `aliyun` and Terraform's provider stand in."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.deploy_pages.alibaba_cloud import MEMBER, AlibabaCloud
from tests.deploy_pages.database import PORT, database
from tests.deploy_pages.pages import ROOT, followed, fresh_venv, kept_environ, tree_copy
from tests.deploy_pages.stand_in_cli.program import Program
from tests.deploy_pages.vendors import VendorStage
from tests.infra.aws_terraform import NotPossibleError
from tests.infra.stand_in import workshop

from cloudstand.fleets import ALIBABA_ACCOUNT, HANGZHOU

PAGE = ROOT / "docs" / "deploy-alibaba.md"
_NOT_OURS = ("AWS_", "TF_", "COSTGUARD_", "ALI", "TENCENTCLOUD_", "PYTHON", "VIRTUAL_ENV", "PYENV_VERSION")


def check() -> list[str]:
    """What is wrong with the page.

    Raises:
        NotPossibleError: there is no Terraform, no PostgreSQL, or no Python of the functions' version here.
    """
    if shutil.which("terraform") is None:
        raise NotPossibleError("there is no terraform")
    with (
        TemporaryDirectory(prefix="costguard-desk-") as name,
        tree_copy() as tree,
        database() as ledger,
        AlibabaCloud(tree, Path(name) / "functions", ledger) as cloud,
        Program("aliyun", cloud.command) as program,
    ):
        desk = Path(name)
        (desk / "bin").mkdir()
        (desk / "functions").mkdir()
        program.put_into(desk / "bin")
        sys.stdout.write(f"  alibaba: Costguard against {cloud.url}; aliyun and Terraform's provider stand in\n")
        answers = {
            "alicloud_account": {"id": ALIBABA_ACCOUNT},
            "alicloud_db_instance": {"connection_string": ledger.inner, "port": str(PORT)},
            "alicloud_db_connection": {"connection_string": ledger.outer},
        }
        (desk / "answers.json").write_text(json.dumps(answers), "utf-8")
        venv = fresh_venv(desk / "venv")
        stage = AlibabaStage(tree, {}, cloud, "alibaba", (ALIBABA_ACCOUNT, MEMBER), HANGZHOU)
        stage.environ = {
            **kept_environ(_NOT_OURS),
            **venv,
            **dict(pair.split("=") for pair in stage.exported(ALIBABA_ACCOUNT).split()),
            "TF_CLI_CONFIG_FILE": str(workshop.cli_config(desk / "terraform")),
            "STAND_IN_ANSWERS": str(desk / "answers.json"),
            "NO_COLOR": "1",
            "COSTGUARD_ALIBABA_ENDPOINT": cloud.url,
            "COSTGUARD_SLACK_URL": cloud.slack.base_url,
            "PATH": f"{desk / 'bin'}{os.pathsep}{venv['PATH']}",
        }
        return list(followed(PAGE, stage, tree))


class AlibabaStage(VendorStage):
    """What a reader of docs/deploy-alibaba.md does beside typing its blocks."""

    @property
    def replacing(self) -> Mapping[str, str]:
        return {"PROJECT": f"costguard-{ALIBABA_ACCOUNT}-{HANGZHOU}"}

    def exported(self, account: str) -> str:
        keys = self.cloud.keys_of(account)
        pair = f"ALIBABA_CLOUD_ACCESS_KEY_ID={keys.key_id} ALIBABA_CLOUD_ACCESS_KEY_SECRET={keys.secret}"
        return pair if account == ALIBABA_ACCOUNT else f"{pair} ALIBABA_CLOUD_REGION={HANGZHOU}"

    def keeping(self, name: str, value: str) -> str:
        where = "--region $REGION --DKMSInstanceId $KMS --EncryptionKeyId $KEY"
        return (
            f"aliyun kms CreateSecret {where} --SecretName costguard/slack-{name} --VersionId v1 --SecretData {value}"
        )

    def summary(self, answer: Any) -> Any:
        return answer

    def lines(self, answer: Any) -> list[str]:
        return [line["message"] for line in answer]

    @property
    def warned(self) -> tuple[str, ...]:
        return ("no-agent",)  # the one machine that nobody measures

    def desk_is_open(self) -> bool:
        return bool(self.cloud.deployed.all("alicloud_db_connection"))

    def role_may_stop(self) -> bool:
        policy = self.cloud.deployed.one("alicloud_ram_policy", policy_name="costguard-idle-gpu")
        return "ecs:StopInstances" in policy["policy_document"]
