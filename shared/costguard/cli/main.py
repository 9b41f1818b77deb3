"""The command line: commands, and what becomes of their errors. Nothing heavy is imported here."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer

from costguard.cli.act import invoke, recheck, undo
from costguard.cli.decide import plan
from costguard.cli.demo import demo
from costguard.cli.exits import MEANINGS, Exit
from costguard.cli.look import budgets, cases, doctor, keys, networks, report, rollout, savings, scan, shadows
from costguard.cli.operate import audit, bundle, deploy, history, permissions
from costguard.cli.output import complain, survive_any_encoding
from costguard.cli.people import answers, digest, exceptions, freezes, outbox
from costguard.cli.policy import check as policy
from costguard.cli.program import Program
from costguard.cli.sandbox import commands as sandbox
from costguard.domain.errors import CostguardError, InvalidInputError, StalePlanError

# \b keeps the lines of a paragraph as they are
_STATUSES = "\b\nExit status:\n" + "\n".join(f"{status.value:5} {meaning}" for status, meaning in MEANINGS.items())

app = typer.Typer(
    name="costguard",
    help="Find idle GPU instances, warn their owners, stop, snapshot and terminate them: by policy, with every rail.",
    epilog=_STATUSES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # a traceback with local variables may show credentials
    rich_markup_mode=None,
)
app.command(epilog=demo.DEMO_EXAMPLES)(demo.demo)
app.command(epilog=scan.SCAN_EXAMPLES)(scan.scan)
app.command(epilog=doctor.DOCTOR_EXAMPLES)(doctor.doctor)
app.command(epilog=plan.PLAN_EXAMPLES)(plan.plan)
app.command(epilog=plan.APPLY_EXAMPLES)(plan.apply)
app.command(epilog=invoke.INVOKE_EXAMPLES)(invoke.invoke)
app.command(epilog=cases.CASES_EXAMPLES)(cases.cases)
app.command(epilog=cases.WHY_EXAMPLES)(cases.why)
app.command(epilog=outbox.OUTBOX_EXAMPLES)(outbox.outbox)
app.command(epilog=rollout.ROLLOUT_EXAMPLES)(rollout.rollout)
app.command(epilog=shadows.SHADOWS_EXAMPLES)(shadows.shadows)
app.command(epilog=report.REPORT_EXAMPLES)(report.report)
app.command(epilog=digest.DIGEST_EXAMPLES)(digest.digest)
app.command(epilog=answers.SNOOZE_EXAMPLES)(answers.snooze)
app.command(epilog=answers.APPROVE_EXAMPLES)(answers.approve)
app.command("stop-now", epilog=answers.STOP_NOW_EXAMPLES)(answers.stop_now)
app.command(epilog=answers.DISOWN_EXAMPLES)(answers.disown)
app.command(epilog=answers.START_EXAMPLES)(answers.start)
app.command(epilog=answers.PAUSE_EXAMPLES)(answers.pause)
app.command(epilog=answers.RESUME_EXAMPLES)(answers.resume)
app.command(epilog=exceptions.EXCEPTIONS_EXAMPLES)(exceptions.exceptions)
app.command(epilog=undo.UNDO_EXAMPLES)(undo.undo)
app.command(epilog=recheck.RECHECK_EXAMPLES)(recheck.recheck)
app.command(epilog=savings.SAVINGS_EXAMPLES)(savings.savings)
app.command(epilog=keys.KEYS_EXAMPLES)(keys.keys)
app.command(epilog=networks.NETWORKS_EXAMPLES)(networks.networks)
app.command(epilog=bundle.BUNDLE_EXAMPLES)(bundle.bundle)
app.command(epilog=deploy.DEPLOY_EXAMPLES)(deploy.deploy)
app.command(epilog=permissions.PERMISSIONS_EXAMPLES)(permissions.permissions)
budgets.app.command(epilog=freezes.THAW_EXAMPLES)(freezes.thaw)
budgets.app.command(epilog=freezes.FREEZE_POLICY_EXAMPLES)(freezes.freeze_policy)
budgets.app.command(epilog=freezes.FREEZE_ROLE_EXAMPLES)(freezes.freeze_role)
app.add_typer(budgets.app, name="budgets")
app.add_typer(policy.app, name="policy")
app.add_typer(exceptions.app, name="exception")
app.add_typer(audit.app, name="audit")
app.add_typer(history.app, name="history")
app.add_typer(sandbox.app, name="sandbox")


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - the signature Typer calls
    if wanted:
        from costguard.cli.operate.distribution import own_version

        typer.echo(f"costguard {own_version()}")
        raise typer.Exit


@app.callback()
def costguard(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Guard the GPU bill."""


def run(arguments: Sequence[str], commands: typer.Typer = app, program: Program | None = None) -> int:
    """Run one command line and return its exit status. Faults of Costguard itself come out as they are."""
    survive_any_encoding()
    try:
        _tree(commands)(list(arguments), prog_name="costguard", obj=program or Program())
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else Exit.OK
    except StalePlanError as err:
        complain(err)
        return Exit.REFUSED
    except InvalidInputError as err:
        complain(err)
        return Exit.BAD_INPUT
    except CostguardError as err:
        complain(err)
        return Exit.UNAVAILABLE
    return Exit.OK


@cache
def _tree(commands: typer.Typer) -> Any:
    """The commands with their options, made once a process: 40 ms, which tests would spend at every command."""
    return typer.main.get_command(commands)


def main() -> None:
    """The `costguard` program."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
