"""The events of a YAML text, by ruamel.yaml's own rules in three quarters of its time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.parser import Parser
from ruamel.yaml.scanner import Scanner


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
