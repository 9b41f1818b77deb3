"""Calls functions from their unpacked bundles by an interpreter that has nothing of ours, against AWS's stand-in."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bundles.reporting import UnexpectedError, done
from tests.contract.ledger_servers import SerialDynamoDb, dynamodb_test_client

from cloudstand.wire.server import WireServer
from cloudstand.wire.wsgi import serving
from costguard.cli.sandbox.running import Sandbox
from costguard.providers.aws.core.store import DynamoDbLedger

ROOT = Path(__file__).parents[2]
PROBE = Path(__file__).with_name("probe.py")
MARKS = {
    "lambda": {"AWS_LAMBDA_FUNCTION_NAME": "costguard"},
    "fc": {"FC_FUNCTION_NAME": "costguard"},
    "scf": {"TENCENTCLOUD_RUNENV": "SCF"},
}
_CLOUDS = ("aliyunsdkcore.client", "tencentcloud.common.common_client", "costguard.providers.alibaba.core.transport")
_SQL = ("sqlalchemy.dialects.postgresql", "psycopg")
_LONGEST_SECONDS = 600
_SIGNED_WITH = "0a" * 16  # made up


@contextmanager
def surroundings() -> Iterator[Mapping[str, Mapping[str, str]]]:
    """AWS's stand-in and a DynamoDB table; by host, the settings that lead there."""
    with Sandbox.start() as sandbox, WireServer(serving(SerialDynamoDb())) as server:
        ledger = DynamoDbLedger(dynamodb_test_client(server.url), "costguard")
        ledger.create_table()
        ledger.close()
        shared = {
            "AWS_ENDPOINT_URL": sandbox.endpoint_url,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": sandbox.credentials.access_key_id,
            "AWS_SECRET_ACCESS_KEY": sandbox.credentials.secret_access_key,
            "AWS_EC2_METADATA_DISABLED": "true",
            "COSTGUARD_CLOUD": "aws",
            "COSTGUARD_SLACK_SIGNING_SECRET": _SIGNED_WITH,
        }
        table = f"dynamodb://costguard?region=us-east-1&endpoint_url={server.url}"
        ledgers = {"lambda": table, "fc": "memory:", "scf": "memory:"}
        yield {host: {**shared, "COSTGUARD_LEDGER": url} for host, url in ledgers.items()}


def event_of(host: str, function: str) -> bytes:
    """The sample of what the host delivers to it."""
    return (ROOT / "events" / host / f"{function}.json").read_bytes()


def base_of(interpreter: str) -> str:
    """The interpreter below a virtual environment, which has no packages of ours."""
    return done([interpreter, "-c", "import sys; print(getattr(sys, '_base_executable', sys.executable))"]).strip()


def called(
    bare: Sequence[str], folder: Path, host: str, function: str, settings: Mapping[str, str], *, sql: bool
) -> dict[str, Any]:
    """What the probe told; `bare` is the interpreter, and what starts it where it is of another processor."""
    clouds = () if function == "slack_actions" else _CLOUDS
    event = ROOT / "events" / host / f"{function}.json"
    flags = ("-I", "-S", "-W", "ignore")
    try:
        ended = subprocess.run(  # noqa: S603 - an interpreter that was found, our own program
            [*bare, *flags, str(PROBE), str(folder), host, str(event), *clouds, *(_SQL if sql else ())],
            env={**settings, **MARKS[host], "HOME": str(folder.parent)},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LONGEST_SECONDS,
        )
    except subprocess.TimeoutExpired as err:
        raise UnexpectedError(host, function, "did not end within", _LONGEST_SECONDS, "seconds") from err
    if ended.returncode:
        raise UnexpectedError(host, function, ended.stderr[-3000:])
    told: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    _check(host, function, told)
    return told


def _check(host: str, function: str, told: Mapping[str, Any]) -> None:
    """An answer, from the bundle's own modules."""
    if told["strangers"]:
        raise UnexpectedError(host, function, "used what is not in its bundle:", *told["strangers"][:5])
    if "answer" not in told:
        raise UnexpectedError(host, function, told["error"])
    check_answer(host, function, told["answer"])
    if function == "digest" and min(told["drawn"]) < 1000:
        raise UnexpectedError(host, function, "drew", told["drawn"])


def check_answer(host: str, function: str, answer: Any) -> None:
    """A run's summary; of `slack_actions`, that the sample's signature is not believed."""
    asked = {"slack_actions": ("statusCode", 401), "idle_gpu": ("gaps", 0)}.get(function)
    if not isinstance(answer, Mapping) or (asked is not None and answer.get(asked[0]) != asked[1]):
        raise UnexpectedError(host, function, answer)


def brief(answer: Mapping[str, Any]) -> str:
    """In one line."""
    names = ("statusCode", "guard", "instances_seen", "findings", "gaps", "keys_seen", "networks_seen")
    return ", ".join(f"{name} {answer[name]}" for name in names if name in answer) or "answered"
