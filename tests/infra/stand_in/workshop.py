"""What makes Terraform take the stand-ins for the vendors' providers: a configuration file for TF_CLI_CONFIG_FILE."""

from __future__ import annotations

import json
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tests.infra.aws_terraform import NotPossibleError, _mirror
from tests.infra.stand_in.schema import FOLDERS, PUBLISHED

ROOT: Final = Path(__file__).parents[3]
_HOST: Final = "registry.terraform.io"
_NEEDED: Final = ("h2", "hpack", "hyperframe", "cryptography")
_PLATFORMS: Final = ("linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64")


def cli_config(folder: Path) -> Path:
    """Write stand-ins into `folder`, and the configuration file that names them; answers that file.

    With TF_CLI_CONFIG_FILE set to it, `terraform init` takes aliyun/alicloud and tencentcloudstack/tencentcloud from
    here, hashicorp/* from the machine where it is there, and all else from Terraform's registry.

    Raises:
        NotPossibleError: no Python here has what a stand-in is made with.
    """
    paths = _paths()
    from tests.infra.stand_in.certificate import write_certificate

    certificate = folder.resolve() / "stand-in.pem"
    names = []
    for provider, file in FOLDERS.items():
        said = json.loads((PUBLISHED / f"{file}.json").read_text("utf-8"))
        names.append(said["provider"])
        for platform in _PLATFORMS:
            place = folder / "mirror" / _HOST / said["provider"] / said["version"] / platform
            place.mkdir(parents=True, exist_ok=True)
            program = place / f"terraform-provider-{provider}_v{said['version']}"
            program.write_text(_program(provider, certificate, paths), "utf-8")
            program.chmod(0o755)
    write_certificate(certificate)
    kept = [f"{_HOST}/{name}" for name in names]
    lines = ["disable_checkpoint = true", "provider_installation {", *_from(folder / "mirror", kept)]
    machine = _mirror()
    if machine is not None:
        lines += _from(machine, [f"{_HOST}/hashicorp/*"])
        kept.append(f"{_HOST}/hashicorp/*")
    lines += ["  direct {", f"    exclude = {json.dumps(kept)}", "  }", "}", ""]
    config = folder / "terraform.rc"
    config.write_text("\n".join(lines), "utf-8")
    return config


def _from(folder: Path, names: list[str]) -> list[str]:
    path, include = json.dumps(str(folder)), json.dumps(names)
    return ["  filesystem_mirror {", f"    path    = {path}", f"    include = {include}", "  }"]


def _program(provider: str, certificate: Path, paths: list[str]) -> str:
    """A program that is this package, in whatever folder and environment it is started.

    Terraform starts it some fifty times in one `terraform test`: it loads no more than it needs (-S).
    """
    start = f"import sys; sys.path[:0] = {paths!r}; from tests.infra.stand_in.__main__ import main; sys.exit(main())"
    words = [sys.executable, "-S", "-c", start, provider, str(certificate)]
    return f"#!/bin/sh\nexec {shlex.join(words)}\n"


def _paths() -> list[str]:
    """Where this package stands, and what it is made with.

    Raises:
        NotPossibleError: that is not installed.
    """
    found = [find_spec(name) for name in _NEEDED]
    if None in found:
        message = f"the stand-in for its provider needs {', '.join(_NEEDED)}: pip install --editable '.[dev]'"
        raise NotPossibleError(message)
    return [str(ROOT), *dict.fromkeys(str(Path(spec.origin).parents[1]) for spec in found if spec and spec.origin)]
