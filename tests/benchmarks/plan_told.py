"""Fills the ledger of `plan.py --due stops`: a run of 25 hours ago, which told the owners of all idle machines."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

from costguard.bootstrap import open_run_context
from costguard.engine.run.run import run_guard
from costguard.ports import Delivery, Message
from costguard.settings import load_settings


class Yesterday:
    """A clock that stands 25 hours ago."""

    def now(self) -> datetime:
        """Always the same distance."""
        return datetime.now(timezone.utc) - timedelta(hours=25)

    def sleep(self, seconds: float) -> None:
        """Nobody waits here."""


class Delivered:
    """A channel that takes everything at once."""

    def send(self, message: Message) -> Delivery:
        """Taken."""
        del message
        return Delivery("1")

    def edit(self, receipt: str, message: Message) -> bool:
        """Edited."""
        del receipt, message
        return True

    def capacity(self, message: Message) -> int:
        """All of it in one."""
        return max(1, len(message.parts))


def main() -> None:
    """Run."""
    settings = load_settings({**os.environ, "COSTGUARD_POLICY": str(Path(sys.argv[1]))})
    with open_run_context(settings, "idle_gpu", clock=Yesterday()) as world:
        run_guard(replace(world, notifier=Delivered()), "told")


if __name__ == "__main__":
    main()
