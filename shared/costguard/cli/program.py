"""What a command stands on: settings, a clock, a ledger, and with `--sandbox` a world of its own."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import TYPE_CHECKING

import typer

from costguard.domain.errors import InvalidInputError
from costguard.report.words.sentences import Language
from costguard.settings import Secret, Settings, process_settings, references_in

if TYPE_CHECKING:
    from costguard.cli.sandbox.running import Sandbox
    from costguard.engine.ledger.memory import Memory
    from costguard.ports import Clock

_SHARED_LEDGERS = ("postgresql", "dynamodb")
_SANDBOX_NEEDS = frozenset({"moto", "werkzeug", "flask"})


def _until_interrupted() -> None:
    with suppress(KeyboardInterrupt):
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: a sandbox leaves no files behind
        Event().wait()


@dataclass(frozen=True, slots=True)
class Program:
    """What the whole command line is given; empty for people, filled in by tests.

    `clock` None is the clock on the wall; a `sandbox` that runs already is used in the place of fresh ones.
    `wait` is what a command does that serves others until it is interrupted.
    """

    settings: Callable[[], Settings] = process_settings
    clock: Clock | None = None
    sandbox: Sandbox | None = None
    wait: Callable[[], None] = _until_interrupted


@dataclass(frozen=True, slots=True)
class CliContext:
    """Where one command works. `sandbox` is there only with `--sandbox`, and only where a cloud is needed."""

    settings: Settings
    clock: Clock
    sandbox: Sandbox | None = None

    @property
    def language(self) -> Language:
        """The language of words."""
        return Language(self.settings.language)


@contextmanager
def workplace(
    ctx: typer.Context,
    *,
    lang: Language | None = None,
    sandbox: bool = False,
    policy: str = "",
    ledger: str = "",
    cloud: bool = True,
) -> Iterator[CliContext]:
    """The surroundings that the options ask for; what an option leaves open, the environment says.

    In a sandbox the environment says nothing but the language. `cloud` False starts no server in it. A sandbox that
    COSTGUARD_SANDBOX names is followed, its time included, and each command says so.

    Raises:
        InvalidInputError: a wrong environment variable, or what the sandbox needs is not installed.
        ProviderError: a secret that the environment refers to could not be read.
    """
    program = ctx.obj if isinstance(ctx.obj, Program) else Program()
    settings = program.settings()
    language = lang.value if lang is not None else settings.language
    if sandbox:
        with _sandbox_surroundings(program, policy, ledger, language, cloud=cloud) as inside:
            yield inside
        return
    from costguard.bootstrap import settings_and_clock

    if settings.sandbox and ledger:  # NEVER deliver a real notice to made-up people, or date a real case by their clock
        message = "COSTGUARD_SANDBOX: a sandbox keeps its own ledger; leave --ledger out, or unset COSTGUARD_SANDBOX"
        raise InvalidInputError(message)
    settings, watch = settings_and_clock(settings)
    chosen = replace(
        settings,
        policy=policy or settings.policy or _demo_policy(settings),
        ledger=Secret(ledger) if ledger else settings.ledger,
        language=language,
    )
    clock = program.clock or watch
    if settings.sandbox:
        _say_where(settings.sandbox, clock.now(), Language(language))
    if references_in(chosen):
        from costguard.connections.secrets import SecretKeeper

        chosen = SecretKeeper().settled(chosen, clock.now())
    yield CliContext(chosen, clock)


def _say_where(sandbox: str, now: datetime, language: Language) -> None:
    """On standard error: a sandbox that somebody forgot is not taken for a real account."""
    from costguard.report.plan.evidence import utc_words
    from costguard.report.words.sentences import phrase

    typer.echo(phrase("sandbox_followed", language, url=sandbox, now=utc_words(now)), err=True)


def _demo_policy(settings: Settings) -> str:
    """The policy of a sandbox that is followed, where nobody names another."""
    if not settings.sandbox:
        return ""
    from costguard.cli.demo.story import DEMO_POLICY

    return str(DEMO_POLICY)


@contextmanager
def _sandbox_surroundings(
    program: Program, policy: str, ledger: str, language: str, *, cloud: bool
) -> Iterator[CliContext]:
    from costguard.cli.demo.story import DEMO_POLICY

    if ledger.startswith(_SHARED_LEDGERS):  # as above: no real notice is delivered to made-up people
        message = "--sandbox: a ledger that others share is never a sandbox's; name a SQLite file of its own, or none"
        raise InvalidInputError(message)
    outside = program.settings()
    bare = Settings(
        policy=policy or str(DEMO_POLICY),
        ledger=Secret(ledger or "memory:"),
        language=language,
        git_hosts=outside.git_hosts,
        reports="" if "://" in outside.reports else outside.reports,  # a folder here, never a bucket that is shared
    )
    if program.sandbox is None and not cloud:
        from costguard.cli.sandbox.running import standing_clock

        yield CliContext(bare, standing_clock())
        return
    with ExitStack() as opened:
        running = program.sandbox or opened.enter_context(start_sandbox())
        settings = replace(running.settings(bare), ledger=Secret(ledger or running.ledger_url))
        yield CliContext(settings, running.clock, running)


def start_sandbox() -> Sandbox:
    """A fresh sandbox.

    Raises:
        InvalidInputError: what it needs is not installed.
    """
    with sandbox_installed():
        from costguard.cli.sandbox.running import Sandbox

        return Sandbox.start()


@contextmanager
def sandbox_installed() -> Iterator[None]:
    """Inside it, what a sandbox needs and does not find is told.

    Raises:
        InvalidInputError: it is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as err:
        if (err.name or "").partition(".")[0] not in _SANDBOX_NEEDS:
            raise
        message = f"the sandbox needs {err.name}, which is not installed: pip install 'gpu-costguard[sandbox]'"
        raise InvalidInputError(message) from err


@contextmanager
def ledger_read_only(here: CliContext) -> Iterator[Memory]:
    """The ledger for looking ahead: a SQLite file that is not there yet counts as empty, and is not made."""
    from costguard.bootstrap import open_memory

    with ExitStack() as opened:
        settings, path = here.settings, sqlite_file(here.settings)
        if path is not None and not path.exists():
            folder = opened.enter_context(TemporaryDirectory(prefix="costguard-"))
            settings = replace(settings, ledger=Secret(f"sqlite:///{folder}/empty.sqlite3"))
        memory = open_memory(settings)
        opened.callback(memory.store.close)
        yield memory


@contextmanager
def ledger_in_use(here: CliContext, *, new: bool = False) -> Iterator[Memory]:
    """A ledger that somebody has used before: in a wrong folder an answer from an empty one would mislead.

    `new`: one that is made now will do, as nothing is answered from it.

    Raises:
        InvalidInputError: there is no such file.
    """
    from costguard.bootstrap import open_memory

    path = sqlite_file(here.settings)
    if path is not None and not new and not path.exists():
        message = (
            f"{path}: no ledger is there; name the one that the runs use with --ledger or COSTGUARD_LEDGER "
            "(the first `costguard apply` or `costguard invoke` makes it)"
        )
        raise InvalidInputError(message)
    memory = open_memory(here.settings)
    try:
        yield memory
    finally:
        memory.store.close()


@contextmanager
def nothing_thrown_away() -> Iterator[None]:
    """Inside it Python looks for no garbage in cycles: where all that is read stays, that is a third of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def sqlite_file(settings: Settings) -> Path | None:
    """The file of a SQLite ledger; None for every other kind."""
    return settings.ledger_file
