"""`python -m tests.docs_zh [--stamp] [--demo]`: are the Chinese pages in step with the English ones?

A page of docs/zh is translated by hand, so no program can say that it is right; but much of a page is the same in every
language, and that is compared: headings, code, links, figures, tables. A changed sentence cannot be seen so. Therefore
each Chinese page names the hash of the English page that it was read against; once that changes, the check of a release
(`python -m pytest -m release`) fails until somebody has looked again and said so with `--stamp`, which marks only pages
that show no difference.

`--demo` lives through the demo in Chinese as well, and says which lines of the transcript it does not print.
"""

from __future__ import annotations

import argparse
import io
import sys
from contextlib import redirect_stdout

import typer
from tests.docs_zh.in_step import differences, unlinked
from tests.docs_zh.pages import Page, english_of, is_transcript, read, translated
from tests.docs_zh.stamps import outdated, stamped
from tests.docs_zh.typography import typography

from costguard.cli.demo.demo import live_through
from costguard.cli.main import app
from costguard.cli.program import Program, workplace
from costguard.report.words.sentences import Language


def main() -> int:
    """Say what differs; 1 where a page is not in step."""
    options = argparse.ArgumentParser(prog="python -m tests.docs_zh", description=__doc__)
    options.add_argument(
        "--stamp", action="store_true", help="mark pages that show no difference as read against the English"
    )
    options.add_argument("--demo", action="store_true", help="look whether the demo prints the transcript")
    chosen = options.parse_args()
    wrong = 0
    for page in map(read, translated()):
        english = read(english_of(page.path))
        found = [*differences(english, page), *typography(page)]
        if chosen.demo and any(is_transcript(block) for block in page.blocks):
            found += _not_printed(page)
        if chosen.stamp and not found:
            page.path.write_text(stamped(english, page), encoding="utf-8")
        elif (late := outdated(english, page)) is not None:
            found.append(late)
        found += unlinked(english, page)
        wrong += len(found)
        sys.stdout.writelines(f"{page.name}: {said}\n" for said in found)
    return 1 if wrong else 0


def _not_printed(chinese: Page) -> list[str]:
    """Lines of the transcript that the demo does not print in Chinese; lives through it, which takes half a minute."""
    context, told = typer.Context(typer.main.get_command(app), obj=Program()), io.StringIO()
    with workplace(context, lang=Language.ZH, sandbox=True) as here, redirect_stdout(told):
        live_through(here, 12, show=True)
    printed = set(told.getvalue().splitlines())
    shown = [line for block in chinese.blocks if is_transcript(block) for line in block[1]]
    return [f"the demo does not print: {line}" for line in shown if line not in printed | {"…"}]


if __name__ == "__main__":
    raise SystemExit(main())
