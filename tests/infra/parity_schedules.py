"""infra/modules/schedule against another reading of cron: the same minutes of two months, on every host.

The module is evaluated by Terraform, which needs no provider for it. Each host's form is then read as its vendor's page
says (FC and SCF by names of weekdays, SCF by Beijing's clock), and compared minute by minute.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.infra.aws_terraform import NotPossibleError

ROOT = Path(__file__).parents[2]
_MODULE = ROOT / "infra" / "modules" / "schedule"
_START = datetime(2026, 1, 27, tzinfo=timezone.utc)  # the ends of two months, one of them short
_DAYS = 37
_BEIJING = timezone(timedelta(hours=8))
_NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))

_SCHEDULES = {
    "quarters": "*/15 * * * *",
    "odd": "7-59/13 3,5-9 * * *",
    "week": "30 18,20 * * 1-5",
    "sunday": "0 20 * * 0",
    "sabbath": "5 2 * * 6,7",
    "days": "12 4 1,15,31 * *",
    "months": "0 1-3 * 2,3 *",
    "wrap": "59 15,16,23 * * *",
}


def check() -> list[str]:
    """What runs at another minute than its schedule says, and whatever `terraform fmt` and `terraform test` find.

    Raises:
        NotPossibleError: there is no Terraform here.
    """
    terraform = shutil.which("terraform")
    if terraform is None:
        message = "terraform is not installed"
        raise NotPossibleError(message)
    own = {
        path.parent.name: found[1]
        for path in sorted((ROOT / "functions").glob("*/function.yaml"))
        if (found := re.search(r'^schedule: "([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE))
    }
    with TemporaryDirectory(prefix="costguard-schedule-") as name:
        folder = Path(name)
        environment = {**os.environ, "TF_DATA_DIR": str(folder / "data"), "TF_CLI_CONFIG_FILE": str(folder / "rc")}
        (folder / "rc").write_text("disable_checkpoint = true\n", encoding="utf-8")
        runner = _Runner(terraform, environment)
        problems = runner.run(
            [
                "fmt",
                "-check",
                "-diff",
                "-recursive",
                *(str(ROOT / "infra" / one) for one in ("alibaba", "tencent", "modules")),
            ],
            ROOT,
        )
        shutil.copytree(_MODULE, folder / "module")
        problems += runner.run(["init", "-no-color", "-input=false"], folder / "module")
        problems += runner.run(["test", "-no-color"], folder / "module")
        if problems:
            return problems
        schedules = {**own, **_SCHEDULES}
        return _compared(schedules, runner.outputs(folder / "module", {"five": schedules}))


class _Runner:
    def __init__(self, terraform: str, environment: Mapping[str, str]) -> None:
        self._terraform = terraform
        self._environment = environment

    def run(self, arguments: list[str], folder: Path) -> list[str]:
        done = self._call(arguments, folder)
        return [] if done.returncode == 0 else [f"terraform {arguments[0]}: {done.stdout}{done.stderr}".strip()]

    def outputs(self, folder: Path, variables: Mapping[str, object]) -> dict[str, dict[str, str]]:
        """The module's outputs for these variables."""
        (folder / "made.auto.tfvars.json").write_text(json.dumps(variables), encoding="utf-8")
        self._call(["apply", "-no-color", "-auto-approve", "-input=false"], folder)
        told = json.loads(self._call(["output", "-json"], folder).stdout)
        return {name: output["value"] for name, output in told.items()}

    def _call(self, arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 - Terraform, on files of ours
            [self._terraform, *arguments],
            cwd=folder,
            env=dict(self._environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


def _compared(schedules: Mapping[str, str], outputs: Mapping[str, Mapping[str, str]]) -> list[str]:
    readers: dict[str, Callable[[str], Callable[[datetime], bool]]] = {"aws": _aws, "fc": _fc, "scf": _scf}
    problems = []
    for host, reader in readers.items():
        told = outputs.get(host, {})
        for key, text in schedules.items():
            if key not in told:
                problems.append(f"infra/modules/schedule: nothing for {host} from {text!r}")
                continue
            wanted, got = _minutes(_five(text)), _minutes(reader(told[key]))
            if wanted != got:
                first = min(wanted ^ got)
                told_as = f"{text!r} is {told[key]!r} for {host}"
                problems.append(f"infra/modules/schedule: {told_as}, which differs at {first:%a %F %R} UTC")
    return problems


def _minutes(runs: Callable[[datetime], bool]) -> set[datetime]:
    every = (_START + timedelta(minutes=n) for n in range(_DAYS * 24 * 60))
    return {minute for minute in every if runs(minute)}


def _five(text: str) -> Callable[[datetime], bool]:
    minute, hour, day, month, weekday = (
        _numbers(part, bounds) for part, bounds in zip(text.split(), _BOUNDS, strict=True)
    )
    weekdays = {number % 7 for number in weekday}
    return lambda at: (
        at.minute in minute
        and at.hour in hour
        and at.day in day
        and at.month in month
        and at.isoweekday() % 7 in weekdays
    )


def _aws(text: str) -> Callable[[datetime], bool]:
    """Six fields, of which the last is the year; `?` in one of the day fields."""
    inner = re.fullmatch(r"cron\((.+) \*\)", text)
    fields = inner[1].split() if inner else []
    if len(fields) != len(_BOUNDS) or fields.count("?") != 1:
        return lambda _: False
    return _named([field if field != "?" else "*" for field in fields], timezone.utc)


def _fc(text: str) -> Callable[[datetime], bool]:
    seconds, *fields = text.split()
    return _named(fields, timezone.utc) if seconds == "0" else lambda _: False


def _scf(text: str) -> Callable[[datetime], bool]:
    seconds, *fields, year = text.split()
    return _named(fields, _BEIJING) if (seconds, year) == ("0", "*") else lambda _: False


def _named(fields: list[str], clock: timezone) -> Callable[[datetime], bool]:
    """Lists of numbers, and of names in the weekdays' field; a number there would mean another day on each host."""
    *numbers, weekday = fields
    minute, hour, day, month = (_numbers(field, bounds) for field, bounds in zip(numbers, _BOUNDS[:4], strict=True))
    names = set(_NAMES) if weekday == "*" else set(weekday.split(","))
    if not names <= set(_NAMES):
        return lambda _: False

    def runs(at: datetime) -> bool:
        there = at.astimezone(clock)
        return (
            there.minute in minute
            and there.hour in hour
            and there.day in day
            and there.month in month
            and _NAMES[there.isoweekday() % 7] in names
        )

    return runs


def _numbers(field: str, bounds: tuple[int, int]) -> set[int]:
    numbers: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        low, high = bounds if span == "*" else (int(first), int(last or first))
        numbers |= set(range(low, high + 1, int(step or 1)))
    return numbers
