"""`python -m tests.pictures`: the pictures of the README and the docs, taken of real pages by a real browser.

`--into FOLDER` puts them elsewhere than in docs/pictures; `--if-possible` says aloud that there is no browser, and is
content. Every picture must stay below 200 KB: what a reader waits for on a slow line.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.pictures.browser import browser, take
from tests.pictures.message import message_page
from tests.pictures.story import letter, played
from tests.scenario.stage import START

from costguard.adapters.charts import svg
from costguard.adapters.notifiers.slack.blocks import message_blocks
from costguard.engine.digest import report_facts
from costguard.report.page.page import Drawing, report_page
from costguard.report.words.sentences import Language

_PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
_MOST_BYTES = 200_000
_DESK, _PHONE = (1000, 1500), (390, 1500)


def main() -> int:
    """Take all pictures; 0 where all are there and small enough."""
    options = argparse.ArgumentParser(prog="python -m tests.pictures", description=__doc__)
    options.add_argument("--into", type=Path, default=_PICTURES, metavar="FOLDER")
    options.add_argument("--if-possible", action="store_true", help="without a browser say so, and end well")
    chosen = options.parse_args()
    if browser() is None:
        sys.stderr.write("!! no Chromium here: no picture was taken (apt-get install chromium)\n")
        return 0 if chosen.if_possible else 1
    chosen.into.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="costguard-pictures-") as name:
        folder = Path(name)
        taken = [*_taken(folder, chosen.into)]
    for picture in taken:
        sys.stdout.write(f"{picture.name}: {picture.stat().st_size:,} bytes\n")
    large = [picture.name for picture in taken if picture.stat().st_size >= _MOST_BYTES]
    if large:
        sys.stderr.write(f"!! more than {_MOST_BYTES:,} bytes: {', '.join(large)}\n")
    return 1 if large else 0


def _taken(folder: Path, into: Path) -> list[Path]:
    with played(folder) as stage:
        facts = report_facts(stage.memory, START, stage.clock.now())
        message = letter(stage)
    pages = {
        "report": report_page(facts, Language.EN, Drawing(svg)),
        "report-zh": report_page(facts, Language.ZH, Drawing(svg)),
        "slack": message_page(message_blocks(message)),
    }
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    shots = (
        ("report", "report-light", _DESK, False),
        ("report", "report-dark", _DESK, True),
        ("report-zh", "report-phone-zh", _PHONE, False),
        ("slack", "slack", (720, 1260), False),
    )
    for page, name, (width, height), dark in shots:
        take(folder / f"{page}.html", into / f"{name}.png", width, height, dark=dark)
    return [into / f"{name}.png" for _, name, _, _ in shots]


if __name__ == "__main__":
    sys.exit(main())
