"""`costguard invoke`: call a deployed function by hand, as its host would."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from costguard.cli.exits import Exit
from costguard.cli.options import Json, Lang, Sandbox, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.program import CliContext, workplace
from costguard.cli.wrapping import cells
from costguard.domain.errors import InvalidInputError
from costguard.domain.findings import Verdict
from costguard.domain.money import Money
from costguard.faas.invocation import Host
from costguard.report.guard_views import VIEWS
from costguard.report.plan.evidence import utc_words
from costguard.report.words.sentences import Language, clean, phrase, verdict
from costguard.settings import Secret

if TYPE_CHECKING:
    from costguard.faas.handler import Handler

PACKAGED = (*VIEWS, "digest", "slack_actions")
"""Functions that need no folder: the same handler is built from the installed package."""

OVER_HTTP = frozenset({"slack_actions"})
"""Those that answer requests, and have no schedule."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_FIGURES = (
    *("alerts", "instances_seen", "keys_seen", "networks_seen"),
    *("due", "done", "not_done", "held", "rehearsed", "notices", "gaps"),
)
_STDIN = "-"
_REFUSED, _FAILED = 400, 500
_LONGEST_LINE = 1000
_AT_MOST_BYTES = 1_000_000


INVOKE_EXAMPLES = examples(
    "costguard invoke idle_gpu --event events/lambda/idle_gpu.json --sandbox",
    "costguard invoke budget --event events/scf/budget.json --sandbox",
    "costguard invoke kms_rotation --event events/fc/kms_rotation.json --sandbox",
    "costguard invoke network_audit --event events/lambda/network_audit.json --sandbox",
    "costguard invoke idle_gpu --event events/fc/idle_gpu.json --host fc",
    "COSTGUARD_POLICY=policies/ costguard invoke idle_gpu --event events/lambda/idle_gpu.json",
    "costguard invoke slack_actions --event events/scf/slack_actions.json --sandbox",
    "echo '{}' | costguard invoke idle_gpu --event -",
)


