"""`costguard sandbox`: made-up clouds for trying things out and for anybody's tests, and the clock of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import Enum
from typing import Annotated, Any

import typer

from costguard.cli.options import Json, Lang, examples
from costguard.cli.output import CommandResult, emit, to_json
from costguard.cli.program import CliContext, Program, sandbox_installed, workplace
from costguard.domain.errors import InvalidInputError
from costguard.report.words.sentences import Language, phrase

app = typer.Typer(help="Made-up clouds to try things on, and for tests.", no_args_is_help=True, rich_markup_mode=None)
UP_EXAMPLES = examples(
    "costguard sandbox up --port 8900",
    "costguard sandbox up alibaba --port 8901",
    "costguard sandbox up tencent --json",
)
CLOCK_EXAMPLES = examples(
    "COSTGUARD_SANDBOX=http://127.0.0.1:8900 costguard sandbox clock --advance 2d",
)

MESSAGES_EXAMPLES = examples("COSTGUARD_SANDBOX=http://127.0.0.1:8900 costguard sandbox messages")


class Emulated(str, Enum):
    """The clouds that have an emulator of ours; for AWS there is moto."""

    ALIBABA = "alibaba"
    TENCENT = "tencent"


@app.command(epilog=UP_EXAMPLES)
def up(
    ctx: typer.Context,
    cloud: Annotated[
        Emulated | None, typer.Argument(help="One cloud alone; without it all of them and Slack.", metavar="CLOUD")
    ] = None,
    *,
    port: Annotated[
        int,
        typer.Option("--port", min=0, max=65535, help="Where to listen, without CLOUD at the 3 after it too; 0: any."),
    ] = 0,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Serve the demo's world on loopback, as three clouds and Slack would, until interrupted.

    It begins as the demo does, and its time passes as it does outside; `costguard sandbox clock` moves it. In another
    terminal COSTGUARD_SANDBOX leads every command there. With CLOUD one cloud alone is served, from now on, to any SDK.
    Signatures, permissions and parameters are checked, and faults can be ordered: see docs/sandbox.md.
    """
    program = ctx.obj if isinstance(ctx.obj, Program) else Program()
    if cloud is None:
        _serve_all(program, port, lang, as_json=as_json)
        return
    from costguard.cli.sandbox.running import serve_one

    with serve_one(cloud.value, port) as said:
        typer.echo(to_json(said) if as_json else "\n".join(f"{name:18} {value}" for name, value in said.items()))
        program.wait()


@app.command(epilog=CLOCK_EXAMPLES)
def clock(
    ctx: typer.Context,
    *,
    advance: Annotated[
        str, typer.Option("--advance", metavar="DURATION", help="Let so much time pass, such as 90m, 24h or 2d.")
    ] = "",
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Show what time it is in the sandbox that COSTGUARD_SANDBOX names, or let time pass there."""
    step = _duration(advance) if advance else timedelta(0)
    with workplace(ctx, lang=lang, cloud=False) as here:
        from costguard.connections.followed import move_on
        from costguard.report.plan.evidence import utc_words

        now = move_on(_followed(here), step)
        said = phrase("sandbox_moved", here.language, now=utc_words(now))
    emit(CommandResult({"schema": 1, "now": now.isoformat()}, lines=(said,)), as_json=as_json)


@app.command(epilog=MESSAGES_EXAMPLES)
def messages(ctx: typer.Context, *, as_json: Json = False, lang: Lang = None) -> None:
    """Show what people were told in Slack, in the sandbox that COSTGUARD_SANDBOX names: the title of each message."""
    with workplace(ctx, lang=lang, cloud=False) as here:
        from costguard.connections.followed import messages_in
        from costguard.report.plan.evidence import utc_words

        found = messages_in(_followed(here))
    lines = (f"{utc_words(each.at)}  {each.channel}  {each.text.partition(chr(10))[0]}" for each in found)
    data = [{"at": each.at.isoformat(), "channel": each.channel, "text": each.text} for each in found]
    emit(CommandResult({"schema": 1, "messages": data}, lines=tuple(lines)), as_json=as_json)


def _followed(here: CliContext) -> str:
    if not here.settings.sandbox:
        raise InvalidInputError("COSTGUARD_SANDBOX names no sandbox; set it as `costguard sandbox up` prints it")
    return here.settings.sandbox


def _serve_all(program: Program, port: int, lang: Language | None, *, as_json: bool) -> None:
    language = lang or Language(program.settings().language)
    with sandbox_installed():
        from costguard.cli.sandbox.running import described, serve

        with serve(port) as running:
            said = described(running)
            typer.echo(to_json(said) if as_json else "\n".join(shown(said, language)))
            program.wait()


def shown(said: dict[str, Any], language: Language) -> Iterator[str]:
    """What people read while it runs: the setting to copy, and the addresses and made-up keys of its parts."""
    from costguard.report.plan.evidence import utc_words

    yield phrase("sandbox_up", language, now=utc_words(datetime.fromisoformat(said["now"])))
    yield f"\n  export COSTGUARD_SANDBOX={said['url']}\n"
    yield phrase("sandbox_up_cloud", language)
    yield ""
    for name, cloud in said["clouds"].items():
        yield f"  {name:8} {cloud['url']}  {cloud['access_key_id']}  {cloud['access_key_secret']}"
    yield f"  {'slack':8} {said['slack']['url']}  {said['slack']['token']}"


def _duration(text: str) -> timedelta:
    from costguard.policy.syntax.problems import BadValueError
    from costguard.policy.syntax.units import parse_duration

    try:
        return parse_duration(text)
    except BadValueError as err:
        fix = f"; {err.fix}" if err.fix else ""
        message = f"--advance: {err.message}{fix}"
        raise InvalidInputError(message) from err
