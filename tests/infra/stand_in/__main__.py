"""`python -m tests.infra.stand_in PROVIDER CERTIFICATE`, started by Terraform: one provider, until that is over."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.infra.stand_in.provider import Provider
from tests.infra.stand_in.schema import published
from tests.infra.stand_in.serving import serve

_COOKIE = "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2"  # by which plugins know Terraform
_CORE, _PROTOCOL = 1, 5


def main() -> int:
    """Serve what is named; 1 where it was not Terraform that called."""
    if os.environ.get("TF_PLUGIN_MAGIC_COOKIE") != _COOKIE:
        sys.stderr.write("a provider is started by Terraform: docs/decisions/stand-in-terraform-provider.md\n")
        return 1
    answers = os.environ.get("STAND_IN_ANSWERS", "")
    provider = Provider(published(sys.argv[1]), Path(answers) if answers else None)
    serve(provider.handlers(), Path(sys.argv[2]), _announce)
    return 0


def _announce(path: Path, certificate: str) -> None:
    """The one line by which Terraform finds its plugin (go-plugin, "How it works")."""
    sys.stdout.write(f"{_CORE}|{_PROTOCOL}|unix|{path}|grpc|{certificate}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
