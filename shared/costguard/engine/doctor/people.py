"""Can the robots of chat groups be spoken to as their vendors ask for? Looked up in the settings; nothing is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from costguard.report.doctor.checks import Code, DoctorCheck

UNSIGNED = "unsigned"


def examine_robots(robots: Mapping[str, str]) -> Iterator[DoctorCheck]:
    """One question a robot: by its address, nothing where all is there, `unsigned`, or what is wrong with it."""
    for address, said in robots.items():
        if not said:
            yield DoctorCheck(Code.ROBOT_READY, address)
        elif said == UNSIGNED:
            yield DoctorCheck(Code.ROBOT_UNSIGNED, address)
        else:
            yield DoctorCheck(Code.ROBOT_WRONG, address, {"detail": said})
