"""How long a month of minutes takes to read and replay; and with real traces, what fixed timeouts reclaim and regret.

`python tests/benchmarks/backtest.py` from the repository's root: 1,000 made-up series of 30 days by the minute, written
as two files of the long format, then read and replayed by a process of its own. `--smoke`: 20 series, in seconds.
`--data DIR`: replay real traces instead, none of which is part of this repository: `gpu_util/*.csv.gz` (pods: pod,
minute, gpu_util_pct; Helios: vc, time, total_gpu_num, running_gpu_num; Philly: time, active, total) and
`vm_cpu/bitbrains_small/*.parquet` (needs pyarrow). No figure fails the run.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone
from importlib import import_module
from pathlib import Path

from costguard.backtest import HORIZONS, Machine, Tally, Terms, replay, tallied
from costguard.domain.signals import HOUR
from costguard.engine.history.book import Book
from costguard.engine.history.history import read_record, unlisted
from costguard.policy.documents.loader import load_policy
from costguard.policy.model.policy import Policy
from costguard.ports import PolicyText

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
DAYS, MINUTES_A_DAY = 30, 24 * 60
SERIES, SMOKE_SERIES = 1000, 20
ID = "aws:111122223333:us-east-1:instance:{}"
WINDOWS, WAITS = ("1h", "3h", "6h", "12h", "24h", "48h", "72h"), ("1h", "24h")
EVERY_NTH = 4  # card or node of the large traces: a quarter of the work, the same shares
MOST_NODES = 420  # of Philly; a few values lie above
STEP = 300  # seconds between Bitbrains' samples
POLICY = """\
version: 1
mode: enforce
idle_gpu:
  - name: timeout
    idle_when_all: {{lasting: {window}, every_gpu_max_below: 5%}}
    then: [warn, {{stop: {{wait: {wait}}}}}]
"""


def policy(window: str, wait: str) -> Policy:
    """One rule, one timeout."""
    return load_policy(PolicyText({"costguard.yaml": POLICY.format(window=window, wait=wait)}, "benchmark"))


def make(folder: Path, count: int) -> int:
    """Write made-up series into two files; bursts of work, and pauses of which a few are long. Returns the bytes."""
    chance = random.Random(8)  # noqa: S311 - not for secrets
    times = [(START + timedelta(minutes=at)).strftime("%Y-%m-%dT%H:%M:%SZ") for at in range(DAYS * MINUTES_A_DAY)]
    written = 0
    for part in range(2):
        with gzip.open(folder / f"part{part}.csv.gz", "wt", compresslevel=1, encoding="utf-8") as text:
            text.write("time,resource_id,signal,device,value\n")
            for number in range(part, count, 2):
                key = f",{ID.format(f'i-{number:05d}')},gpu_percent,0,"
                rows = [f"{moment}{key}{value}\n" for moment, value in zip(times, use(chance, len(times)), strict=True)]
                written += sum(map(len, rows))
                text.write("".join(rows))
    return written


def use(chance: random.Random, length: int) -> list[float]:
    """Percent by the minute."""
    values: list[float] = []
    busy = chance.random() < 0.5
    while len(values) < length:
        lasting = chance.randint(30, 2000) if busy else int(60 * chance.paretovariate(0.8))
        values += [round(100 * chance.random(), 1) if busy else 0.0 for _ in range(min(lasting, length))]
        busy = not busy
    return values[:length]


def measured(folder: Path) -> None:
    """Read and replay what lies in the folder, and print what it took."""
    began = time.perf_counter()
    record = read_record([str(folder)])
    read = time.perf_counter()
    found = tallied(replay(policy("6h", "24h"), record.machines, Terms(START, START + DAYS * 24 * HOUR)), "")
    done = time.perf_counter()
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = sum(each.ru_utime + each.ru_stime for each in (own, children))
    peak = (own.ru_maxrss + 2 * children.ru_maxrss) / 1024  # of two at most at a time, each counted in full
    print(f"| {len(record.machines):,} series, {record.rows:,} rows | {read - began:.1f} | {done - read:.1f} |", end="")
    print(f" {done - began:.1f} | {cpu:.1f} | {peak:.0f} | {found.total.stops:,} stops |")


def pods(folder: Path) -> Iterator[Machine]:
    """GPU duty cycle of serving pods, 24 hours."""
    book = Book()
    with gzip.open(folder / "gpu_util/gentd26_pods_dev.csv.gz", "rt", encoding="utf-8", newline="") as text:
        rows = sorted((row["pod"], int(row["minute"]), row["gpu_util_pct"]) for row in csv.DictReader(text))
    for pod, minute, value in rows:
        if value:
            series = book.series(ID.format(pod), "gpu_percent", "0")
            book.add(series, (START + timedelta(minutes=minute)).timestamp(), float(value), 1)
    yield from machines(book)


def helios(folder: Path) -> Iterator[Machine]:
    """The k-th busiest card of each team: busy while at least k of the team's cards run."""
    by_team: dict[str, list[tuple[datetime, float, float]]] = {}
    with gzip.open(folder / "gpu_util/helios_earth_vc_dev.csv.gz", "rt", encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text):
            place = (moment(row["time"]), float(row["running_gpu_num"]), float(row["total_gpu_num"]))
            by_team.setdefault(row["vc"], []).append(place)
    for team, places in by_team.items():
        yield from stacked(team, places, int(max(total for _, _, total in places)))


