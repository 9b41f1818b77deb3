"""`python -m tests.words [--check]`: compile the message catalogues after a word was changed.

`--check` compiles nothing and says which compiled catalogue is not what its source says.
"""

from __future__ import annotations

import argparse
import sys

from tests.words.catalogues import LOCALE, compiled, is_stale, source_of

from costguard.report.words.sentences import Language


def main() -> int:
    """Compile; with `--check` say what is stale, and 1 where anything is."""
    options = argparse.ArgumentParser(prog="python -m tests.words", description=__doc__)
    options.add_argument("--check", action="store_true", help="only say which compiled catalogue is stale")
    stale = [language.value for language in Language if is_stale(language.value)]
    if options.parse_args().check:
        sys.stdout.writelines(f"{language}: stale; run python -m tests.words\n" for language in stale)
        return 1 if stale else 0
    for language in Language:
        source_of(language.value).with_suffix(".mo").write_bytes(compiled(language.value))
    sys.stdout.write(f"compiled below {LOCALE}; changed: {', '.join(stale) or 'nothing'}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
