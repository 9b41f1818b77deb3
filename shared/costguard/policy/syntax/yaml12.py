"""YAML 1.2, strictly: the plain part of it that cannot surprise, every node with its line and column.

No anchors, aliases, tags, merge keys, second documents, duplicate or non-text keys, empty values, tabs or
characters that do not show. `no`, `on` and `22:30` are text, as YAML 1.2 says. Problems are collected, so
that a writer sees all of them at once; only a text that cannot be followed any further ends early.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.parser import Parser
from ruamel.yaml.scanner import Scanner

from costguard.policy.syntax.problems import MAX_BYTES, Mark, Problem, excerpt, field_path, shortened, too_long
from costguard.policy.syntax.yaml_nodes import Mapping, Node, Plain, Scalar, Sequence, YamlDocument

MAX_DEPTH = 50
MAX_PROBLEMS = 100  # of one file; a reader needs no more to see what is wrong
_MAX_DIGITS = 18  # longer than any count; account ids of that length are text anyway

_NULL = re.compile(r"~|null|Null|NULL|")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OTHER_BASE = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
# C0 and C1 controls, line breaks only some programs see, direction marks and zero-width characters
_UNSEEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)


def read_yaml(path: str, text: str) -> YamlDocument:
    """Read one file; `path` is only for the messages."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        return YamlDocument(path, "", None, (too_long(path),))
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    unseen = tuple(_unseen_characters(path, text))
    if unseen:
        return YamlDocument(path, text, None, unseen)
    builder = _Builder(path, text)
    try:
        for event in events_in(text):
            if not builder.take(event):
                break
    except MarkedYAMLError as err:
        found = err.problem_mark or err.context_mark
        mark = Mark(found.line + 1, found.column + 1) if found else Mark()
        builder.add(mark, *_syntax(err))
    except (YAMLError, ValueError) as err:
        builder.add(Mark(), f"this is not YAML: {err}", "write the file anew as plain UTF-8 text")
    root = builder.root
    if root is None and not builder.problems:
        builder.add(Mark(), "the file is empty", "write what belongs there, [] for an empty list, or remove the file")
    return YamlDocument(path, text, root, tuple(builder.problems), frozenset(builder.damaged))


def _unseen_characters(path: str, text: str) -> Iterator[Problem]:
    found = 0
    for number, line in enumerate(text.split("\n"), start=1):
        match = _UNSEEN.search(line)
        if match and found < MAX_PROBLEMS:
            found += 1
            mark = Mark(number, match.start() + 1)
            if match.group() == "\t":
                message, fix = "a tab; YAML is indented with spaces", 'use spaces; inside double quotes write "\\t"'
            else:
                message = f"a character that does not show (U+{ord(match.group()):04X})"
                fix = "delete it and type the line again"
            yield Problem(path, mark, "", message, fix, excerpt(text, mark))


def _syntax(err: MarkedYAMLError) -> tuple[str, str]:
    """The parser's words, and advice for the mistakes people make."""
    words = " ".join(str(part) for part in (err.context, err.problem) if part)
    for sign, advice in _ADVICE:
        if sign in words:
            return f"this is not YAML: {words}", advice
    return f"this is not YAML: {words}", "check the indentation; quote values that hold : # * & ! % @ [ ] { }"


_ADVICE = (
    ("scanning an alias", 'put a pattern that starts with * in quotes: "*"'),
    ("scanning an anchor", "put a value that starts with & in quotes"),
    ("mapping values are not allowed", "check the indentation, and quote a value that holds ': '"),
    ("could not find expected ':'", "write key: value, with a space after the colon"),
    ("that cannot start any token", "put the value in quotes"),
    ("unexpected end of stream", "close the quote or bracket that was opened"),
    ("expected ',' or", "close the bracket, or put a comma between the values"),
    ("expected <block end>", "indent all keys of one mapping alike"),
)


@dataclass(slots=True)
class _Frame:
    """A list or mapping while it is being read."""

    mark: Mark
    is_mapping: bool
    values: list[Node] = field(default_factory=list)
    items: dict[str, Node] = field(default_factory=dict)
    keys: dict[str, Mark] = field(default_factory=dict)
    key: str | None = None
    key_mark: Mark = field(default_factory=Mark)
    wants_value: bool = False


