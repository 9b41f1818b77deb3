"""What the truth behind the wires says of one call of an executor, whatever the executor says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.simulation.oracle.judge import Judged

from cloudstand.world.records import POWER_CUT, Happening, WorldSnapshot
from cloudstand.world.vendors import billed_when_stopped
from costguard.domain.actions import Action, Verb

_ENDS = frozenset({"stop", "terminate", "destroyed", "create_snapshot", "start"})


def repeated(sent: Sequence[str]) -> str:
    """Rule 6: one action leaves the process once, whatever was answered."""
    return f"{', '.join(sent)}: sent {len(sent)} times for one action" if len(sent) > 1 else ""


def missed(action: Action, happened: Sequence[Happening], copies: Mapping[str, WorldSnapshot]) -> str:
    """Rules 6 and 7: nothing but what was asked for happens, and to nothing but the one it was asked for."""
    others = sorted({one.machine for one in happened if one.what in _ENDS} - {action.subject.native_id})
    if others:
        return f"it was about {action.subject.native_id}, and happened to {', '.join(others)}"
    volumes = [copies[one.native_id].volume for one in happened if one.what == "create_snapshot"]
    several = len(volumes) > len(set(volumes)) if action.copies else len(volumes) > 1
    return "more than one copy was made" if several else ""


def shut_down(judged: Judged) -> str:
    """Rule 5: a machine is shut down by its own system; a power that is cut loses what was not written yet."""
    if judged.effect.verb not in {Verb.STOP, Verb.TERMINATE}:
        return ""
    cut = [
        one
        for one in judged.world.history
        if one.machine == judged.effect.machine and one.at == judged.effect.at and one.what == POWER_CUT
    ]
    return "its power was cut: what it had not written yet is lost" if cut else ""


def bill_ends(judged: Judged) -> str:
    """A stop ends the bill wherever it can: that is what people were told it is for."""
    machine = judged.machine
    if judged.effect.verb is not Verb.STOP or not judged.effect.changed:
        return ""
    began = next(spec for spec in judged.world.fleet if spec.native_id == machine.native_id)
    if billed_when_stopped(machine.spec) and not billed_when_stopped(began):
        return "it goes on being billed, and need not"
    return ""
