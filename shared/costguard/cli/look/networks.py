"""`costguard networks`: which networks are not as the policy asks, on read-only credentials and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from costguard.cli.exits import Exit
from costguard.cli.files import write_file
from costguard.cli.options import Json, Lang, LedgerUrl, PolicyPath, Sandbox, examples
from costguard.cli.output import CommandResult, emit, to_json
from costguard.cli.program import CliContext, ledger_read_only, workplace
from costguard.cli.progress import shard_progress
from costguard.domain.errors import InvalidInputError, UnavailableError
from costguard.report.words.sentences import gap as gap_words
from costguard.report.words.sentences import phrase

if TYPE_CHECKING:
    from costguard.engine.guards.networks.look import NetworkLook
    from costguard.policy.model.policy import Policy
    from costguard.report.network.order import NetworkReport

NETWORKS_EXAMPLES = examples(
    "costguard networks --policy policies/",
    "costguard networks --all --json",
    "costguard networks --sarif networks.sarif",
    "costguard networks --sandbox --lang zh",
)
_EXAMPLE = (
    "network_audit:",
    "  - {name: gpu-hosts, forbid: [public_ip, open_admin_port, unattached_public_address, flow_logs_off]}",
)


def networks(
    ctx: typer.Context,
    *,
    whole: Annotated[
        bool, typer.Option("--all", help="Show every finding, also what is as asked and what is not judged.")
    ] = False,
    sarif: Annotated[
        str, typer.Option("--sarif", metavar="FILE", help="Write the findings to a file as SARIF 2.1.0 as well.")
    ] = "",
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Show which GPU instances the internet reaches and what else of their networks is not as the policy asks.

    Each way in is shown whole, from the address to the instance, with the least change that closes it; addresses and
    gateways that are paid for and not used with their cost. The gravest stand first, then what could not be
    measured. Needs read-only credentials; the ledger only says since when an address has been without use, and is
    not written. Nothing is changed.

    Exit status: 0 done, 11 something could not be read.
    """
    with workplace(ctx, lang=lang, sandbox=sandbox, policy=policy, ledger=ledger) as here:
        answer = networks_answer(here, whole=whole, sarif=sarif)
    emit(answer, as_json=as_json)


def networks_answer(here: CliContext, *, whole: bool = False, sarif: str = "") -> CommandResult:
    """What there is to say of all networks.

    Raises:
        UnavailableError: nothing at all could be read.
        InvalidInputError: the SARIF file cannot be written.
    """
    from costguard.bootstrap import read_policy
    from costguard.report.network.order import NetworkReport
    from costguard.report.network.to_json import networks_json
    from costguard.report.network.views import network_closing, network_summary_lines, network_tables

    if sarif and (Path(sarif).is_dir() or not Path(sarif).parent.is_dir()):  # before minutes of reading
        message = f"{sarif}: cannot be written: it is a folder, or there is none to hold it"
        raise InvalidInputError(message)
    language, read = here.language, read_policy(here.settings)
    rules = read.network_audit
    if not rules:
        lines = (phrase("networks_none", language), "", *_EXAMPLE, "", phrase("networks_none_hint", language))
        nothing = NetworkReport(())
        closing = (_written(here, sarif, nothing),) if sarif else ()
        return CommandResult(networks_json(nothing, rules, here.clock.now(), language), lines=lines, closing=closing)
    looked = _look(here, read)
    if looked.gaps and not looked.shards:
        unread = "\n".join(gap_words(gap, language) for gap in looked.gaps)
        message = f"nothing could be read\n{unread}"
        raise UnavailableError(message)
    report = looked.report
    written = (_written(here, sarif, report),) if sarif else ()
    return CommandResult(
        networks_json(report, rules, looked.now, language),
        lines=tuple(network_summary_lines(report, language)),
        tables=network_tables(report, language, whole=whole),
        closing=(*network_closing(report, language, whole=whole), *written),
        exit=Exit.GAPS if report.gaps else Exit.OK,
    )


def _look(here: CliContext, read: Policy) -> NetworkLook:
    from costguard.bootstrap import targets_of
    from costguard.connections import Connections
    from costguard.engine.guards.networks.look import SightingsRepository, first_seen, look_at_networks

    targets = targets_of(read, here.settings)
    with ledger_read_only(here) as memory:
        known = first_seen(SightingsRepository(memory.store).all(), here.clock.now())
    with Connections(here.settings, read, here.clock) as connections, shard_progress("Reading") as step:
        connections.open(targets)
        return look_at_networks(
            connections.readings,
            connections.networks(),
            targets,
            read,
            here.clock,
            first_seen=known,
            progress=step,
        )


def _written(here: CliContext, path: str, report: NetworkReport) -> str:
    """Write the SARIF file; the line that says so."""
    from costguard.cli.operate.distribution import own_version
    from costguard.report.network.sarif import network_sarif

    log = network_sarif(report, here.clock.now(), own_version(), here.language)
    write_file(path, f"{to_json(log)}\n")
    return phrase("networks_sarif_written", here.language, file=path)
