"""What the exit status says. One table: commands, documentation and tests read it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType


class Exit(IntEnum):
    """Where several apply the first of UNSAFE, SPENT, GAPS, HELD, DUE wins."""

    OK = 0
    UNEXPECTED = 1
    BAD_INPUT = 2
    UNAVAILABLE = 3
    DUE = 10
    GAPS = 11
    REFUSED = 12
    HELD = 13
    BROKEN = 14
    UNSAFE = 15
    SPENT = 16
    INTERRUPTED = 130


MEANINGS: Mapping[Exit, str] = MappingProxyType(
    {
        Exit.OK: "Done; for `plan`: nothing is due; for `doctor`: safe to enforce.",
        Exit.UNEXPECTED: "A fault of Costguard itself, with a traceback; please report it.",
        Exit.BAD_INPUT: "An option, file, policy or event is wrong; the message says where. Nothing was changed.",
        Exit.UNAVAILABLE: "A cloud, the ledger or a channel could not be used at all, so there is no answer.",
        Exit.DUE: "`plan`: something is due; `policy`: `diff` loosens, `plan` acts, `test` failed, `fmt` differs.",
        Exit.GAPS: "Something could not be read; what was read is shown. Wins over 10, 13. `doctor`: could not tell.",
        Exit.REFUSED: "`apply`: refused as a whole. `deploy`, `bundle`: refused. Nothing was changed.",
        Exit.HELD: "`apply`, `invoke`: something due was not done: held, refused, or unknown. `outbox`: dead notices.",
        Exit.BROKEN: "`audit verify`: the audit was altered, or a part of it is missing.",
        Exit.UNSAFE: "`doctor`: do not enforce; what bars it is shown, with what mends it. Wins over 11.",
        Exit.SPENT: "`budgets`: a budget is spent, 100 % or more of it. Wins over 11: what was read is enough.",
        Exit.INTERRUPTED: "Interrupted from the keyboard.",
    }
)
