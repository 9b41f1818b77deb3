"""The life of one violation over days. Pure: a case, what was just seen, and the time in; the next case out.

    opened → noticed (delivered) → stopped → noticed again → quarantined → snapshotted → terminated

At most one rung a run. Whatever speaks for the owner (use, restart, snooze, exception, protection)
closes or pauses the case; whatever could not be seen holds it where it is.
"""

from costguard.cases.advance import advance, due_at, sent_back
from costguard.cases.case import (
    Announced,
    Case,
    CaseStatus,
    CaseStep,
    ClimbedRung,
    Phase,
    SubjectSnapshot,
    claimed,
    confirming,
    copied_at_once,
    decision_id,
    held,
    ladder,
    noticed,
    refused,
    speaks_for,
    subject_in,
    unclaimed,
    uncopied,
)
from costguard.cases.resolve import same_run

__all__ = [
    "Announced",
    "Case",
    "CaseStatus",
    "CaseStep",
    "ClimbedRung",
    "Phase",
    "SubjectSnapshot",
    "advance",
    "claimed",
    "confirming",
    "copied_at_once",
    "decision_id",
    "due_at",
    "held",
    "ladder",
    "noticed",
    "refused",
    "same_run",
    "sent_back",
    "speaks_for",
    "subject_in",
    "unclaimed",
    "uncopied",
]
