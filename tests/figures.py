"""How large the product is, and how much of it one event of `idle_gpu` loads: `python -m tests.figures [--loaded]`.

The event runs in a process of its own, on AWS in the sandbox and at its time, under a policy that enforces, with Slack
set up and machines to tell of. Counted are the product's files that hold more than a docstring; the emulators' are not.
`--loaded` names those that were loaded.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.test_a_toy_guard import CHANGED, NEW

from costguard.cli.sandbox.running import Sandbox
from costguard.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "shared/costguard"
NOT_SHOWN = {"__pycache__", "__init__.py"}

POLICY = """
version: 1
mode: enforce
accounts: [{cloud: aws, id: "%s", regions: [us-east-1]}]
idle_gpu: [{name: a}]
notify: {default: "slack:#gpu"}
"""

EVENT = """
import json, sys
from datetime import datetime
from types import SimpleNamespace

from costguard.faas.handler import build_handler

class Still:
    def now(self):
        return datetime.fromisoformat(sys.argv[1])

    def sleep(self, seconds):
        pass

context = SimpleNamespace(aws_request_id="r", get_remaining_time_in_millis=lambda: 900_000)
event = json.load(open("events/lambda/idle_gpu.json", encoding="utf-8"))
done = build_handler("idle_gpu", clock=Still(), stream=sys.stderr)(event, context)
files = sorted({module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] == "costguard"})
json.dump({"done": done, "files": files}, sys.stdout)
"""


def sizes(files: Iterable[Path]) -> Counter[str]:
    """All lines, of these the blank ones and those of docstrings; and the statements that are none of those."""
    counted: Counter[str] = Counter()
    for file in files:
        text = file.read_text("utf-8")
        lines = text.splitlines()
        counted.update(files=1, lines=len(lines), blank=sum(not line.strip() for line in lines))
        for node in ast.walk(ast.parse(text)):
            counted["statements"] += isinstance(node, ast.stmt)
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
                said = node.body[0]
                counted["docstring"] += (said.end_lineno or said.lineno) - said.lineno + 1
                counted["statements"] -= 1
    return counted


def fullest() -> tuple[int, str]:
    """How many entries the fullest folder of the product shows, and which it is."""
    folders = {PACKAGE, *(file.parent for file in PACKAGE.rglob("*.py"))}
    shown = ((sum(one.name not in NOT_SHOWN for one in each.iterdir()), each) for each in folders)
    size, folder = max(shown)
    return size, folder.relative_to(ROOT).as_posix()


def loaded() -> list[str]:
    """The files that one event of `idle_gpu` has loaded when it is over."""
    with TemporaryDirectory() as folder, Sandbox.start() as sandbox:
        account = next(spec.account for spec in sandbox.world.fleet if spec.cloud == "aws")
        policy = Path(folder, "costguard.yaml")
        policy.write_text(POLICY % account, "utf-8")
        settings = sandbox.settings(Settings())
        key = settings.aws.key
        said = {
            "COSTGUARD_POLICY": str(policy),
            "COSTGUARD_LEDGER": settings.ledger.reveal(),
            "COSTGUARD_SLACK_TOKEN": settings.slack_token.reveal(),
            "COSTGUARD_SLACK_URL": settings.slack_url,
            "AWS_ENDPOINT_URL": settings.aws.endpoint_url,
            "AWS_ACCESS_KEY_ID": key.key_id if key is not None else "",
            "AWS_SECRET_ACCESS_KEY": key.secret.reveal() if key is not None else "",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        done = subprocess.run(  # noqa: S603 - this interpreter, and words of this file
            [sys.executable, "-c", EVENT, sandbox.clock.now().isoformat()],
            env={**kept, **said, "PYTHONPATH": str(ROOT / "shared")},
            cwd=ROOT,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
    told = json.loads(done.stdout) if done.returncode == 0 else {}
    if not told or told["done"]["gaps"] or not told["done"]["done"]:
        message = f"the event told nobody: {told.get('done')}\n{done.stderr[-2000:]}"
        raise SystemExit(message)
    paths = map(Path, told["files"])
    return [path.relative_to(PACKAGE).as_posix() for path in paths if len(ast.parse(path.read_text("utf-8")).body) > 1]


def main() -> None:
    """Print the figures."""
    counted = sizes(sorted(PACKAGE.rglob("*.py")))
    files, (entries, folder) = loaded(), fullest()
    toy = sum(len(text.splitlines()) for text in NEW.values()) + sum(map(len, CHANGED.values()))
    lines = [f"{name:32} {counted[name]:>8,}" for name in ("lines", "blank", "docstring", "statements", "files")]
    lines.append(f"{'entries of the fullest folder':32} {entries:>8}  {folder}")
    lines.append(f"{'files that an idle event loads':32} {len(files):>8}")
    lines.append(f"{'lines of a toy guard':32} {toy:>8}  in {len(NEW) + len(CHANGED)} places")
    sys.stdout.write("\n".join([*lines, *(files if "--loaded" in sys.argv else ())]) + "\n")


if __name__ == "__main__":
    main()
