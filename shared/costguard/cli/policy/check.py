"""`costguard policy check`: is this policy valid, and does it say what its writer means."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from costguard.cli.exits import Exit
from costguard.cli.options import A_POLICY, Json, Lang, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.policy import backtest
from costguard.cli.policy import diff as policy_diff
from costguard.cli.policy import explain as policy_explain
from costguard.cli.policy import fmt as policy_fmt
from costguard.cli.policy import init as policy_init
from costguard.cli.policy import plan as policy_plan
from costguard.cli.policy import publish as policy_publish
from costguard.cli.policy import schema as policy_schema
from costguard.cli.policy import trials as policy_trials
from costguard.cli.policy.diff import commit_of, text_at
from costguard.cli.program import workplace
from costguard.domain.errors import InvalidInputError
from costguard.report.budget.rules import budget_rule_json, budget_rules_table
from costguard.report.keys.rules import key_rule_json, key_rules_table
from costguard.report.network.rules import audit_rule_json, audit_rules_table
from costguard.report.policy.waits import wait_json, waits_table
from costguard.report.tables import Column, Table
from costguard.report.words.sentences import Language, choice, clean, label, phrase, span, verb

if TYPE_CHECKING:
    from costguard.guards.rules.common import Rung
    from costguard.policy.model.policy import Policy
    from costguard.policy.remarks import Remark
    from costguard.policy.syntax.problems import Problem
    from costguard.ports import PolicyText
    from costguard.settings import Settings

_OFTENEST = timedelta(minutes=1)
app = typer.Typer(help="Look at a policy without running it.", no_args_is_help=True)
app.command(epilog=backtest.BACKTEST_EXAMPLES)(backtest.backtest)


@app.callback()
def policy() -> None:
    """Look at a policy without running it."""


app.command(epilog=policy_diff.DIFF_EXAMPLES)(policy_diff.diff)
app.command(epilog=policy_plan.PLAN_EXAMPLES)(policy_plan.plan)
app.command(epilog=policy_explain.EXPLAIN_EXAMPLES)(policy_explain.explain)
app.command(epilog=policy_init.INIT_EXAMPLES)(policy_init.init)
app.command(epilog=policy_fmt.FMT_EXAMPLES)(policy_fmt.fmt)
app.command(epilog=policy_schema.SCHEMA_EXAMPLES)(policy_schema.schema)
app.command("test", epilog=policy_trials.TEST_EXAMPLES)(policy_trials.run_tests)
app.command(epilog=policy_publish.PUBLISH_EXAMPLES)(policy_publish.publish)
app.command(epilog=policy_publish.HISTORY_EXAMPLES)(policy_publish.history)
app.command(epilog=policy_publish.ROLLBACK_EXAMPLES)(policy_publish.rollback)
app.command(epilog=policy_publish.APPROVE_EXAMPLES)(policy_publish.approve)

CHECK_EXAMPLES = examples(
    "costguard policy check policies/",
    "costguard policy check policies/ --runs-every 24h",
    "costguard policy check git:HEAD~1",
)


@app.command(epilog=CHECK_EXAMPLES)
def check(
    ctx: typer.Context,
    path: Annotated[str, typer.Argument(metavar="PATH", help=f"The policy: {A_POLICY}.")],
    *,
    runs_every: Annotated[
        str,
        typer.Option(
            "--runs-every",
            metavar="DURATION",
            help="Show what each wait becomes where every function runs this often: 24h.",
            show_default="each as it is shipped: keys every 24h, the others every 1h",
        ),
    ] = "",
    write_holidays: Annotated[
        bool,
        typer.Option(
            "--write-holidays",
            help="Write the dates of calendar.holidays to holidays.yaml in PATH, for functions that read it there.",
        ),
    ] = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Check a policy: every mistake with file, line, column and the fix, then what it says.

    Reads no cloud and no ledger. Exit 0 when the policy is valid, 2 when it is not.
    """
    from costguard.policy.documents.loader import check_policy
    from costguard.policy.remarks import remarks
    from costguard.policy.sections import waits_of
    from costguard.policy.syntax.problems import invalid

    every = _runs_every(runs_every)
    text = text_at(ctx, path)
    read, problems = check_policy(text)
    if read is None:
        if as_json:
            emit(CommandResult(_invalid_json(problems), exit=Exit.BAD_INPUT), as_json=True)
        raise invalid(problems)
    commit = commit_of(path, text)
    with workplace(ctx, lang=lang) as here:
        language, found = here.language, remarks(read, here.clock.now())
        refused = _unasked(here.settings, read)
    if refused:
        if as_json:
            emit(CommandResult(_invalid_json(refused), exit=Exit.BAD_INPUT), as_json=True)
        raise invalid(refused)
    written = _write_holidays(path, text) if write_holidays else ""
    waits = waits_of(read, every)
    shown = waits if runs_every else tuple(wait for wait in waits if wait.is_longer)
    emit(
        CommandResult(
            {**_valid_json(read, found), "waits": [wait_json(wait) for wait in waits], "commit": commit or None},
            lines=(
                _counted(read, len(text.files), language),
                *((f"git {commit}",) if commit else ()),
                *((phrase("holidays_written", language, file=written),) if written else ()),
            ),
            tables=(
                *((_rules_table(read, language),) if read.idle_gpu else ()),
                *((budget_rules_table(read.budgets, language),) if read.budgets else ()),
                *((key_rules_table(read.kms_rotation, language),) if read.kms_rotation else ()),
                *((audit_rules_table(read.network_audit, language),) if read.network_audit else ()),
                *((waits_table(shown, language),) if shown else ()),
            ),
            closing=tuple(phrase("policy_remark", language, remark=str(remark)) for remark in found),
        ),
        as_json=as_json,
    )


