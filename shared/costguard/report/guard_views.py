"""What reports and commands say of each guard differently, in one table: the engine's registry has the same names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from costguard.domain.errors import InvalidInputError
from costguard.domain.findings import Finding, Verdict
from costguard.guards import BUDGET, IDLE_GPU, KMS_ROTATION, NETWORK_AUDIT
from costguard.report.words.sentences import Language

_FAULTS = frozenset({Verdict.VIOLATION, Verdict.UNMEASURED})


class Subjects(str, Enum):
    """What the findings of a guard are about."""

    MACHINES = "machines"
    KEYS = "keys"
    NETWORKS = "networks"
    OTHER = "other"


def every_finding(finding: Finding) -> bool:
    """Whatever was found."""
    del finding
    return True


def faults_alone(finding: Finding) -> bool:
    """What is not as asked, or could not be measured."""
    return finding.verdict in _FAULTS


def _asked_for(finding: Finding) -> bool:
    return bool(finding.rule)


def _looked_at(finding: Finding) -> bool:
    """Of keys also those that are as asked, for their ages."""
    return finding.verdict is not Verdict.EXEMPT


@dataclass(frozen=True, slots=True)
class GuardView:
    """One guard before people. `names` are what its subjects are called, in English and in Chinese.

    `shown` are the findings that a plan shows, `kept` those that a report does. `words` begins the ids of the phrases
    for the verdicts of a run, empty where they are those of machines. `command` shows the rest of what was found.
    """

    subjects: Subjects
    names: tuple[str, str]
    shown: Callable[[Finding], bool] = every_finding
    kept: Callable[[Finding], bool] = every_finding
    words: str = ""
    command: str = ""

    def name(self, language: Language) -> str:
        """What its subjects are called."""
        return self.names[language is Language.ZH]

    @property
    def of_settings(self) -> bool:
        """Whether a subject is as the policy asks or not, where a machine is idle or in use."""
        return self.subjects is not Subjects.MACHINES


VIEWS: Mapping[str, GuardView] = MappingProxyType(
    {
        IDLE_GPU: GuardView(Subjects.MACHINES, ("machines", "机器")),
        BUDGET: GuardView(
            Subjects.MACHINES, ("machines under budgets", "预算内的机器"), shown=_asked_for, words="budget"
        ),
        KMS_ROTATION: GuardView(
            Subjects.KEYS, ("keys", "密钥"), shown=faults_alone, kept=_looked_at, words="keys", command="keys"
        ),
        NETWORK_AUDIT: GuardView(
            Subjects.NETWORKS,
            ("networks", "网络"),
            shown=faults_alone,
            kept=faults_alone,
            words="networks",
            command="networks",
        ),
    }
)
"""By guard, in the order in which machines that several have seen are taken from them."""


def view_of(guard: str) -> GuardView:
    """How this guard is shown.

    Raises:
        InvalidInputError: there is no such guard.
    """
    found = VIEWS.get(guard)
    if found is None:
        message = f"there is no guard {guard!r}; there is {', '.join(VIEWS)}"
        raise InvalidInputError(message)
    return found
