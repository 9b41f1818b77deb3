"""`costguard deploy aws --backend` by Terraform and AWS's own provider, in the sandbox, where they are found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import pytest
from tests.infra.aws_sandbox import EMULATED, Account, account_served
from tests.infra.aws_terraform import environment

from costguard.cli.operate.deploying.backend import Backend, keep_in_bucket
from costguard.cli.operate.deploying.terraform import Terraform
from costguard.domain.errors import InvalidInputError

ROOT = Path(__file__).parents[2]
REGION = "us-east-1"
pytestmark = pytest.mark.slow  # Terraform itself is started some ten times
_WITHOUT_NAMES_IN_HOSTS = """\
output "backend" {
  value = {
    bucket = local.bucket, region = var.region, encrypt = true, use_lockfile = true, use_path_style = true
  }
}
"""
_MAIN = """\
terraform {
  required_version = ">= 1.10"
}
variable "kept" {
  default = "first"
}
resource "terraform_data" "kept" {
  input = var.kept
}
"""


@dataclass(frozen=True)
class Place:
    """A checkout of which only the state's module is real, and the account it works in."""

    root: Path
    account: Account
    name: str

    @property
    def bucket(self) -> str:
        return f"{self.name}-state-{self.account.number}-{REGION}"

    @property
    def key(self) -> str:
        return f"{self.name}/terraform.tfstate"

    def state(self) -> bytes:
        kept = self.account.client("s3").get_object(Bucket=self.bucket, Key=self.key)
        body: bytes = kept["Body"].read()
        return body

    def checkout(self, name: str) -> Terraform:
        module = self.root / name / "aws"
        shutil.copytree(ROOT / "infra/aws/state", module / "state", ignore=shutil.ignore_patterns(".terraform*"))
        (module / "main.tf").write_text(_MAIN, "utf-8")
        (module / "state/sandbox_override.tf").write_text(EMULATED + _WITHOUT_NAMES_IN_HOSTS, "utf-8")
        found = shutil.which("terraform")
        assert found is not None
        return Terraform.found(found, module)

    def keep(self, program: Terraform) -> Backend:
        return keep_in_bucket(program, "aws", {"region": REGION, "name": self.name})

    def apply(self, program: Terraform, kept: str = "first") -> None:
        plan = self.root / "plan"
        program.make_ready()
        program.plan(plan, [f"-var=kept={kept}"])
        program.apply(plan)

    def objects(self) -> set[str]:
        listed = self.account.client("s3").list_objects_v2(Bucket=self.bucket).get("Contents", [])
        return {one["Key"] for one in listed}


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """One for all: each test takes a deployment of another name."""
    if shutil.which("terraform") is None:
        pytest.skip("there is no Terraform")
    root = tmp_path_factory.mktemp("terraform")
    with account_served() as (served, _), pytest.MonkeyPatch.context() as patch:
        for name, value in {**environment(root), **served.keys}.items():
            patch.setenv(name, value)
        probe = Place(root, served, "probe").checkout("probe")
        if not Terraform(probe.program, probe.module / "state").tries("init", "-input=false"):
            pytest.skip("there is no provider for AWS")
        yield served


@pytest.fixture
def place(tmp_path: Path, account: Account, request: pytest.FixtureRequest) -> Place:
    return Place(tmp_path, account, f"d{crc32(request.node.name.encode()):08x}")


def test_the_bucket_is_made_safe_and_the_state_moved_into_it_and_locked(place: Place) -> None:
    program = place.checkout("first")
    place.apply(program)

    backend = place.keep(program)

    s3, bucket = place.account.client("s3"), place.bucket
    assert backend.bucket == bucket
    assert place.objects() == {f"{place.name}/state.tfstate", place.key}
    assert [one["type"] for one in json.loads(place.state())["resources"]] == ["terraform_data"]
    assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"
    assert all(s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"].values())
    rules = s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"]
    assert rules[0]["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
    assert '"aws:SecureTransport"' in s3.get_bucket_policy(Bucket=bucket)["Policy"]

    place.apply(program, "second")
    instance = json.loads(place.state())["resources"][0]["instances"][0]
    assert instance["attributes"]["output"]["value"] == "second", "what is applied there now"
    lock = {"ID": "1", "Operation": "apply", "Who": "somebody", "Version": "1.11", "Created": "2026-01-01T00:00:00Z"}
    s3.put_object(Bucket=bucket, Key=f"{place.key}.tflock", Body=json.dumps(lock).encode())
    assert not program.tries("plan", "-input=false", "-lock-timeout=0s")
    s3.delete_object(Bucket=bucket, Key=f"{place.key}.tflock")

    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
    assert place.keep(program) == backend, "asking again"
    assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled", "puts back what was taken away"


def test_who_deploys_next_finds_the_state_there_and_nobody_overwrites_it(place: Place) -> None:
    first, next_one, apart = (place.checkout(name) for name in ("first", "next", "apart"))
    place.apply(first)
    place.apply(apart, "another deployment, by mistake of the same name")
    backend = place.keep(first)
    before = place.state()

    assert place.keep(next_one) == backend
    assert not next_one.plan(place.root / "plan", ["-var=kept=first"]), "the same deployment: nothing would change"
    with pytest.raises(InvalidInputError, match="nothing was overwritten"):
        place.keep(apart)

    assert place.state() == before
    assert not (apart.module / "backend.tf").exists()


def test_a_bucket_that_this_did_not_make_is_left_alone(place: Place) -> None:
    place.account.client("s3").create_bucket(Bucket=place.bucket)
    program = place.checkout("first")

    with pytest.raises(InvalidInputError, match="was not made by this"):
        place.keep(program)

    assert place.objects() == set()
    assert "Status" not in place.account.client("s3").get_bucket_versioning(Bucket=place.bucket)
    assert list(program.module.rglob("backend.tf")) == []
