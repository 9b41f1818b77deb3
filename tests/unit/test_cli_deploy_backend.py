"""`costguard deploy --backend`: when it is offered, what it writes, and when it leaves everything as it is."""

from __future__ import annotations

import json
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.infra.parity_hcl import read_folder

from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.operate.deploying.backend import FILE, KINDS, Backend, declared_in

ROOT = Path(__file__).parents[2]
ARGUMENTS = {
    "aws": {"bucket": "costguard-state-1", "region": "eu-central-1", "encrypt": True, "use_lockfile": True},
    "alibaba": {
        "bucket": "costguard-state-1",
        "prefix": "terraform",
        "region": "cn-hangzhou",
        "encrypt": True,
        "acl": "private",
        "tablestore_endpoint": "https://cgstate-1.cn-hangzhou.ots.aliyuncs.com",
        "tablestore_table": "statelock",
    },
    "tencent": {"bucket": "costguard-state-1", "prefix": "terraform", "region": "ap-guangzhou", "encrypt": True},
}
_PROGRAM = """\
#!{python} -IS
import json, pathlib, sys
chdir, what, rest = sys.argv[1].removeprefix("-chdir="), sys.argv[2], sys.argv[3:]
here, root = pathlib.Path(chdir), pathlib.Path({root!r})
says = json.loads((root / "says").read_text())
with open(root / "calls", "a") as calls:
    calls.write(json.dumps([here.name, what, *rest]) + "\\n")
alone = here.name.startswith("costguard-backend-")
made = root / "made"
if here.name == "state" and what == "apply" and says["fails"] != "apply":
    made.touch()
if alone and what == "init" and not (says["reached"] or made.exists()):
    sys.exit(1)
if here.name == "state" and what == says["fails"]:
    sys.exit(1)
change = [{{"address": "b.state", "mode": "managed", "type": "b", "change": {{"actions": [says["change"]]}}}}]
output = {{"backend": {{"value": says["backend"]}}}}
variables = {{"region": {{"value": says["region"]}}}}
plan = {{
    "format_version": "1.2", "resource_changes": change if here.name == "state" else [],
    "planned_values": {{"outputs": output}}, "variables": variables,
}}
print(says["pulled"] if what == "state" else json.dumps(plan) if what == "show" else "{{}}")
sys.exit(2 if what == "plan" and here.name == "state" and says["change"] != "no-op" else 0)
"""


@dataclass
class Fake:
    """Terraform, which does as it is told, and a checkout of modules."""

    root: Path
    cloud: str

    def says(
        self, *, reached: bool = False, change: str = "create", fails: str = "", pulled: str = "", region: str = "r"
    ) -> Fake:
        told = {"reached": reached, "change": change, "fails": fails, "pulled": pulled, "region": region}
        (self.root / "says").write_text(json.dumps({**told, "backend": ARGUMENTS[self.cloud]}), encoding="utf-8")
        return self

    @property
    def module(self) -> Path:
        return self.root / "infra" / self.cloud

    @property
    def calls(self) -> list[list[str]]:
        calls = self.root / "calls"
        return [json.loads(line) for line in calls.read_text("utf-8").splitlines()] if calls.exists() else []

    def of(self, folder: str) -> list[str]:
        return [
            " ".join(call[1:2] + [word for word in call[2:] if word.startswith("-migrate")])
            for call in self.calls
            if call[0] == folder
        ]

    def deploy(self, *more: str) -> int:
        (self.root / "bundles").mkdir(exist_ok=True)
        given = ["--terraform", str(self.root / "terraform"), "--bundles", str(self.root / "bundles"), "--yes"]
        return run(["deploy", self.cloud, "--infra", str(self.root / "infra"), *given, "--var", "region=r", *more])


