"""The vendor's own `tccli`, led to the sandbox by its own settings: a `default.configure` that names every endpoint."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.infra.aws_terraform import NotPossibleError

_WANTED = ("tccli==3.1.189.1",)
_BELOW = (
    "jmespath",
    "six",
    "cos-python-sdk-v5",
    *(f"tencentcloud-sdk-python-{name}" for name in ("common", "cvm", "sts", "ssm", "scf", "cls", "postgres")),
)
"""What it needs for the page; all of the SDK, which it asks for, has 400 MB."""
VERSIONS: Mapping[str, str] = {
    "sts": "2018-08-13",
    "postgres": "2017-03-12",
    "ssm": "2019-09-23",
    "scf": "2018-04-16",
    "cls": "2020-10-16",
}


def put_into(folder: Path, home: Path, url: str) -> str:
    """Write a program `tccli` that asks `url` alone; answers its version.

    Raises:
        NotPossibleError: there is none here, and it cannot be had.
    """
    program = shutil.which("tccli") or _installed(home / "venv")
    settings = {"_sys_param": {"region": "ap-guangzhou", "output": "json", "arrayCount": 10, "warning": "off"}}
    services = {name: {"endpoint": url, "version": version} for name, version in VERSIONS.items()}
    (home / ".tccli").mkdir(parents=True, exist_ok=True)
    (home / ".tccli" / "default.configure").write_text(json.dumps({**settings, **services}), "utf-8")
    path = folder / "tccli"
    path.write_text(f'#!/bin/sh\nHOME="{home}" PYTHONWARNINGS=ignore exec "{program}" "$@"\n', "utf-8")
    path.chmod(0o755)
    return _told([str(path), "--version"]).strip()


def _installed(venv: Path) -> str:
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)  # noqa: S603 - our own interpreter
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-compile"]
    _told([*pip, "--no-deps", *_WANTED])
    _told([*pip, *_BELOW])
    return str(venv / "bin" / "tccli")


def _told(command: list[str]) -> str:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TENCENTCLOUD_")}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)  # noqa: S603 - made here
    if done.returncode:
        message = f"tccli cannot be had: {(done.stderr or done.stdout).strip().splitlines()[-1:]}"
        raise NotPossibleError(message)
    return done.stdout
