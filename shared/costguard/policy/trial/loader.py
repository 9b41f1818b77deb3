"""From the text of tests, or of a described machine, to documents; mistakes are told with their place. Pure."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from costguard.policy.syntax.explain import explained
from costguard.policy.syntax.problems import Mark, Problem, in_order, invalid
from costguard.policy.syntax.yaml12 import read_yaml
from costguard.policy.syntax.yaml_nodes import plain
from costguard.policy.trial.documents import DescribedDocument, TestsDocument

_Model = TypeVar("_Model")


def read_tests(path: str, text: str) -> tuple[TestsDocument, tuple[int, ...]]:
    """The tests of one file, and the line that each begins on.

    Raises:
        InvalidInputError: tells every mistake with file, line and column.
    """
    document, places = _read(path, text, TestsDocument)
    names = [test.name for test in document.tests]
    twice = next((name for index, name in enumerate(names) if name in names[:index]), None)
    if twice is not None:
        index = len(names) - 1 - names[::-1].index(twice)
        mark = places.locate(("tests", index, "name"))[0]
        raise invalid((places.problem(mark, f"tests[{index}].name", f"{twice!r} is there twice", "name it otherwise"),))
    return document, tuple(places.locate(("tests", index))[0].line for index in range(len(names)))


def read_described(path: str, text: str) -> DescribedDocument:
    """A machine described in a file.

    Raises:
        InvalidInputError: tells every mistake with file, line and column.
    """
    return _read(path, text, DescribedDocument)[0]


def _read(path: str, text: str, model: type[_Model]) -> tuple[_Model, Any]:
    document = read_yaml(path, text)
    problems: list[Problem] = list(document.problems)
    if document.root is None:
        raise invalid(in_order(problems or [Problem(path, Mark(), "", "the file is empty")]))
    try:
        found = TypeAdapter(model).validate_python(plain(document.root), strict=True)
    except ValidationError as err:
        problems += [each for each in explained(document, err, model) if each.mark not in document.damaged]
        raise invalid(in_order(problems)) from err
    if problems:
        raise invalid(in_order(problems))
    return found, document
