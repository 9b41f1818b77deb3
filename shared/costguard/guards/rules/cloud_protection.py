"""What the protections that are set at a cloud keep from being done. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from costguard.domain.actions import DESTRUCTIVE, Verb
from costguard.domain.resources import Instance, InstanceDetail

TERMINATION, STOP = "termination_protection", "stop_protection"


class Bars(str, Enum):
    """How a policy reads termination protection: it keeps everything from being done, or `terminate` alone."""

    EVERYTHING = "everything"
    TERMINATE = "terminate"


_BARRED: Mapping[str, frozenset[Verb]] = {
    TERMINATION: frozenset({Verb.TERMINATE}),
    # EC2 User Guide, "Enable stop protection for your EC2 instances": it protects from termination as well
    STOP: frozenset({Verb.STOP, Verb.TERMINATE}),
}
"""What each means at its cloud: `DisableApiTermination` and `DisableApiStop` of EC2, `DeletionProtection` of ECS (which
refuses DeleteInstance alone), `DisableApiTermination` of CVM (TerminateInstances alone). Whatever else is told, such as
a lock for security, bars everything in every reading."""


def protections_of(instance: Instance | None, detail: InstanceDetail | None) -> tuple[str, ...]:
    """All that was told of a machine, by its listing and by the closer look, each once."""
    listed = instance.protected_by if instance is not None else ()
    return tuple(sorted({*listed, *(detail.protected_by if detail is not None else ())}))


def barring(protections: Iterable[str], verb: Verb, reading: Bars) -> tuple[str, ...]:
    """Those that keep `verb` from being done."""
    if reading is Bars.EVERYTHING:
        return tuple(protections)
    return tuple(each for each in protections if each not in _BARRED or verb in _BARRED[each])


def needed(protections: Iterable[str], verbs: Iterable[Verb], reading: Bars) -> tuple[str, ...]:
    """Those of `protections` that would keep one of `verbs` from being done if they were set: what is read before."""
    meant = tuple(verbs)
    return tuple(each for each in protections if any(barring((each,), verb, reading) for verb in meant))


def leads_to(verbs: Sequence[Verb]) -> Verb:
    """What the first of these steps is for: a notice or a copy serves the next stop or end that follows it.

    Where that is barred, so is all that would only announce or prepare it.
    """
    return next((verb for verb in verbs if verb in DESTRUCTIVE), verbs[0])
