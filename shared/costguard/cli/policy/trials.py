"""`costguard policy test`: a policy's own unit tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from costguard.cli.exits import Exit
from costguard.cli.options import Json, Lang, PolicyPath, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.program import workplace
from costguard.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from costguard.policy.model.policy import Policy
    from costguard.report.policy.trial import Trial
    from costguard.settings import Settings

TEST_EXAMPLES = examples(
    "costguard policy test --policy policies/",
    "costguard policy test tests/research.yaml --policy policies/ --json",
)
_AT_MOST_BYTES = 1_000_000


def run_tests(
    ctx: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILES", help="Files of tests.", show_default="tests/*.yaml of the policy's folder"),
    ] = None,
    *,
    policy: PolicyPath = "",
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Run a policy's own tests: given this machine and what was measured then, expect this verdict, step and owner.

    Runs them through the judge, the cases and the planner that every run uses. Reads no cloud and no ledger.

    Exit status: 0 all passed, 10 one failed.
    """
    with workplace(ctx, lang=lang, policy=policy) as here:
        from costguard.bootstrap import read_policy
        from costguard.report.policy.trial_views import trial_lines, trials_json, trials_total

        texts = {each: text_of(Path(each)) for each in files} if files else _texts_beside(here.settings)
        read = read_policy(here.settings)
        trials = tuple(trial for path, text in texts.items() for trial in _of_file(path, text, read))
        language = here.language
    emit(
        CommandResult(
            trials_json(trials, language),
            lines=trial_lines(trials, language),
            closing=(trials_total(trials, language),),
            exit=Exit.OK if all(trial.passed for trial in trials) else Exit.DUE,
        ),
        as_json=as_json,
    )


def _texts_beside(settings: Settings) -> Mapping[str, str]:
    """Of a policy in git the tests of the same commit: those of a checkout may expect another policy."""
    from costguard.adapters.policy_sources.files import is_git
    from costguard.connections.policies import git_source

    if is_git(settings.policy):
        return git_source(settings, settings.policy).tests()
    return {str(path): text_of(path) for path in tests_beside(settings.policy)}


def tests_beside(policy: str) -> Sequence[Path]:
    """The files of tests that belong to a policy.

    Raises:
        InvalidInputError: there are none: a run that tests nothing does not pass.
    """
    folder = Path(policy or ".")
    folder = folder if folder.is_dir() else folder.parent
    found = sorted(path for suffix in ("yaml", "yml") for path in (folder / "tests").glob(f"**/*.{suffix}"))
    if not found:
        message = f"{folder / 'tests'}: no file of tests is there; name some, or write tests/research.yaml"
        raise InvalidInputError(message)
    return found


def text_of(path: Path) -> str:
    """A small file of text.

    Raises:
        InvalidInputError: nothing there, too long, or no text.
    """
    from costguard.policy.syntax.problems import decoded

    try:
        with path.open("rb") as file:
            raw = file.read(_AT_MOST_BYTES + 1)
    except OSError as err:
        message = f"{path}: cannot be read: {err.strerror}"
        raise InvalidInputError(message) from err
    if len(raw) > _AT_MOST_BYTES:
        message = f"{path}: longer than {_AT_MOST_BYTES} bytes; split it"
        raise InvalidInputError(message)
    return decoded(str(path), raw)


def _of_file(path: str, text: str, policy: Policy) -> Iterator[Trial]:
    from costguard.policy.trial.documents import read_tests
    from costguard.report.policy.trial import tried

    document, lines = read_tests(path, text)
    for test_, line in zip(document.tests, lines, strict=True):
        yield tried(policy, test_, path, line)
