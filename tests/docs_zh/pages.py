"""A Markdown page taken apart, and where the Chinese of a page stands."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHINESE = ROOT / "docs" / "zh"
HAN = r"\u3400-\u9fff"
STAMP = re.compile(r"<!-- 译自 (\S+) sha256:([0-9a-f]{12})。[^>]*-->")
ACROSS_LANGUAGES = re.compile(r"^\[(?:简体中文|English)\]\([^)]+\)\n\n?", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")
DAY = re.compile(r"^(?:Day|第) ?(\d+)|^(…)$")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FIGURE = re.compile(r"\d+(?:[.,:]\d+)*")
_MONTHS = (
    *("", "January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_MONTH = re.compile(rf"\b({'|'.join(_MONTHS[1:])})(?= \d{{4}}\b)")
_MILLION = re.compile(r"\b(\d+) million\b")

Block = tuple[str, tuple[str, ...]]
"""The language after the fence, and the lines."""


@dataclass(frozen=True, slots=True)
class Page:
    """A Markdown page, taken apart into what is the same in every language."""

    path: Path
    text: str
    headings: tuple[tuple[int, str], ...]
    blocks: tuple[Block, ...]
    prose: str

    @property
    def name(self) -> str:
        """Its path from the top of the repository."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def links(self) -> tuple[str, ...]:
        """The targets of its links and pictures, as written; neither the stamp nor the way across the languages."""
        return tuple(_LINK.findall(ACROSS_LANGUAGES.sub("", self.prose)))

    @property
    def figures(self) -> Counter[str]:
        """Every number that is not part of a link's target, comments in code included; not those of a transcript.

        As Chinese has them: months are numbered, and a million is a hundred times ten thousand.
        """
        code = (line for language, lines in self.blocks if not is_transcript((language, lines)) for line in lines)
        prose = _LINK.sub("]", STAMP.sub("", self.prose))
        said = _MONTH.sub(lambda month: str(_MONTHS.index(month[1])), "\n".join((prose, *code)))
        return Counter(_FIGURE.findall(_MILLION.sub(lambda count: f"{int(count[1]) * 100} 万", said)))

    @property
    def rows(self) -> tuple[tuple[int, tuple[str, ...]], ...]:
        """Of each row of a table: how many cells, and the code in the first of them."""
        lines = (line.strip().strip("|").split("|") for line in self.prose.splitlines() if line.startswith("|"))
        return tuple((len(cells), tuple(CODE.findall(cells[0]))) for cells in lines)

    def anchors(self) -> tuple[str, ...]:
        """What `#…` leads to each heading."""
        return tuple(re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for _, title in self.headings)

    def hash(self) -> str:
        """What it says, whether or not it already links to the other language."""
        said = ACROSS_LANGUAGES.sub("", self.text, count=1)
        return hashlib.sha256(said.encode()).hexdigest()[:12]


def read(path: Path) -> Page:
    """A page as it stands."""
    return parse(path, path.read_text(encoding="utf-8"))


def parse(path: Path, text: str) -> Page:
    """Take a page apart."""
    headings: list[tuple[int, str]] = []
    blocks: list[Block] = []
    prose: list[str] = []
    within: list[str] | None = None
    language = ""
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            if within is None:
                within, language = [], line.strip().strip("`")
            else:
                blocks.append((language, tuple(within)))
                within = None
        elif within is not None:
            within.append(line)
        else:
            if found := re.match(r"(#+) (.*)", line):
                headings.append((len(found[1]), found[2]))
            prose.append(line)
    return Page(path, text, tuple(headings), tuple(blocks), "\n".join(prose))


def english_of(chinese: Path) -> Path:
    """The page that a page of docs/zh says in Chinese."""
    return ROOT / "README.md" if chinese.name == "README.md" else ROOT / "docs" / chinese.name


def for_readers_of_chinese(page: Path) -> Path:
    """The Chinese of a page where there is one, else the page itself."""
    chinese = CHINESE / page.name
    return chinese if chinese.is_file() and page == english_of(chinese) else page


def translated() -> tuple[Path, ...]:
    """The pages of docs/zh."""
    return tuple(sorted(CHINESE.glob("*.md")))


def is_transcript(block: Block) -> bool:
    """Whether it shows the demo, which tells its days in the reader's language."""
    return block[0] == "text" and sum(1 for line in block[1] if DAY.match(line)) > 1
