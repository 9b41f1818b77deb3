"""`python -m tests.bundles.images`: infra/images/*.Dockerfile built as they are from bundles, started, and called.

Needs buildah and root, and no Docker, daemon or registry: base images are stand-ins made by debootstrap (`bases.py`).
With `--named-bases` they are those that the recipes name, from their registries. Makes the bundles, or takes a folder
that `costguard bundle` wrote with `--bundles`. For each host and function: a changed byte and a sum that is not listed
end the build; the image has the base's files and the function's, all readable by anybody and writable by root alone; it
is started by its own command as its own user, is sent what the platform sends, answers, and has changed no file.
Containers have a network of loopback alone. Takes some five minutes, two of them the stand-ins, which `--store FOLDER`
keeps for the next time. `--storage-driver vfs` is slow, and for machines that are containers themselves.
`--if-possible` says aloud what is not installed, and is content.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.bundles.bases import BASES, make_bases
from tests.bundles.calling import ROOT, brief, surroundings
from tests.bundles.engine import Engine, alone_on_loopback, check_possible
from tests.bundles.image_calls import call_over_http, call_over_runtime_api
from tests.bundles.image_files import Entry, added_files, entries_of
from tests.bundles.reporting import NotPossibleError, UnexpectedError, say

from costguard.cli.operate.bundle import ordered
from costguard.cli.operate.bundling.build import SUMS, build
from costguard.cli.operate.bundling.recipes import HOSTS

RECIPES = ROOT / "infra/images"
PYTHON = "3.13"
_SERVED = r"function/|usr/local/lib/python3\.\d+/(.*/)?__pycache__/"
_PLACES = {"lambda": "var/task/", "fc": _SERVED, "scf": _SERVED}
"""Where an image has more than its base: the function, and compiled files of Python's own library."""


@dataclass(frozen=True)
class _Base:
    name: str
    files: Mapping[str, Entry]


def main() -> int:
    """0 where everything is as it should be, or cannot be known and need not."""
    options = argparse.ArgumentParser(prog="python -m tests.bundles.images", description=__doc__)
    options.add_argument("--bundles", type=Path, metavar="DIR")
    options.add_argument("--hosts", nargs="+", choices=HOSTS, default=list(HOSTS))
    options.add_argument("--functions", nargs="+", default=["idle_gpu", "slack_actions"])
    options.add_argument("--named-bases", action="store_true")
    options.add_argument("--store", type=Path, metavar="FOLDER")
    options.add_argument("--storage-driver", choices=("overlay", "vfs"), default="overlay")
    options.add_argument("--if-possible", action="store_true")
    chosen = options.parse_args()
    try:
        check_possible("buildah", *(() if chosen.named_bases else ("debootstrap",)))
        with tempfile.TemporaryDirectory(prefix="costguard-images-") as name:
            aside = Path(name)
            bundles = chosen.bundles or _bundled(chosen.hosts, aside / "bundles")
            engine = Engine(chosen.store or aside / "store", chosen.storage_driver)
            bases = _bases(engine, chosen.hosts, aside, named=chosen.named_bases)
            alone_on_loopback()
            for host in chosen.hosts:
                _refuses(engine, host, chosen.functions[0], bases[host], bundles, aside / "broken")
                for function in chosen.functions:
                    _one(engine, host, function, bases[host], bundles, aside)
    except NotPossibleError as err:
        sys.stderr.write(f"!! images are not checked: {err}\n")
        return 0 if chosen.if_possible else 1
    except UnexpectedError as err:
        sys.stderr.write(f"!! {err}\n")
        return 1
    return 0


def _bundled(hosts: list[str], out: Path) -> Path:
    for host in hosts:
        build(ordered(host, python=PYTHON), out)
        say(f"{host}: bundles for Python {PYTHON} are made")
    return out


def _bases(engine: Engine, hosts: list[str], aside: Path, *, named: bool) -> Mapping[str, _Base]:
    if named:
        names = {host: _named_base(host) for host in hosts}
    else:
        if not engine.has(BASES.values()):
            make_bases(engine, PYTHON, aside)
        names = {host: BASES["lambda" if host == "lambda" else "python"] for host in hosts}
    found = {}
    for name in sorted(set(names.values())):
        with engine.container(name) as container, engine.files(container) as files:
            found[name] = _Base(name, entries_of(files))
        say(f"base {name}: {_megabytes(found[name].files)}")
    return {host: found[name] for host, name in names.items()}


def _named_base(host: str) -> str:
    found = re.search(r"^ARG BASE=(\S+)$", (RECIPES / f"{host}.Dockerfile").read_text("utf-8"), re.MULTILINE)
    if found is None:
        raise UnexpectedError(host, "names no base")
    return found[1]


def _one(engine: Engine, host: str, function: str, base: _Base, bundles: Path, aside: Path) -> None:
    recipe, image = RECIPES / f"{host}.Dockerfile", f"localhost/costguard-{host}-{function.replace('_', '-')}"
    engine.build(recipe, bundles, {"BASE": base.name, "FUNCTION": function}, image)
    with engine.container(image) as container, engine.files(container) as files:
        before = entries_of(files)
        added = added_files(base.files, before, _PLACES[host])
        log = aside / f"{host}-{function}.log"
        with surroundings() as settings:
            call = call_over_runtime_api if host == "lambda" else call_over_http
            told = call(engine, container, image, host, function, settings[host], log)
        added_files(before, entries_of(files), "nothing may be written")
    say(f"{host} {function}: {_megabytes(added)} beyond the base; user {told.user}, {told.after}, {brief(told.answer)}")


def _refuses(engine: Engine, host: str, function: str, base: _Base, bundles: Path, broken: Path) -> None:
    """One byte that is another than was summed, and sums that do not name the zip."""
    listed = (bundles / host / SUMS).read_text("utf-8")
    body = (bundles / host / f"{function}.zip").read_bytes()
    others = "".join(line for line in listed.splitlines(keepends=True) if f" {function}.zip" not in line)
    for sums, zipped, told in (
        (listed, body[:-1] + bytes([body[-1] ^ 1]), "did NOT match"),
        (others, body, "no file was"),
    ):
        shutil.rmtree(broken, ignore_errors=True)
        (broken / host).mkdir(parents=True)
        (broken / host / SUMS).write_text(sums, "utf-8")
        (broken / host / f"{function}.zip").write_bytes(zipped)
        try:
            arguments = {"BASE": base.name, "FUNCTION": function}
            engine.build(RECIPES / f"{host}.Dockerfile", broken, arguments, "localhost/costguard-broken")
        except UnexpectedError as err:
            if told not in str(err):
                raise
        else:
            raise UnexpectedError(host, function, "an image was made of a bundle that is not the one that was summed")
    say(f"{host}: no image is made of a zip with another byte, or with none of the sums")


def _megabytes(entries: Mapping[str, Entry]) -> str:
    return f"{sum(entry.size for entry in entries.values()) / 1e6:.0f} MB in {len(entries)} files"


if __name__ == "__main__":
    sys.exit(main())
