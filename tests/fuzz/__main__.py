"""`python -m tests.fuzz --examples 20000 [policy events …]`: the long profile, drawn anew on every run."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


def main() -> int:
    """Run all modules of this folder, or those named; the status is pytest's."""
    known = sorted(path.stem.removeprefix("test_fuzz_") for path in FOLDER.glob("test_fuzz_*.py"))
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("parsers", nargs="*", metavar="PARSER", help=f"of {', '.join(known)}; all if none is named")
    parser.add_argument("--examples", type=int, default=20_000, help="inputs for each property (default 20000)")
    parser.add_argument("--seed", type=int, help="begin with this seed, to see a failure again")
    asked = parser.parse_args()
    unknown = set(asked.parsers) - set(known)
    if unknown:
        parser.error(f"no parser is called {', '.join(sorted(unknown))}; known are {', '.join(known)}")
    os.environ["FUZZ_EXAMPLES"] = str(asked.examples)  # not by import: pytest wants to load hypothesis itself
    files = [str(FOLDER / f"test_fuzz_{name}.py") for name in asked.parsers or known]
    seed = [f"--hypothesis-seed={asked.seed}"] if asked.seed is not None else []
    return pytest.main([*files, "-q", "-p", "no:cacheprovider", *seed])


if __name__ == "__main__":
    sys.exit(main())
