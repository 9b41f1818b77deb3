"""Where the clouds truly differ, row by row: what a policy that means the same everywhere meets there.

A module of each provider beside this one fills every row, from the constants of the code that implements it;
docs/parity.md is made from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class Row(str, Enum):
    """One difference, in the words of the table's first column."""

    CARD_METRIC = "utilisation of the cards"
    SAMPLES = "how often and how late"
    BESIDE = "CPU, network and disk"
    DENIED = "a role that may not list"
    CLOSED = "a region that the organisation closes"
    RUN = "how a restart is told"
    STOP = "what a stop ends on the bill"
    ADDRESS = "a plain public address"
    LOCAL_DISK = "local disks"
    PLACE = "the place of a stopped machine"
    COPIES = "copies of disks"
    COPIED_RUNNING = "several disks of a running machine"
    TERMINATE = "terminate"
    TERMINATION_PROTECTION = "termination protection"
    STOP_PROTECTION = "stop protection"
    PREPAID = "paid in advance"
    SPOT = "spot"
    MANAGED = "who else manages it"
    KEEP_TAG = "a Keep written on its machine"
    TRAIL = "who launched it"
    GROUP = "resource groups"
    PRICES = "prices"
    MONEY = "currency"
    BILL = "the bill"
    CONSOLE_BUDGETS = "budgets of the console"
    FREEZE = "denying launches"
    KEYS = "rotation of keys"
    RULES = "rules of a security group"
    INTERNET = "a way in from the internet"
    FLOW_LOGS = "flow logs"
    METADATA = "metadata without a token"
    IDLE_ADDRESS = "an address bound to nothing"


Rows = Mapping[Row, str]
"""What one provider says to each row, in Markdown without line breaks."""


def table(providers: Mapping[str, Rows]) -> str:
    """The rows as a Markdown table, one column a provider.

    Raises:
        KeyError: a provider leaves a row out.
    """
    head = f"| | {' | '.join(providers)} |\n|---|{'---|' * len(providers)}\n"
    return head + "".join(f"| {row.value} | {' | '.join(rows[row] for rows in providers.values())} |\n" for row in Row)
