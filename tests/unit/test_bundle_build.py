"""Bundles: the same bytes every time, only what is needed, checked, and never half written."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.bundles.bill_schema import against_cyclonedx
from tests.unit.bundle_kit import ALPHA, PYTHON, Kit, make_kit, write_wheel

from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.operate.bundling import recipes
from costguard.cli.operate.bundling.build import build
from costguard.cli.operate.bundling.compiling import find_interpreter, named_interpreter
from costguard.cli.operate.bundling.locks import RefusedBundleError, read_lock
from costguard.cli.operate.bundling.recipes import LedgerKind, find_material
from costguard.domain.errors import InvalidInputError

CACHED = f"cpython-3{PYTHON.partition('.')[2]}.pyc"


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return make_kit(tmp_path / "project")


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_project_elsewhere_gives_the_same_bytes(kit: Kit, tmp_path: Path) -> None:
    again = make_kit(tmp_path / "another" / "and deeper")
    os.utime(again.root / "costguard/late.py", (1, 1))

    build(kit.order("idle_gpu"), tmp_path / "one")
    build(again.order("digest", "idle_gpu"), tmp_path / "two")

    one, two = everything(tmp_path / "one"), everything(tmp_path / "two")
    assert set(one) == {"lambda/idle_gpu.zip", "lambda/idle_gpu.cdx.json", "lambda/SHA256SUMS"}
    assert {name: one[name] == two[name] for name in one if name != "lambda/SHA256SUMS"} == {
        "lambda/idle_gpu.zip": True,
        "lambda/idle_gpu.cdx.json": True,
    }
    assert str(tmp_path).encode() not in b"".join(contents(tmp_path / "one/lambda/idle_gpu.zip").values())


def test_entries_are_in_order_and_tell_neither_time_nor_user(kit: Kit, tmp_path: Path) -> None:
    build(kit.order("idle_gpu", compiled=False), tmp_path)
    with zipfile.ZipFile(tmp_path / "lambda/idle_gpu.zip") as archive:
        entries = archive.infolist()
    names = [entry.filename for entry in entries]
    assert names == sorted(names)
    assert {(entry.date_time, entry.external_attr >> 16, entry.create_system) for entry in entries} == {
        ((1980, 1, 1, 0, 0, 0), 0o100644, 3)
    }


def test_a_bundle_has_what_its_function_reaches_and_no_more(kit: Kit, tmp_path: Path) -> None:
    build(kit.order("idle_gpu"), tmp_path)

    assert sorted(contents(tmp_path / "lambda/idle_gpu.zip")) == sorted(
        [
            *("handler.py", f"__pycache__/handler.{CACHED}", "function.yaml"),
            *("costguard/__init__.py", f"costguard/__pycache__/__init__.{CACHED}"),
            *("costguard/late.py", f"costguard/__pycache__/late.{CACHED}"),
            *("costguard/faas/__init__.py", f"costguard/faas/__pycache__/__init__.{CACHED}"),
            *("costguard/faas/handler.py", f"costguard/faas/__pycache__/handler.{CACHED}"),
            *("costguard/faas/container.py", f"costguard/faas/__pycache__/container.{CACHED}"),
            *("alpha/__init__.pyc", "alpha/other_syntax.py"),
            *("alpha-1.0.dist-info/METADATA", "alpha-1.0.dist-info/licenses/LICENSE"),
            *("beta.pyc", "beta_two-2.0.dist-info/METADATA"),
        ]
    )


def test_a_bundle_runs_with_nothing_else_on_the_path(kit: Kit, tmp_path: Path) -> None:
    build(kit.order("idle_gpu"), tmp_path)
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import handler, alpha, beta; "
        "print(sorted(handler.handler), alpha.one(), alpha.one.__doc__, handler.__doc__)"
    )
    command = [sys.executable, "-I", "-S", "-c", script, str(tmp_path / "lambda/idle_gpu.zip")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own interpreter
    assert done.stdout == "['a', 'b', 'c'] 1 None A function.\n"


def test_sql_ships_only_where_it_is_asked_for(kit: Kit, tmp_path: Path) -> None:
    plain = build(kit.order("idle_gpu", compiled=False), tmp_path / "plain")
    sql = build(kit.order("idle_gpu", compiled=False, ledger=LedgerKind.SQL), tmp_path / "sql")
    assert "sqlalchemy/__init__.py" not in contents(plain[0].path)
    assert {"sqlalchemy/__init__.py", "greenlet/__init__.py"} <= set(contents(sql[0].path))
    assert (plain[0].packages, sql[0].packages) == (2, 4)


def test_without_an_interpreter_sources_ship(kit: Kit, tmp_path: Path) -> None:
    build(kit.order("idle_gpu", compiled=False), tmp_path)
    names = contents(tmp_path / "lambda/idle_gpu.zip")
    assert "alpha/__init__.py" in names
    assert not [name for name in names if name.endswith(".pyc")]


def test_the_bill_names_every_package_with_hash_licence_and_who_asked(kit: Kit, tmp_path: Path) -> None:
    bundle = build(kit.order("idle_gpu", compiled=False), tmp_path)[0]
    bill = json.loads((tmp_path / "lambda/idle_gpu.cdx.json").read_bytes())

    assert against_cyclonedx(bill) == []
    wheel = hashlib.sha256((kit.wheels / "alpha-1.0-py3-none-any.whl").read_bytes()).hexdigest()
    alpha, beta = bill["components"]
    assert (alpha["purl"], alpha["hashes"]) == ("pkg:pypi/alpha@1.0", [{"alg": "SHA-256", "content": wheel}])
    assert (alpha["licenses"], beta["licenses"]) == ([{"expression": "MIT"}], [{"license": {"name": "ISC"}}])
    about = bill["metadata"]["component"]
    assert about["hashes"] == [{"alg": "SHA-256", "content": bundle.sha256}]
    wants = {entry["ref"]: entry["dependsOn"] for entry in bill["dependencies"]}
    assert wants[about["bom-ref"]] == ["pkg:pypi/alpha@1.0"]
    assert wants["pkg:pypi/alpha@1.0"] == ["pkg:pypi/beta-two@2.0"]


def test_the_sums_cover_all_that_is_in_the_folder(kit: Kit, tmp_path: Path) -> None:
    build(kit.order("digest", compiled=False), tmp_path)
    build(kit.order("idle_gpu", compiled=False), tmp_path)
    folder = tmp_path / "lambda"
    lines = [line.split("  ") for line in (folder / "SHA256SUMS").read_text().splitlines()]
    told = {name: digest for digest, name in lines}
    assert set(told) == {f"{name}.{end}" for name in ("digest", "idle_gpu") for end in ("zip", "cdx.json")}
    assert all(hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest for name, digest in told.items())


def test_a_changed_wheel_is_refused_and_nothing_is_written(kit: Kit, tmp_path: Path) -> None:
    build(kit.order("idle_gpu", compiled=False), tmp_path)
    before = everything(tmp_path / "lambda")
    write_wheel(kit.wheels, "alpha-1.0-py3-none-any.whl", {**ALPHA, "alpha/__init__.py": "evil = True\n"})

    with pytest.raises(RefusedBundleError, match=r"alpha-1\.0-py3-none-any\.whl: sha256 .* is not among the hashes"):
        build(kit.order("digest", "idle_gpu", compiled=False), tmp_path)

    assert everything(tmp_path / "lambda") == before


def test_a_wheel_that_writes_elsewhere_is_refused(kit: Kit, tmp_path: Path) -> None:
    path = write_wheel(kit.wheels, "alpha-1.0-py3-none-any.whl", {"../outside.py": ""})
    lock = kit.root / "requirements/lambda.txt"
    old = next(iter(read_lock(lock.read_text(), "lock")["alpha"].hashes))
    lock.write_text(lock.read_text().replace(old, hashlib.sha256(path.read_bytes()).hexdigest()))
    with pytest.raises(RefusedBundleError, match="written elsewhere"):
        build(kit.order("idle_gpu", compiled=False), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_bundle_over_its_limit_is_refused(kit: Kit, tmp_path: Path) -> None:
    large = os.urandom(12 * recipes.MEGABYTE)  # cannot be made smaller
    (kit.root / "functions/idle_gpu/function.yaml").write_bytes(large)
    with pytest.raises(RefusedBundleError, match="at most 12 MB are allowed; nothing was written"):
        build(kit.order("digest", "idle_gpu", compiled=False), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_missing_wheel_is_named(kit: Kit, tmp_path: Path) -> None:
    (kit.wheels / "beta_two-2.0-py3-none-any.whl").unlink()
    with pytest.raises(InvalidInputError, match=r"no wheel of beta-two 2\.0 for Python"):
        build(kit.order("idle_gpu", compiled=False), tmp_path / "out")


def test_an_interpreter_of_another_version_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"expected Python 3\.7"):
        named_interpreter(sys.executable, "3.7")
    with pytest.raises(InvalidInputError, match="no CPython that starts"):
        named_interpreter("/nowhere/python3", PYTHON)
    assert find_interpreter("3.99") is None


def test_a_wheels_own_functions_and_locks_come_before_a_checkouts(kit: Kit) -> None:
    checkout = kit.root / "checkout"
    package = checkout / "shared/costguard"
    for folder in ("functions/idle_gpu", "infra/requirements"):
        (checkout / folder).mkdir(parents=True)
    package.mkdir(parents=True)
    assert find_material(package).functions == checkout / "functions"
    for folder in ("_deploy/functions", "_deploy/requirements"):
        (package / folder).mkdir(parents=True)
    assert find_material(package).requirements == package / "_deploy/requirements"
    with pytest.raises(InvalidInputError, match="neither this installation nor a checkout"):
        find_material(kit.root / "site-packages/costguard")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["azure"], "there is no host 'azure'; there is lambda, fc, scf"),
        (["fc", "--arch", "arm64"], "fc runs on x86_64, not on arm64"),
        (["scf", "--arch", "sparc"], "--arch is x86_64 or arm64"),
        (["lambda", "--python", "3.9"], "expected one of 3.10, 3.11, 3.12, 3.13"),
        (["lambda", "--ledger", "redis"], "--ledger is dynamodb or sql"),
        (["lambda", "--wheels", "/nowhere"], "--wheels /nowhere: no such folder"),
        (["lambda", "no_such"], "there is no function 'no_such'; there is budget, digest, idle_gpu"),
        (["lambda", "--interpreter", "/nowhere"], "--interpreter /nowhere: no CPython that starts"),
    ],
)
def test_wrong_options_are_told(
    arguments: list[str], told: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(["bundle", *arguments, "--out", str(out)]) == Exit.BAD_INPUT
    assert told in capfd.readouterr().err
    assert not out.exists()