def _write_holidays(path: str, text: PolicyText) -> str:
    """The path of the file; "" where the policy names no country."""
    from costguard.policy.documents.loader import holidays_file
    from costguard.policy.model.holidays import FILE

    dates = holidays_file(text)
    if dates and not Path(path).is_dir():
        message = f"{path}: --write-holidays writes beside costguard.yaml; name its folder"
        raise InvalidInputError(message)
    target = Path(path) / FILE
    try:
        if dates:
            target.write_text(dates, encoding="utf-8", newline="\n")
    except OSError as err:
        message = f"{target}: cannot be written: {err.strerror}"
        raise InvalidInputError(message) from err
    return str(target) if dates else ""


def _runs_every(given: str) -> Mapping[str, timedelta]:
    """How often each function runs: all as given, or each as it is shipped."""
    from costguard.policy.sections import RUNS_EVERY
    from costguard.policy.syntax.problems import BadValueError
    from costguard.policy.syntax.units import parse_duration

    if not given:
        return RUNS_EVERY
    try:
        every = parse_duration(given)
    except BadValueError as err:
        message = f"--runs-every: {err.message}; {err.fix}"
        raise InvalidInputError(message) from err
    if every < _OFTENEST:
        message = f"--runs-every: {given} is too often; timers run at most every minute"
        raise InvalidInputError(message)
    return dict.fromkeys(RUNS_EVERY, every)


def _unasked(settings: Settings, read: Policy) -> tuple[Problem, ...]:
    """The Prometheus servers that the authorization in these settings may not be sent to, and that are not asked."""
    from costguard.connections.prometheus import refusals
    from costguard.policy.syntax.problems import Mark, Problem

    found = []
    for server, reason, fix in refusals(settings, read):
        path, line, column = server.where.rsplit(":", 2)
        found.append(Problem(path, Mark(int(line), int(column)), "signals.prometheus", reason, fix))
    return tuple(found)


def _counted(read: Policy, files: int, lang: Language) -> str:
    rules, keys, networks = len(read.idle_gpu), len(read.kms_rotation), len(read.network_audit)
    budgets = len(read.budgets) or ""
    if networks:
        counted = {"files": files, "rules": rules, "budgets": budgets, "keys": keys or "", "networks": networks}
        return phrase("policy_valid_networks", lang, **counted)
    if keys:
        return phrase("policy_valid_keys", lang, files=files, rules=rules, budgets=budgets, keys=keys)
    if read.budgets:
        return phrase("policy_valid_budgets", lang, files=files, rules=rules, budgets=len(read.budgets))
    return phrase("policy_valid", lang, files=files, rules=rules)


def _rules_table(read: Policy, lang: Language) -> Table:
    columns = tuple(Column(key, label(key, lang)) for key in ("rule", "mode", "window", "ladder"))
    rows = tuple(
        (
            clean(rule.name),
            choice(rule.mode.name.lower(), lang),
            span(rule.idle.lasting),
            " → ".join(_rung_words(rung, lang) for rung in rule.rungs()),
        )
        for rule in read.idle_gpu
    )
    return Table(phrase("policy_rules", lang), columns, rows)


def _rung_words(rung: Rung, lang: Language) -> str:
    return verb(rung.verb, lang) + (f" (+{span(rung.after)})" if rung.after else "")


def _valid_json(read: Policy, found: tuple[Remark, ...]) -> dict[str, Any]:
    return {
        "schema": 1,
        "valid": True,
        "digest": read.digest,
        "mode": read.mode.name.lower(),
        "rules": [
            {
                "name": rule.name,
                "mode": rule.mode.name.lower(),
                "digest": rule.digest,
                "window_seconds": int(rule.idle.lasting.total_seconds()),
                "ladder": [
                    {"verb": rung.verb.value, "after_seconds": int(rung.after.total_seconds())} for rung in rule.rungs()
                ],
            }
            for rule in read.idle_gpu
        ],
        "budgets": [budget_rule_json(budget) for budget in read.budgets],
        "kms_rotation": [key_rule_json(rule) for rule in read.kms_rotation],
        "network_audit": [audit_rule_json(rule) for rule in read.network_audit],
        "problems": [],
        "remarks": [{"where": remark.where, "message": remark.message} for remark in found],
    }


def _invalid_json(problems: tuple[Problem, ...]) -> dict[str, Any]:
    return {
        "schema": 1,
        "valid": False,
        "problems": [
            {
                "path": problem.path,
                "line": problem.mark.line,
                "column": problem.mark.column,
                "field": problem.field,
                "message": problem.message,
                "fix": problem.fix,
                "excerpt": problem.excerpt,
            }
            for problem in problems
        ],
    }
