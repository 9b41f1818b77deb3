"""How long a click takes that somebody waits for: the shipped `slack_actions` by Lambda's own runtime client.

`python tests/benchmarks/one_click.py [--smoke] [--clicks N] [--ledger-ms MS] [--slack-ms MS]` from the root. The
ledger is DynamoDB as moto plays it, Slack the stand-in, both on loopback with the delay given for each call. The first
click starts a process and imports everything; the others meet it warm. Slack gives up after 3,000 ms. No figure fails
the run; a click that is not in the ledger does.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from statistics import median
from typing import Any

from cloudstand.aws.compute.hastening import hastening
from cloudstand.aws.core.patching import applied
from cloudstand.wire.server import WireServer
from cloudstand.wire.wsgi import serving
from costguard.engine.ledger.memory import Memory
from costguard.providers.aws.core.store import DynamoDbLedger

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.contract.ledger_servers import SerialDynamoDb, dynamodb_test_client
from tests.contract.test_slack_function import AWS, ROOT, event_of
from tests.runtime_api import SmallLambda
from tests.slack_rig import KEEP_24H, OWNER, Office, Rig, Watch, stopping_case

_GIVES_UP = 3000


class Clock(Watch):
    """The time of the process under test."""

    def now(self) -> datetime:
        return datetime.now(timezone.utc)


class Distant:
    """A ledger some milliseconds away; `asked` counts the calls."""

    def __init__(self, seconds: float) -> None:
        self._app, self.seconds, self.asked = SerialDynamoDb(), seconds, 0

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        self.asked += 1
        time.sleep(self.seconds)
        return self._app(environ, start_response)


def measured(clicks: int, ledger_seconds: float, slack_seconds: float) -> None:
    """Make the clicks, and print what they took."""
    with applied(hastening()), tempfile.TemporaryDirectory() as folder:
        distant = Distant(0)
        with WireServer(serving(distant)) as server:
            table = DynamoDbLedger(dynamodb_test_client(server.url), "answers")
            table.create_table()
            rig = Rig(Path(folder), Office(Clock()))
            rig.memory.store.close()
            rig.memory = Memory.over(table)
            shutil.copy(ROOT / "functions/slack_actions/handler.py", folder)
            environ = {
                **AWS,
                "COSTGUARD_LEDGER": f"dynamodb://answers?region=us-east-1&endpoint_url={server.url}",
                "COSTGUARD_POLICY": str(Path(folder) / "costguard.yaml"),
                "COSTGUARD_SLACK_TOKEN": rig.slack.token,
                "COSTGUARD_SLACK_URL": rig.slack.base_url,
                "COSTGUARD_SLACK_SIGNING_SECRET": rig.slack.signing_secret,
            }
            told = [_told(rig, number) for number in range(clicks + 1)]
            distant.seconds = ledger_seconds
            rig.slack.faults.slow = timedelta(seconds=slack_seconds)
            with SmallLambda(Path(folder), "handler.handler", Path(folder) / "log", environ) as function:
                took, asked = [], []
                for ts in told:
                    event = event_of("lambda", rig.slack.press(ts, KEEP_24H, OWNER))
                    before, began = distant.asked, time.perf_counter()
                    answer = function.invoke(event, seconds=60)
                    took.append((time.perf_counter() - began) * 1000)
                    asked.append(distant.asked - before)
                    if answer.kind != "response" or answer.body["statusCode"] != 200:
                        message = f"not acknowledged: {answer}\n{function.log_text()}"
                        raise SystemExit(message)
            kept = len(rig.memory.snoozes.active(rig.clock.now()))
            rig.slack.close()
    if kept != len(told):
        message = f"{kept} of {len(told)} clicks are in the ledger"
        raise SystemExit(message)
    warm = took[1:]
    print(f"ledger {ledger_seconds * 1000:.0f} ms a call, Slack {slack_seconds * 1000:.0f} ms")
    print(f"  first click, with a new process  {took[0]:6.0f} ms")
    print(f"  warm, median of {len(warm):<3}               {median(warm):6.0f} ms")
    print(f"  warm, worst                      {max(warm):6.0f} ms of the {_GIVES_UP} that Slack waits")
    print(f"  ledger calls a warm click        {median(asked[1:]):6.0f}")


def _told(rig: Rig, number: int) -> str:
    machine = replace(stopping_case().subject, native_id=f"i-{number}")
    return rig.told(stopping_case(case_id=f"case{number}", subject=machine))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="three warm clicks, nothing far away")
    parser.add_argument("--clicks", type=int, default=30)
    parser.add_argument("--ledger-ms", type=float, default=10)
    parser.add_argument("--slack-ms", type=float, default=80)
    asked = parser.parse_args(arguments)
    print(f"Python {platform.python_version()} on {platform.machine()}")
    if asked.smoke:
        measured(3, 0, 0)
    else:
        measured(asked.clicks, asked.ledger_ms / 1000, asked.slack_ms / 1000)


if __name__ == "__main__":
    main()