def philly(folder: Path) -> Iterator[Machine]:
    """The k-th busiest node: busy while at least k nodes are active."""
    with gzip.open(folder / "gpu_util/philly_node_sequence.csv.gz", "rt", encoding="utf-8", newline="") as text:
        rows = [(moment(row["time"]), float(row["active"] or -1)) for row in csv.DictReader(text)]
    places = sorted({at: (at, active, 0.0) for at, active in rows if 0 <= active <= MOST_NODES}.values())
    yield from stacked("node", places, MOST_NODES)


def stacked(name: str, places: Sequence[tuple[datetime, float, float]], count: int) -> Iterator[Machine]:
    book = Book()
    kept = [(at.timestamp(), active) for at, active, _ in sorted(places)]
    for number in range(1, count + 1, EVERY_NTH):
        series = book.series(ID.format(f"{name}-{number}"), "gpu_percent", "0")
        for at, active in kept:
            book.add(series, at, 100.0 if active >= number else 0.0, 1)
    yield from machines(book)


def bitbrains(folder: Path) -> Iterator[Machine]:
    """CPU of virtual machines in percent of what they have, where a GPU's would stand: 30 days by 5 minutes."""
    parquet = import_module("pyarrow.parquet")
    inside = folder / "vm_cpu/bitbrains_small"
    meta = parquet.read_table(inside / "meta.parquet").to_pylist()
    capacity = {row["id"]: row["cpu_capacity"] for row in meta}
    book = Book()
    rows = parquet.read_table(inside / "trace.parquet").to_pylist()
    for row in sorted(rows, key=lambda one: (one["id"], one["timestamp"])):
        series = book.series(ID.format(row["id"]), "gpu_percent", "0")
        percent = min(100.0, 100 * row["cpu_usage"] / capacity[row["id"]])
        samples = max(1, round(row["duration"] / 1000 / STEP))
        for back in range(samples, 0, -1):  # a row stands for all the samples of its duration, which ends with it
            at = row["timestamp"].timestamp() - back * STEP
            if at > series.last:
                book.add(series, at, percent, 1)
    yield from machines(book)


def moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=timezone.utc)


def machines(book: Book) -> Iterator[Machine]:
    for resource_id, found in book.by_resource().items():
        known = unlisted(resource_id, 1)
        yield Machine(known.instance, None, tuple(each.history("trace") for each in found))


def frontier_of(name: str, fleet: Sequence[Machine]) -> None:
    """A row a timeout."""
    begin = min(each.start for one in fleet for each in one.histories)
    end = max(each.start + len(each.samples) * HOUR for one in fleet for each in one.histories)
    print(f"\n**{name}**: {len(fleet)} machines, {(end - begin) / HOUR / 24:.1f} days")
    print("\n| window | wait | stops | idle hours reclaimed | of idle hours |", end="")
    print(f"{'|'.join(f' back within {hours} h ' for hours in HORIZONS)}| undetermined at 24 h | hours per regret |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for window in WINDOWS:
        for wait in WAITS:
            total = tallied(replay(policy(window, wait), fleet, Terms(begin, end)), "").total
            if total.stops:
                print(f"| {window} | {wait} | {cells(total)} |")


def cells(total: Tally) -> str:
    shares = [share(each.yes, each.undetermined, total.stops) for each in total.regrets]
    day = next(each for each in total.regrets if each.hours == 24)
    per = total.hours_per_regret(24)
    return " | ".join(
        (
            f"{total.stops:,}",
            f"{total.reclaimed_hours:,}",
            f"{100 * total.reclaimed_hours / total.idle_hours:.0f} %",
            *shares,
            f"{day.undetermined:,}",
            "–" if per is None else f"{per:.0f}",
        )
    )


def share(yes: int, undetermined: int, stops: int) -> str:
    """From none to all of those that nobody can tell."""
    least, most = 100 * yes / stops, 100 * (yes + undetermined) / stops
    return f"{least:.0f} %" if round(least) == round(most) else f"{least:.0f}–{most:.0f} %"


def traces(folder: Path) -> None:
    frontier_of("Serving pods, GPU duty cycle (alibaba/clusterdata, cluster-trace-v2026-GenAI)", list(pods(folder)))
    frontier_of(
        f"Helios Earth, every {EVERY_NTH}th card by team (S-Lab-System-Group/HeliosArtifact)", list(helios(folder))
    )
    frontier_of(f"Philly, every {EVERY_NTH}th node (the same repository)", list(philly(folder)))
    frontier_of("Bitbrains, CPU of 50 virtual machines (atlarge-research/opendc)", list(bitbrains(folder)))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--data", type=Path, metavar="DIR", help="a folder with real traces, as said above")
    what.add_argument("--smoke", action="store_true", help="20 series, in seconds")
    what.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure is not None:
        measured(given.measure)
        return
    print(f"{platform.machine()}, {platform.system()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    if given.data is not None:
        traces(given.data)
        return
    with tempfile.TemporaryDirectory() as folder:
        count = SMOKE_SERIES if given.smoke else SERIES
        size = make(Path(folder), count)
        print(f"{count:,} series × {DAYS} days × 1 minute: {size / 1e6:,.0f} MB of CSV in 2 files; one run")
        print(f"load average before: {os.getloadavg()[0]:.1f}\n")
        print(
            "| what | read s | replay s | wall s | CPU s | peak MB | outcome |\n|---|---|---|---|---|---|---|",
            flush=True,
        )
        command = [sys.executable, __file__, "--measure", folder]
        subprocess.run(command, check=True)  # noqa: S603 - our own interpreter and file
    print(f"\nload average after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
