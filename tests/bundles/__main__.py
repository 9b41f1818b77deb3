"""`python -m tests.bundles`: every function for three hosts and each of their Pythons, built twice, and called.

What was built is compared, its compiled files are looked at, and it is unpacked and called by a bare interpreter of the
host's Python, once by itself and once through the host's runtime. Then a wheel of the project is installed, and has to
make the same bytes. Needs the package index, or `--wheels DIR` with a folder for each host and Python (`DIR/fc-3.10`
and so on), and those interpreters: where one is missing its functions are built and not called, said aloud.
Takes a quarter of an hour: a command of its own for that. `--hosts`, `--pythons` and `--functions` take a part;
`--into FOLDER` keeps what was built. Of its own: `python -m tests.bundles.images`, `python -m tests.bundles.arm64`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tests.bundles.bill_schema import against_cyclonedx
from tests.bundles.calling import base_of, brief, called, surroundings
from tests.bundles.compiled_files import check_compiled
from tests.bundles.installed import from_a_wheel
from tests.bundles.reporting import UnexpectedError, say
from tests.bundles.runtimes import runtime_client, through_its_runtime

from costguard.cli.operate.bundle import ordered
from costguard.cli.operate.bundling.build import SUMS, Order, build
from costguard.cli.operate.bundling.locks import FetchError, RefusedBundleError, needed
from costguard.cli.operate.bundling.recipes import HOSTS, PYTHONS, LedgerKind, Material, find_material
from costguard.cli.operate.bundling.wheels import WheelTarget, fetch


def main() -> int:
    """0 where everything is as it should be."""
    options = argparse.ArgumentParser(prog="python -m tests.bundles", description=__doc__)
    options.add_argument("--wheels", type=Path, metavar="DIR")
    options.add_argument("--into", type=Path, metavar="FOLDER")
    options.add_argument("--hosts", nargs="+", choices=HOSTS, default=list(HOSTS))
    options.add_argument("--pythons", nargs="+", choices=PYTHONS, default=list(PYTHONS))
    options.add_argument("--functions", nargs="+", default=[])
    chosen = options.parse_args()
    pairs = [(host, one) for host in chosen.hosts for one in HOSTS[host].pythons if one in chosen.pythons]
    try:
        with tempfile.TemporaryDirectory(prefix="costguard-bundles-") as name:
            aside = Path(name)
            refuses_what_is_not_pinned(aside / "refused")
            for host, python in pairs:
                pair = f"{host}-{python}"
                wheels = chosen.wheels / pair if chosen.wheels else fetched(host, python, aside / "wheels" / pair)
                out = (chosen.into or aside / "built") / python
                with surroundings() as settings:  # a ledger that knows no run yet
                    one_host(host, python, wheels, chosen.functions, out, aside / pair, settings[host])
                if pair == "lambda-3.13":
                    from_a_wheel(wheels, aside)
    except UnexpectedError as err:
        sys.stderr.write(f"!! {err}\n")
        return 1
    return 0


def refuses_what_is_not_pinned(aside: Path) -> None:
    """A hash is checked, and what pip says loses its addresses."""
    order = ordered("lambda", "idle_gpu")
    recipe = order.recipes[0]
    pins = order.material.lock(recipe.host, charts=False)
    wanted = WheelTarget(recipe.python, recipe.host.glibc, recipe.arch)
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


def fetched(host: str, python: str, into: Path) -> Path:
    """Every package that may ship to the host, once."""
    order = ordered(host, "digest", python=python, ledger="sql")
    recipe = order.recipes[0]
    into.mkdir(parents=True)
    pins = needed(order.material.lock(recipe.host, charts=True), recipe.without)
    fetch(list(pins.values()), WheelTarget(recipe.python, recipe.host.glibc, recipe.arch), into)
    return into


def one_host(
    host: str,
    python: str,
    wheels: Path,
    functions: Sequence[str],
    out: Path,
    aside: Path,
    settings: Mapping[str, str],
) -> None:
    """Build, compare, unpack, call."""
    order = ordered(host, python=python)
    order = replace(order, wheels=wheels, material=copied(find_material(), aside / "project"))
    if functions:
        order = replace(order, recipes=[one for one in order.recipes if one.function in functions])
    name = f"{host} {python}"
    for bundle in build(order, out):
        count = check_compiled(bundle.path, bundle.recipe)
        size = f"{bundle.zipped / 1e6:.1f} MB, unpacked {bundle.unzipped / 1e6:.1f} MB"
        say(f"{name} {bundle.recipe.function}: {size}, {count} compiled files for its host")
    again = aside / "once more, elsewhere"
    build(replace(order, material=copied(order.material, aside / "another" / "place")), again)
    same(out / host, again / host)
    alone(order, out, aside)
    say(f"{name}: the same bytes twice")
    if order.interpreter is None:
        sys.stderr.write(f"!! no Python {python} here: no function of {host} was called by it\n")
        return
    bare = base_of(order.interpreter.path)
    if host == "lambda":
        runtime_client(python, aside / f"awslambdaric-{python}")
    for recipe in order.recipes:
        bill = json.loads((out / host / f"{recipe.function}.cdx.json").read_bytes())
        if against_cyclonedx(bill):
            raise UnexpectedError(host, recipe.function, "has a wrong bill:", against_cyclonedx(bill)[0])
        folder = aside / "unpacked" / recipe.function
        with zipfile.ZipFile(out / host / f"{recipe.function}.zip") as archive:
            archive.extractall(folder)
        told = called([bare], folder, host, recipe.function, settings, sql=recipe.ledger is LedgerKind.SQL)
        answer = through_its_runtime(recipe, bare, folder, settings, aside)
        say(f"{name} {recipe.function}: {brief(told['answer'])}; through its runtime: {brief(answer)}")


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


def alone(order: Order, out: Path, aside: Path) -> None:
    """A function built by itself is the one that was built with the others."""
    one = replace(order, recipes=order.recipes[-1:])
    bundle = build(one, aside / "alone")[0]
    if digest(bundle.path) != digest(out / bundle.recipe.host.name / bundle.path.name):
        raise UnexpectedError(bundle.path.name, "differs where it is built alone")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