class _Builder:
    """Turns parser events into nodes without recursion, collecting problems."""

    def __init__(self, path: str, text: str) -> None:
        self.root: Node | None = None
        self.problems: list[Problem] = []
        self._path = path
        self._text = text
        self._frames: list[_Frame] = []
        self.damaged: set[Mark] = set()
        self._documents = 0

    def add(self, mark: Mark, message: str, fix: str = "") -> None:
        self.damaged.add(mark)
        shown = excerpt(self._text, mark)
        self.problems.append(Problem(self._path, mark, self._field(), shortened(message), shortened(fix), shown))

    def _field(self) -> str:
        """Where in the document the next node stands."""
        loc: list[str | int] = []
        for frame in self._frames:
            if not frame.is_mapping:
                loc.append(len(frame.values))
            elif frame.wants_value and frame.key is not None:
                loc.append(frame.key)
        return field_path(loc)

    def take(self, event: Any) -> bool:
        """Read one event; False when the rest of the text is not worth reading."""
        if len(self.problems) >= MAX_PROBLEMS:
            self.root = None
            return False
        mark = Mark(event.start_mark.line + 1, event.start_mark.column + 1)
        if isinstance(event, DocumentStartEvent):
            return self._document(event, mark)
        if isinstance(event, AliasEvent):
            self.add(
                mark,
                f"aliases are not allowed: *{event.anchor}",
                f'write the value out; a pattern goes in quotes: "*{event.anchor}"',
            )
            self._place(Scalar(mark, None, ""), is_text=False)
        elif isinstance(event, ScalarEvent):
            self._decorated(event, mark)
            is_plain = not event.style and event.ctag is None
            self._place(self._scalar(event.value, mark, is_plain=is_plain), is_text=True)
        elif isinstance(event, (SequenceStartEvent, MappingStartEvent)):
            self._decorated(event, mark)
            if len(self._frames) >= MAX_DEPTH:
                self.add(mark, f"nested deeper than {MAX_DEPTH} levels", "flatten it: no policy needs more than ten")
                self.root, self._frames = None, []
                return False
            self._frames.append(_Frame(mark, isinstance(event, MappingStartEvent)))
        elif isinstance(event, SequenceEndEvent):
            frame = self._frames.pop()
            self._place(Sequence(frame.mark, tuple(frame.values)), is_text=False)
        elif isinstance(event, MappingEndEvent):
            frame = self._frames.pop()
            self._place(Mapping(frame.mark, frame.items, frame.keys), is_text=False)
        return True

    def _document(self, event: Any, mark: Mark) -> bool:
        self._documents += 1
        if self._documents > 1:
            self.add(mark, "a second document in one file", "remove the line ---; one file is one document")
            return False
        if event.version is not None and tuple(event.version) != (1, 2):
            self.add(mark, "this is read as YAML 1.2", "remove the %YAML line")
        if event.tags:
            self.add(mark, "tags are not allowed", "remove the %TAG line")
        return True

    def _decorated(self, event: Any, mark: Mark) -> None:
        if event.anchor is not None:
            self.add(mark, f"anchors are not allowed: &{event.anchor}", "write the value out wherever it is used")
        elif event.ctag is not None:
            self.add(mark, f"tags are not allowed: {event.ctag}", "remove the tag; quote a value that starts with !")

    def _place(self, node: Node, *, is_text: bool) -> None:
        if not self._frames:
            self.root = node
            return
        frame = self._frames[-1]
        if not frame.is_mapping:
            frame.values.append(self._not_empty(node, frame))
        elif frame.wants_value:
            if frame.key is not None:
                frame.items[frame.key] = self._not_empty(node, frame)
                frame.keys[frame.key] = frame.key_mark
            frame.wants_value = False
        else:
            frame.key_mark = node.mark
            frame.key = self._key(node, frame) if is_text and isinstance(node, Scalar) else None
            if not is_text and not isinstance(node, Scalar):
                self.add(node.mark, "a key must be text, not a list or mapping", "write key: value")
            if frame.key is None:
                self.damaged.add(frame.mark)
            frame.wants_value = True

    def _key(self, node: Scalar, frame: _Frame) -> str | None:
        if not isinstance(node.value, str):
            if not self._told(node.mark):
                self.add(node.mark, f"a key must be text: {node.text or 'empty'}", f'put it in quotes: "{node.text}"')
            return None
        if node.value == "<<":
            self.add(node.mark, "merge keys (<<) are not allowed", "write the keys out")
            return None
        if node.value in frame.keys:
            first = frame.keys[node.value]
            self.add(node.mark, f"the key {node.value} is there twice, first on line {first.line}", "keep one of them")
            return None
        return node.value

    def _not_empty(self, node: Node, frame: _Frame) -> Node:
        """An empty value stands right behind its key: the parser would say where the next one begins."""
        if not isinstance(node, Scalar) or node.value is not None or self._told(node.mark):
            return node
        mark = node.mark
        if not node.text and frame.is_mapping and frame.key is not None:
            mark = Mark(frame.key_mark.line, frame.key_mark.column + len(frame.key) + 1)
        fix = "leave the key out, or write a value; a value that starts with # needs quotes"
        self.add(mark, "an empty value says neither none nor all", fix)
        return Scalar(mark, None, node.text)

    def _told(self, mark: Mark) -> bool:
        return mark in self.damaged

    def _scalar(self, text: str, mark: Mark, *, is_plain: bool) -> Scalar:
        unseen = _UNSEEN.search(text.replace("\t", " "))
        if unseen:
            self.add(mark, f"a character that does not show (U+{ord(unseen.group()):04X})", "remove the escape")
        if not is_plain:
            return Scalar(mark, text, text)
        return Scalar(mark, self._resolved(text, mark), text)

    def _resolved(self, text: str, mark: Mark) -> Plain:
        """A plain scalar by the core schema of YAML 1.2."""
        if _NULL.fullmatch(text):
            return None
        if _TRUE.fullmatch(text):
            return True
        if _FALSE.fullmatch(text):
            return False
        quoted = f'an id goes in quotes: "{text}"'
        if _OTHER_BASE.fullmatch(text):
            self.add(mark, f"{text} may be read as octal or hexadecimal", f"write it in decimal; {quoted}")
            return 0
        if _INTEGER.fullmatch(text):
            digits = text.lstrip("+-")
            if len(digits) > 1 and digits.startswith("0"):
                self.add(mark, f"{text} may be read as octal", quoted)
                return 0
            if len(digits) > _MAX_DIGITS:
                self.add(mark, "a number of this length loses digits in other programs", quoted)
                return 0
            return int(text)
        if _NOT_FINITE.fullmatch(text):
            self.add(mark, f"{text} is not a number anything can be compared with", "write a finite number")
            return 0
        if _FLOAT.fullmatch(text):
            return self._finite(text, mark)
        return text

    def _finite(self, text: str, mark: Mark) -> float:
        value = float(text)
        if value in (float("inf"), float("-inf")):
            self.add(mark, f"{text} is too large", "write a finite number")
            return 0.0
        return value