@pytest.fixture(params=sorted(KINDS))
def fake(tmp_path: Path, request: pytest.FixtureRequest) -> Fake:
    made = Fake(tmp_path, request.param)
    (made.module / "state").mkdir(parents=True)
    for folder in (made.module, made.module / "state"):
        (folder / "main.tf").write_text("# a module\n", encoding="utf-8")
    program = tmp_path / "terraform"
    program.write_text(_PROGRAM.format(python=sys.executable, root=str(tmp_path)), encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return made.says()


def state_of(module: Path) -> None:
    (module / "terraform.tfstate").write_text('{"resources": [{"type": "t"}]}', encoding="utf-8")


def test_the_bucket_comes_first_and_the_module_says_where_its_state_is(
    fake: Fake, capfd: pytest.CaptureFixture[str]
) -> None:
    assert fake.deploy("--backend") == Exit.OK

    assert fake.of("state")[:4] == ["init", "plan", "show", "apply"]
    written = (fake.module / FILE).read_text("utf-8")
    assert f'backend "{KINDS[fake.cloud]}"' in written
    assert '"costguard/terraform.tfstate"' in written
    assert '"costguard/state.tfstate"' in (fake.module / "state" / FILE).read_text("utf-8")
    assert f"{KINDS[fake.cloud]}://costguard-state-1/costguard/terraform.tfstate" in capfd.readouterr().err
    assert "init -migrate-state" not in fake.of(fake.cloud), "there was nothing to move"


def test_a_state_beside_the_module_is_moved_by_terraform(fake: Fake) -> None:
    state_of(fake.module)
    assert fake.deploy("--backend") == Exit.OK
    assert fake.of(fake.cloud)[0] == "init -migrate-state"


@pytest.mark.parametrize("pulled", ['{"resources": [{"type": "t"}]}', '{"outputs": {"a": 1}}'])
def test_a_state_that_is_there_is_never_written_over(
    fake: Fake, pulled: str, capfd: pytest.CaptureFixture[str]
) -> None:
    state_of(fake.module)
    fake.says(reached=True, pulled=pulled, change="no-op")

    assert fake.deploy("--backend") == Exit.BAD_INPUT
    assert "nothing was overwritten" in capfd.readouterr().err
    assert not (fake.module / FILE).exists()


def test_a_bucket_that_this_did_not_make_is_left_alone(fake: Fake, capfd: pytest.CaptureFixture[str]) -> None:
    fake.says(reached=True, change="create")

    assert fake.deploy("--backend") == Exit.BAD_INPUT
    assert "was not made by this" in capfd.readouterr().err
    assert "apply" not in fake.of("state")
    assert list(fake.module.rglob(FILE)) == []


def test_a_bucket_that_cannot_be_made_changes_nothing(fake: Fake) -> None:
    fake.says(fails="apply")
    assert fake.deploy("--backend") == Exit.UNAVAILABLE
    assert list(fake.module.rglob(FILE)) == []


def test_without_an_answer_the_state_stays_and_people_are_told(fake: Fake, capfd: pytest.CaptureFixture[str]) -> None:
    assert fake.deploy() == Exit.OK
    assert "--backend keeps it in a bucket" in capfd.readouterr().err
    assert fake.deploy("--no-backend") == Exit.OK
    assert "--backend" not in capfd.readouterr().err
    assert list(fake.module.rglob(FILE)) == []


def test_a_place_that_somebody_chose_stays(fake: Fake, capfd: pytest.CaptureFixture[str]) -> None:
    (fake.module / "versions.tf").write_text('terraform {\n  backend "http" {}\n}\n', encoding="utf-8")

    assert fake.deploy() == Exit.OK
    assert fake.of("state") == []
    assert fake.deploy("--backend") == Exit.BAD_INPUT
    assert "versions.tf says already where its state is kept" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("more", "said"), [(("--plan-only",), "give one of them"), (("--var", "other=1"), "name it, such as --var region")]
)
def test_what_makes_no_sense_is_refused(
    fake: Fake, more: tuple[str, ...], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    fake.says(region="")
    assert fake.deploy("--backend", *more) == Exit.BAD_INPUT
    assert said in capfd.readouterr().err
    assert "apply" not in fake.of("state")


def test_workspaces_are_moved_by_hand(fake: Fake, capfd: pytest.CaptureFixture[str]) -> None:
    (fake.module / "terraform.tfstate.d").mkdir()
    assert fake.deploy("--backend") == Exit.BAD_INPUT
    assert "has workspaces" in capfd.readouterr().err


@pytest.mark.parametrize("cloud", sorted(KINDS))
def test_the_module_of_the_bucket_makes_it_private_encrypted_versioned_and_keeps_it(cloud: str) -> None:
    text = (ROOT / "infra" / cloud / "state" / "main.tf").read_text("utf-8")
    assert "prevent_destroy = true" in text
    assert "AES256" in text
    assert "encrypt" in text.partition('output "backend"')[2]
    versioned = {"aws": 'status = "Enabled"', "alibaba": 'status = "Enabled"', "tencent": "versioning_enable    = true"}
    assert versioned[cloud] in text
    lock = {"aws": "use_lockfile = true", "alibaba": "tablestore_table", "tencent": 'backend "cos" locks'}
    assert lock[cloud] in text or lock[cloud].replace('"', '\\"') in text
    blocked = {
        "aws": "restrict_public_buckets = true",
        "alibaba": "block_public_access = true",
        "tencent": '= "private"',
    }
    assert blocked[cloud] in text
    declared = {
        block.labels[0]
        for file in read_folder(ROOT / f"infra/{cloud}/state").values()
        for block in file.inner("variable")
    }
    assert declared == {"name", "region"}


def test_a_backend_is_declared_by_more_than_a_comment(tmp_path: Path) -> None:
    assert declared_in(ROOT / "infra/aws") == ""
    (tmp_path / "a.tf").write_text('terraform {\n  # backend "s3" {}\n}\n', encoding="utf-8")
    assert declared_in(tmp_path) == ""
    (tmp_path / "b.tf").write_text(Backend("s3", {"bucket": "b", "encrypt": True}).text(), encoding="utf-8")
    assert declared_in(tmp_path) == "b.tf"
