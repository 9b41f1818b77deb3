"""`python -m tests.bundles.arm64`: a bundle for Lambda on arm64: every compiled file is looked at, and it is called.

Needs the package index; to call it on another processor, qemu-user-static and debootstrap as well, which fetches
Debian's packages for arm64, of a release whose Python is the bundle's, into a folder, by root. What is not at hand is
told aloud; `--if-possible` is content with that. Drawing in the emulator did not end within ten minutes on a busy
machine, so that of `digest` only the files are looked at, unless `--call digest` asks for more.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from tests.bundles.calling import brief, called, surroundings
from tests.bundles.compiled_files import check_compiled
from tests.bundles.reporting import NotPossibleError, UnexpectedError, done, say

from costguard.cli.operate.bundle import ordered
from costguard.cli.operate.bundling.build import build
from costguard.cli.operate.bundling.recipes import LedgerKind

PYTHON = "3.13"
_SUITE, _MIRROR = "trixie", "http://deb.debian.org/debian"  # its Python is 3.13
_QEMU = "qemu-aarch64-static"


def main() -> int:
    """0 where everything is as it should be, or cannot be known and need not."""
    options = argparse.ArgumentParser(prog="python -m tests.bundles.arm64", description=__doc__)
    options.add_argument(
        "--functions", nargs="+", default=["idle_gpu", "digest"]
    )  # `digest` has every package there is
    options.add_argument("--call", nargs="+", default=["idle_gpu"])
    options.add_argument("--if-possible", action="store_true")
    chosen = options.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="costguard-arm64-") as name:
            aside = Path(name)
            for function in sorted({*chosen.functions, *chosen.call}):
                _built(function, aside)
            bare = _interpreter(aside / "debian")
            for function in chosen.call:
                with surroundings() as settings:
                    told = called(bare, aside / function, "lambda", function, settings["lambda"], sql=True)
                say(f"arm64 {function}: {brief(told['answer'])}")
    except NotPossibleError as err:
        sys.stderr.write(f"!! no bundle for arm64 was called: {err}\n")
        return 0 if chosen.if_possible else 1
    except UnexpectedError as err:
        sys.stderr.write(f"!! {err}\n")
        return 1
    return 0


def _built(function: str, aside: Path) -> None:
    """The bundle with every ledger, unpacked to `aside`/FUNCTION."""
    order = ordered("lambda", function, python=PYTHON, arch="arm64", ledger=LedgerKind.SQL.value)
    (bundle,) = build(order, aside / "built")
    count = check_compiled(bundle.path, bundle.recipe)
    say(f"arm64 {function}: {bundle.zipped / 1e6:.1f} MB, {count} compiled files, all for arm64 and Python {PYTHON}")
    with zipfile.ZipFile(bundle.path) as archive:
        archive.extractall(aside / function)


def _interpreter(root: Path) -> tuple[str, ...]:
    """What starts a Python of this processor that has nothing but its own library.

    Raises:
        NotPossibleError: something has to be installed first.
    """
    missing = [name for name in ("debootstrap", _QEMU, "dpkg-deb") if shutil.which(name) is None]
    if missing:
        message = f"{', '.join(missing)}: not installed; on Debian `apt-get install debootstrap qemu-user-static`"
        raise NotPossibleError(message)
    if os.geteuid() != 0:
        message = "debootstrap asks for root"
        raise NotPossibleError(message)
    wanted = ("--arch=arm64", "--foreign", "--variant=minbase", "--include=python3", _SUITE)
    done(["debootstrap", *wanted, root, _MIRROR])
    for package in sorted((root / "var/cache/apt/archives").glob("*.deb")):
        done(["dpkg-deb", "--extract", package, root])
    interpreter = root / "usr/bin" / f"python{PYTHON}"
    if not interpreter.exists():
        message = f"Debian {_SUITE} has another Python than {PYTHON}"
        raise NotPossibleError(message)
    bare = (_QEMU, "-L", str(root), str(interpreter))
    told = done([*bare, "-c", "import platform; print(platform.machine(), platform.python_version())"]).split()
    if told[0] != "aarch64" or not told[1].startswith(f"{PYTHON}."):
        raise UnexpectedError("expected Python", PYTHON, "on aarch64, and not", *told)
    say(f"Python {told[1]} for {told[0]}, emulated on {platform.machine()}")
    return bare


if __name__ == "__main__":
    sys.exit(main())
