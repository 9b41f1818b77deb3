"""`python -m tests.bundles`: every function for three hosts, built twice, compared, unpacked, and called by itself.

Needs the package index, or `--wheels DIR` with a folder for each host (`DIR/lambda`, `DIR/fc`, `DIR/scf`), and an
interpreter of each host's Python, without which that host's functions are built and not called, said aloud. Takes
minutes: a command of its own for that. `--hosts` and `--functions` take a part; `--into FOLDER` keeps what was built.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.bundles.bill_schema import against_cyclonedx
from tests.contract.ledger_servers import SerialDynamoDb, dynamodb_test_client

from costguard.cli.bundle import ordered
from costguard.cli.bundling.build import SUMS, Order, build
from costguard.cli.bundling.compiling import Interpreter
from costguard.cli.bundling.faults import FetchError, RefusedBundleError
from costguard.cli.bundling.locks import needed
from costguard.cli.bundling.material import Material, find_material
from costguard.cli.bundling.recipes import HOSTS, LedgerKind
from costguard.cli.bundling.wheels import Wanted, fetch
from costguard.providers.aws.store import DynamoDbLedger
from costguard.sandbox.sandbox import Sandbox
from costguard.sandbox.wire.server import WireServer
from costguard.sandbox.wire.wsgi import serving

ROOT = Path(__file__).parents[2]
PROBE = Path(__file__).with_name("probe.py")
CLOUDS = ("aliyunsdkcore.client", "tencentcloud.common.common_client", "costguard.providers.alibaba.transport")
SQL = ("sqlalchemy.dialects.postgresql", "psycopg")
MARKS = {
    "lambda": {"AWS_LAMBDA_FUNCTION_NAME": "costguard"},
    "fc": {"FC_FUNCTION_NAME": "costguard"},
    "scf": {"TENCENTCLOUD_RUNENV": "SCF"},
}
SIGNING_SECRET = "0123456789abcdef0123456789abcdef"  # made up


class UnexpectedError(Exception):
    """Told to whoever runs this."""

    def __init__(self, *what: object) -> None:
        super().__init__(" ".join(map(str, what)))


def main() -> int:
    """0 where everything is as it should be."""
    options = argparse.ArgumentParser(prog="python -m tests.bundles", description=__doc__)
    options.add_argument("--wheels", type=Path, metavar="DIR")
    options.add_argument("--into", type=Path, metavar="FOLDER")
    options.add_argument("--hosts", nargs="+", choices=HOSTS, default=list(HOSTS))
    options.add_argument("--functions", nargs="+", default=[])
    chosen = options.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="costguard-bundles-") as name, surroundings() as settings:
            aside = Path(name)
            refuses_what_is_not_pinned(aside / "refused")
            for host in chosen.hosts:
                wheels = chosen.wheels / host if chosen.wheels else fetched(host, aside / "wheels" / host)
                one_host(host, wheels, chosen.functions, chosen.into or aside / "built", aside, settings[host])
    except UnexpectedError as err:
        sys.stderr.write(f"!! {err}\n")
        return 1
    return 0


def refuses_what_is_not_pinned(aside: Path) -> None:
    """A hash is checked, and what pip says loses its addresses."""
    order = ordered("lambda", "idle_gpu")
    recipe = order.recipes[0]
    pins = order.material.lock(recipe.host, charts=False)
    wanted = Wanted(recipe.python, recipe.host.glibc, recipe.arch)
    other = replace(pins["six"], hashes=frozenset({"0" * 64}))
    absent = replace(pins["six"], version="0.0.1")
    for pin, expected in ((other, RefusedBundleError), (absent, FetchError)):
        aside.mkdir(exist_ok=True)
        try:
            fetch([pin], wanted, aside)
        except (RefusedBundleError, FetchError) as err:
            if not isinstance(err, expected) or "://" in str(err):
                raise UnexpectedError(pin.name, pin.version, type(err).__name__, err) from err
        else:
            raise UnexpectedError(pin.name, pin.version, "was fetched")
    say("a hash that is not pinned and a version that is not there are refused")


def fetched(host: str, into: Path) -> Path:
    """Every package that may ship to the host, once."""
    order = ordered(host, "digest", ledger="sql")
    recipe = order.recipes[0]
    into.mkdir(parents=True)
    pins = needed(order.material.lock(recipe.host, charts=True), recipe.without)
    fetch(list(pins.values()), Wanted(recipe.python, recipe.host.glibc, recipe.arch), into)
    return into


def one_host(
    host: str, wheels: Path, functions: Sequence[str], out: Path, aside: Path, settings: Mapping[str, str]
) -> None:
    """Build, compare, unpack, call."""
    order = replace(ordered(host), wheels=wheels, material=copied(find_material(), aside / "project" / host))
    if functions:
        order = replace(order, recipes=[one for one in order.recipes if one.function in functions])
    for bundle in build(order, out):
        say(f"{host} {bundle.recipe.function}: {bundle.zipped / 1e6:.1f} MB, unpacked {bundle.unzipped / 1e6:.1f} MB")
    again = aside / "once more, elsewhere"
    build(replace(order, material=copied(order.material, aside / "another" / "place" / host)), again)
    same(out / host, again / host)
    alone(order, out, aside)
    if order.interpreter is None:
        say(f"!! no Python {order.recipes[0].python} here: no function of {host} was called")
        return
    bare = Interpreter(base_of(order.interpreter.path), order.interpreter.version)
    for recipe in order.recipes:
        bill = json.loads((out / host / f"{recipe.function}.cdx.json").read_bytes())
        if against_cyclonedx(bill):
            raise UnexpectedError(host, recipe.function, "has a wrong bill:", against_cyclonedx(bill)[0])
        folder = aside / "unpacked" / host / recipe.function
        with zipfile.ZipFile(out / host / f"{recipe.function}.zip") as archive:
            archive.extractall(folder)
        clouds = () if recipe.function == "slack_actions" else CLOUDS
        required = (*clouds, *(SQL if recipe.ledger is LedgerKind.SQL else ()))
        told = called(bare, folder, host, recipe.function, settings, required)
        check(host, recipe.function, told)
        say(f"{host} {recipe.function}: {brief(told)}")


def copied(material: Material, into: Path) -> Material:
    """The project as it is now, elsewhere: nobody who works on it meanwhile makes the second build another."""
    for name in ("package", "functions", "requirements"):
        shutil.copytree(getattr(material, name), into / name, ignore=shutil.ignore_patterns("__pycache__"))
    return Material(into / "package", into / "functions", into / "requirements")


def same(one: Path, two: Path) -> None:
    """The same files with the same bytes."""
    for path in sorted(one.glob("*")):
        if path.name == SUMS or path.suffix in {".zip", ".json"}:
            other = two / path.name
            if not other.exists() or digest(path) != digest(other):
                raise UnexpectedError(path.name, "is not the same a second time")
    say(f"{one.name}: the same bytes twice")


def alone(order: Order, out: Path, aside: Path) -> None:
    """A function built by itself is the one that was built with the others."""
    one = replace(order, recipes=order.recipes[-1:])
    bundle = build(one, aside / "alone")[0]
    if digest(bundle.path) != digest(out / bundle.recipe.host.name / bundle.path.name):
        raise UnexpectedError(bundle.path.name, "differs where it is built alone")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def base_of(interpreter: str) -> str:
    """The interpreter below a virtual environment, which has no packages of ours."""
    command = [interpreter, "-c", "import sys; print(getattr(sys, '_base_executable', sys.executable))"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603


def called(
    bare: Interpreter, folder: Path, host: str, function: str, settings: Mapping[str, str], required: Sequence[str]
) -> dict[str, Any]:
    """What the probe told."""
    event = ROOT / "events" / host / f"{function}.json"
    command = [bare.path, "-I", "-S", "-W", "ignore", str(PROBE), str(folder), host, str(event), *required]
    done = subprocess.run(  # noqa: S603 - an interpreter that was found, our own program
        command,
        env={**settings, **MARKS[host], "HOME": str(folder.parent)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode:
        raise UnexpectedError(host, function, done.stderr[-3000:])
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def check(host: str, function: str, told: Mapping[str, Any]) -> None:
    """An answer, from the bundle's own modules."""
    if told["strangers"]:
        raise UnexpectedError(host, function, "used what is not in its bundle:", *told["strangers"][:5])
    if "answer" not in told:
        raise UnexpectedError(host, function, told["error"])
    if function == "slack_actions" and told["answer"]["statusCode"] != 401:
        raise UnexpectedError(host, function, told["answer"])
    if function == "digest" and min(told["drawn"]) < 1000:
        raise UnexpectedError(host, function, "drew", told["drawn"])


def brief(told: Mapping[str, Any]) -> str:
    """In one line."""
    answer = told["answer"]
    names = ("statusCode", "guard", "instances_seen", "findings", "gaps", "keys_seen", "networks_seen")
    return ", ".join(f"{name} {answer[name]}" for name in names if name in answer) or "answered"


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
            "COSTGUARD_SLACK_SIGNING_SECRET": SIGNING_SECRET,
        }
        table = f"dynamodb://costguard?region=us-east-1&endpoint_url={server.url}"
        ledgers = {"lambda": table, "fc": "memory:", "scf": "memory:"}
        yield {host: {**shared, "COSTGUARD_LEDGER": url} for host, url in ledgers.items()}


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