def invoke(
    ctx: typer.Context,
    function: Annotated[
        str, typer.Argument(metavar="FUNCTION", help="The function: a folder of functions/, such as idle_gpu.")
    ],
    *,
    event: Annotated[str, typer.Option("--event", metavar="FILE", help="The event as JSON; `-` is standard input.")],
    host: Annotated[
        Host | None,
        typer.Option("--host", help="Call it as this host would.", show_default="told by the event's own keys"),
    ] = None,
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Call a function with an event, as Lambda, Function Compute or SCF would.

    Runs functions/FUNCTION/handler.py of this folder or the nearest one above it, else the handler of the
    installed package, as deployed: it acts where the policy enforces. Log lines go to standard error.

    A deployed function has no options, so there is no --policy and no --ledger here: set COSTGUARD_POLICY and
    COSTGUARD_LEDGER, as every other setting, in the environment. Without them it observes by the shipped rule, and
    remembers in costguard.sqlite3 of this folder. With --sandbox, or COSTGUARD_SANDBOX, the same handler gets a
    sandbox's settings and clock. A request of Slack's is signed anew, with COSTGUARD_SLACK_SIGNING_SECRET or the
    sandbox's.

    Exit status: 0 done, 11 something could not be read, 13 something due was not done. Of a request: 0 answered, 13
    refused, 3 failed.
    """
    from costguard.faas.local import invoke as call
    from costguard.faas.local import signed_event

    payload = _payload(event)
    handler = _deployed(function)
    with workplace(ctx, lang=lang, sandbox=sandbox) as here:
        if here.sandbox is not None:
            secret = Secret(here.sandbox.slack.signing_secret)
            here = replace(here, settings=replace(here.settings, slack_signing_secret=secret))  # noqa: PLW2901 - the same place
        if handler is None or here.sandbox is not None or here.settings.sandbox:
            handler = _built(function, here)
        payload = signed_event(payload, here.settings.slack_signing_secret.reveal(), here.clock.now())
        with redirect_stdout(sys.stderr):  # where hosts collect log lines, people expect the answer alone
            summary = call(handler, payload, here.clock, host=host)
        language = here.language
    emit(
        CommandResult(summary, lines=_lines(function, summary, language), exit=_status(summary)),
        as_json=as_json,
    )


def _payload(event: str) -> bytes:
    try:
        with sys.stdin.buffer if event == _STDIN else Path(event).open("rb") as file:
            payload = file.read(_AT_MOST_BYTES + 1)
    except OSError as err:
        message = f"{event}: cannot be read: {err.strerror}"
        raise InvalidInputError(message) from err
    if len(payload) > _AT_MOST_BYTES:
        message = f"{event}: more than {_AT_MOST_BYTES:,} bytes; events of timers have under 1,000"
        raise InvalidInputError(message)
    return payload


def _deployed(function: str) -> Handler | None:
    """The handler that is deployed; None where only the package has it.

    Raises:
        InvalidInputError: there is no such function, or its file assigns no handler.
    """
    folder = Path.cwd()
    found: set[str] = set(PACKAGED)
    for above in (folder, *folder.parents):
        functions = above / "functions"
        if _NAME.fullmatch(function) and (functions / function / "handler.py").is_file():
            return _loaded(function, functions / function / "handler.py")
        found.update(path.parent.name for path in functions.glob("*/handler.py"))
    if function in PACKAGED:
        return None
    message = f"there is no function {function!r}; there is {', '.join(sorted(found))}"
    raise InvalidInputError(message)


def _loaded(function: str, path: Path) -> Handler:
    spec = importlib.util.spec_from_file_location(f"costguard_function_{function}", path)
    if spec is None or spec.loader is None:
        message = f"{path}: cannot be loaded as a module"
        raise InvalidInputError(message)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    handler: Any = getattr(module, "handler", None)
    if not callable(handler):
        message = f"{path}: assigns no `handler`; expected `handler = build_handler({function!r})`"
        raise InvalidInputError(message)
    loaded: Handler = handler
    return loaded


def _built(function: str, here: CliContext) -> Handler:
    """The handler that the file assigns, with other surroundings than the process's."""
    from costguard.faas.handler import build_handler, build_http_handler

    build = build_http_handler if function in OVER_HTTP else build_handler
    return build(function, settings=lambda: here.settings, clock=here.clock)


def _lines(function: str, summary: Mapping[str, object], language: Language) -> list[str]:
    if "statusCode" in summary:
        return _answered(summary)
    when = datetime.fromisoformat(str(summary["scheduled_at"]))
    about = {"function": function, "run": str(summary.get("run_id", "")), "when": utc_words(when)}
    if summary.get("duplicate"):
        return [phrase("invoked_duplicate", language, **about)]
    verdicts = summary.get("findings")
    counted = verdicts.items() if isinstance(verdicts, Mapping) else ()
    budgets = summary.get("budgets")
    words = VIEWS[function].words if function in VIEWS else ""
    figures = [
        *((_verdict(name, words, language), count) for name, count in counted),
        *((phrase(f"figure_{name}", language), summary[name]) for name in _FIGURES if name in summary),
    ]
    wide = max((cells(name) for name, _ in figures), default=0)
    return [
        phrase("invoked", language, **about),
        *(_budget_lines(budgets, language) if isinstance(budgets, Mapping) else ()),
        *(f"  {name}{' ' * (wide - cells(name))}{value:>6}" for name, value in figures),
    ]


def _verdict(name: str, words: str, language: Language) -> str:
    """A budget is spent or not, a key rotated and a network closed as asked, where a machine is idle or in use."""
    return phrase(f"invoked_{words}_{name}", language) if words else verdict(Verdict(name), language)


def _budget_lines(budgets: Mapping[str, Any], language: Language) -> Iterator[str]:
    """How far each budget is spent, and whether that may be acted on."""
    for name, told in budgets.items():
        facts = {key: Money(Decimal(told[key]["amount"]), told[key]["currency"]) for key in ("spent", "amount")}
        sure = phrase("invoked_sure" if told["sure"] else "invoked_not_sure", language)
        yield "  " + phrase(
            "invoked_budget",
            language,
            name=name,
            share=told["share_percent"],
            spent=str(facts["spent"]),
            amount=str(facts["amount"]),
            period=told["period"],
            sure=sure,
        )


def _answered(reply: Mapping[str, object]) -> list[str]:
    """How a request was answered, and what people read of it."""
    said = str(reply.get("body", ""))
    try:
        document = json.loads(said)
        said = str(document["text"])
    except (ValueError, TypeError, KeyError):
        pass  # a page, a sentence, or nothing
    return [f"HTTP {reply['statusCode']}", *(clean(line, _LONGEST_LINE) for line in said.splitlines())]


def _status(summary: Mapping[str, object]) -> Exit:
    status = summary.get("statusCode")
    if isinstance(status, int):
        return Exit.OK if status < _REFUSED else Exit.HELD if status < _FAILED else Exit.UNAVAILABLE
    if summary.get("gaps"):
        return Exit.GAPS
    return Exit.HELD if summary.get("not_done") else Exit.OK