def events_in(text: str) -> Iterator[Any]:
    """Every event up to the end.

    Raises:
        YAMLError: it is not YAML from here on.
    """
    yaml = _Quick(typ="safe", pure=True)
    yaml.Parser, yaml.Scanner = _Parser, _Scanner
    yield from yaml.parse(text)


class _Quick(YAML):
    def official_plug_ins(self) -> list[str]:
        """None: each object looks through the package's folders for some."""
        return []


class _Parser(Parser):
    @cached_property
    def scanner(self) -> Any:
        """Its loader's, asked for once."""
        return self.loader.scanner


class _Scanner(Scanner):
    """Whether the next token is ready can only change once the last was taken: ruamel.yaml looks at every question."""

    @cached_property
    def reader(self) -> Any:
        """Its loader's, asked for once."""
        return self.loader.reader

    def reset_scanner(self) -> None:
        """Begin anew."""
        self._ready = False
        super().reset_scanner()

    def check_token(self, *choices: Any) -> bool:
        """Whether there is a next token, of one of these kinds."""
        tokens = self.tokens if self._ready else self._made_ready()
        return bool(tokens) and (not choices or isinstance(tokens[0], choices))

    def peek_token(self) -> Any:
        """The next token."""
        tokens = self.tokens if self._ready else self._made_ready()
        return tokens[0] if tokens else None

    def get_token(self) -> Any:
        """The next token, which is taken."""
        tokens = self.tokens if self._ready else self._made_ready()
        if not tokens:
            return None
        self._ready = False
        self.tokens_taken += 1
        return tokens.pop(0)

    def _made_ready(self) -> Any:
        while self.need_more_tokens():
            self.fetch_more_tokens()
        self._ready = True
        return self.tokens
