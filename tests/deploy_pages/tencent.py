"""docs/deploy-tencent.md, followed against the sandbox: built bundles, the vendor's `tccli`; the provider stands in."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.deploy_pages.database import PORT, database
from tests.deploy_pages.deployed import Deployed
from tests.deploy_pages.pages import ROOT, followed, fresh_venv, kept_environ, tree_copy
from tests.deploy_pages.stand_in_cli import tccli
from tests.deploy_pages.tencent_cloud import APP_ID, HUB, MEMBER, TencentCloud
from tests.deploy_pages.vendors import VendorStage
from tests.infra.aws_terraform import NotPossibleError
from tests.infra.stand_in import workshop
from tests.infra.stand_in.made_up_facts import DATA

from cloudstand.fleets import GUANGZHOU

PAGE = ROOT / "docs" / "deploy-tencent.md"
_NOT_OURS = ("AWS_", "TF_", "COSTGUARD_", "ALI", "TENCENTCLOUD_", "TCCLI_", "PYTHON", "VIRTUAL_ENV", "PYENV_VERSION")
_TOLD = DATA["tencentcloud_scf_triggers"]["triggers"][0]
_ADDRESS = {
    "AuthType": "NONE",
    "NetConfig": {"ExtranetUrl": f"https://{APP_ID}-5d1f1a6bcd.{GUANGZHOU}.tencentscf.com/"},
}


def check() -> list[str]:
    """What is wrong with the page.

    Raises:
        NotPossibleError: there is no Terraform, PostgreSQL, `tccli` or Python of the functions' version here.
    """
    if shutil.which("terraform") is None:
        raise NotPossibleError("there is no terraform")
    with (
        TemporaryDirectory(prefix="costguard-desk-") as name,
        tree_copy() as tree,
        database() as ledger,
        TencentCloud(tree, Path(name) / "functions", ledger) as cloud,
    ):
        desk = Path(name)
        for folder in ("bin", "functions", "home"):
            (desk / folder).mkdir()
        version = tccli.put_into(desk / "bin", desk / "home", cloud.url)
        sys.stdout.write(
            f"  tencent: tccli {version} and Costguard against {cloud.url}; Terraform's provider stands in\n"
        )
        instance = {"private_access_ip": ledger.inner, "public_access_host": ledger.outer}
        answers = {
            "tencentcloud_user_info": {"owner_uin": HUB, "app_id": APP_ID},
            "tencentcloud_scf_triggers": {"triggers": [{**_TOLD, "trigger_desc": json.dumps(_ADDRESS)}]},
            "tencentcloud_postgresql_instance": {**instance, "private_access_port": PORT, "public_access_port": PORT},
        }
        (desk / "answers.json").write_text(json.dumps(answers), "utf-8")
        venv = fresh_venv(desk / "venv")
        stage = TencentStage(tree, {}, cloud, "tencent", (HUB, MEMBER), GUANGZHOU)
        stage.environ = {
            **kept_environ(_NOT_OURS),
            **venv,
            **dict(pair.split("=") for pair in stage.exported(HUB).split()),
            "TF_CLI_CONFIG_FILE": str(workshop.cli_config(desk / "terraform")),
            "STAND_IN_ANSWERS": str(desk / "answers.json"),
            "NO_COLOR": "1",
            "COSTGUARD_TENCENT_ENDPOINT": cloud.url,
            "COSTGUARD_SLACK_URL": cloud.slack.base_url,
            "PATH": f"{desk / 'bin'}{os.pathsep}{venv['PATH']}",
        }
        return list(followed(PAGE, stage, tree))


class Replacing(Mapping[str, str]):
    """What a reader fills in; the topic is known once Terraform has made it."""

    def __init__(self, deployed: Deployed) -> None:
        self._deployed = deployed

    def __getitem__(self, value: str) -> str:
        if value != "TOPIC":
            raise KeyError(value)
        return str(self._deployed.one("tencentcloud_cls_topic", topic_name="costguard-idle_gpu")["id"])

    def __iter__(self) -> Iterator[str]:
        return iter(("TOPIC",))

    def __len__(self) -> int:
        return 1


class TencentStage(VendorStage):
    """What a reader of docs/deploy-tencent.md does beside typing its blocks."""

    @property
    def replacing(self) -> Mapping[str, str]:
        return Replacing(self.cloud.deployed)

    def exported(self, account: str) -> str:
        keys = self.cloud.keys_of(account)
        pair = f"TENCENTCLOUD_SECRET_ID={keys.key_id} TENCENTCLOUD_SECRET_KEY={keys.secret}"
        return pair if account == HUB else f"{pair} TENCENTCLOUD_REGION={GUANGZHOU}"

    def keeping(self, name: str, value: str) -> str:
        kept = f"--SecretName costguard-slack-{name} --VersionId v1 --SecretString {value}"
        return f"tccli ssm CreateSecret --region $REGION {kept}"

    def summary(self, answer: Any) -> Any:
        result = answer["Result"]
        return json.loads(result["RetMsg"]) if result["RetMsg"] else result["ErrMsg"]

    def lines(self, answer: Any) -> list[str]:
        return [line["LogJson"] for line in answer["Results"]]

    @property
    def warned(self) -> tuple[str, ...]:
        return "no-agent", "has no dry run"  # the one machine that nobody measures, and as the page has it

    def desk_is_open(self) -> bool:
        return bool(self.cloud.deployed.one("tencentcloud_postgresql_instance")["public_access_switch"])

    def role_may_stop(self) -> bool:
        policy = self.cloud.deployed.one("tencentcloud_cam_policy", name="costguard-idle_gpu")
        return "cvm:StopInstances" in policy["document"]
