"""Stand-ins for the base images that the recipes name: Debian by debootstrap, and an interpreter that is at hand.

* `python:3.13-slim-bookworm`: the same Debian, the same libraries, Python in /usr/local, compiled files of its own
  library deleted, as that image's recipe deletes them; no pip.
* `public.ecr.aws/lambda/python:3.13`: Amazon Linux 2023 cannot be had without its registry, so Debian stands in. As AWS
  documents and the image has: Python in /var/lang, `awslambdaric`, /lambda-entrypoint.sh, LAMBDA_TASK_ROOT, no USER.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.bundles.calling import base_of
from tests.bundles.engine import Engine
from tests.bundles.reporting import NotPossibleError, done
from tests.bundles.runtimes import runtime_client

from costguard.cli.operate.bundling.compiling import find_interpreter

BASES = {"python": "localhost/costguard-stand-in-python", "lambda": "localhost/costguard-stand-in-lambda"}
_SUITE, _MIRROR = "bookworm", "http://deb.debian.org/debian"
_PACKAGES = "ca-certificates netbase tzdata libssl3 libsqlite3-0 libffi8 libreadline8 libncursesw6 libuuid1 libexpat1"
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "test", "tests", "idlelib", "site-packages", "*.a", "config-*")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ENTRYPOINT = """#!/bin/sh
# The handler is the one argument; without a Runtime API, AWS's image starts an emulator, which is not here.
[ $# -eq 1 ] && [ -n "$AWS_LAMBDA_RUNTIME_API" ] || exit 142
export _HANDLER="$1"
exec /var/runtime/bootstrap
"""
_BOOTSTRAP = """#!/bin/sh
cd "$LAMBDA_TASK_ROOT"
exec /var/lang/bin/python3 -m awslambdaric "$_HANDLER"
"""


def make_bases(engine: Engine, python: str, aside: Path) -> None:
    """Both images; some two minutes, and half a gigabyte of disk while it lasts."""
    prefix = _prefix(python)
    root = aside / "debian"
    include = "--include=" + ",".join(_PACKAGES.split())
    done(["debootstrap", "--variant=minbase", include, _SUITE, root, _MIRROR])
    shutil.rmtree(root / "var/cache/apt")
    shutil.rmtree(root / "var/lib/apt/lists")
    local = _with_python(prefix, root / "usr/local")
    done(["chroot", root, "ldconfig"])
    engine.import_folder(root, BASES["python"], ["--cmd", "python3", "--env", f"PATH={_PATH}", "--env", "LANG=C.UTF-8"])
    for path in local:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    _with_python(prefix, root / "var/lang")
    library = root / "var/lang/lib" / f"python{python}" / "site-packages"
    runtime_client(python, library)
    (root / "var/runtime").mkdir()
    (root / "var/task").mkdir()
    for path, text in ((root / "lambda-entrypoint.sh", _ENTRYPOINT), (root / "var/runtime/bootstrap", _BOOTSTRAP)):
        path.write_text(text, "utf-8")
        path.chmod(0o755)
    told = {
        "PATH": f"/var/lang/bin:{_PATH}",
        "LD_LIBRARY_PATH": "/var/lang/lib:/var/task:/var/task/lib",
        "LANG": "en_US.UTF-8",
        "LAMBDA_TASK_ROOT": "/var/task",
        "LAMBDA_RUNTIME_DIR": "/var/runtime",
    }
    settings = [word for name, value in told.items() for word in ("--env", f"{name}={value}")]
    settings += ["--workingdir", "/var/task", "--entrypoint", '["/lambda-entrypoint.sh"]']
    engine.import_folder(root, BASES["lambda"], settings)
    shutil.rmtree(root)


def _prefix(python: str) -> Path:
    """Where an interpreter is that may be copied: one with a folder of its own.

    Raises:
        NotPossibleError: there is none.
    """
    found = find_interpreter(python)
    told = [base_of(found.path), "-c", "import sys; print(sys.base_prefix)"] if found is not None else []
    prefix = Path(done(told).strip()) if told else Path("/usr")
    if prefix in {Path("/usr"), Path("/usr/local")}:
        message = f"no Python {python} in a folder of its own, as pyenv and uv install it: `uv python install {python}`"
        raise NotPossibleError(message)
    return prefix


def _with_python(prefix: Path, target: Path) -> list[Path]:
    """What was copied."""
    copied = []
    for path in (
        *sorted(prefix.glob("bin/python3*[0-9]")),
        *prefix.glob("lib/libpython3*.so*"),
        *prefix.glob("lib/python3*"),
    ):
        to = target / path.relative_to(prefix)
        to.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, to, symlinks=True, ignore=_LEFT_OUT)
        else:
            shutil.copyfile(path, to)
            shutil.copymode(path, to)
        copied.append(to)
    for name in ("python3", "python"):
        link = target / "bin" / name
        link.symlink_to(next(path.name for path in copied if path.parent.name == "bin" and "." in path.name))
        copied.append(link)
    return copied
