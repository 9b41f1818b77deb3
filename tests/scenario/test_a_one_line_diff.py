"""One line of a policy that would have stopped machines sooner, published to functions that judge by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.published_rig import ENFORCES, FIRST, HOUR, SECOND, Office
from tests.scenario.stage import START, Stage

from costguard.engine.policy.in_force import tell_of_policy
from costguard.policy.documents.loader import load_policy
from costguard.ports import PolicyText

MERGED = ENFORCES.replace("wait: 24h", "wait: 1h")


class Life(Stage):
    """An idle machine, hourly runs, and a policy that is published."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, under=load_policy(PolicyText({"costguard.yaml": ENFORCES}, "")))
        self.office = Office(folder / "published", START, self.memory).enforcing()

    def run_at(self, *hours: int) -> None:
        """The runs of these hours, by whatever is then in force."""
        for hour in hours:
            self.clock.advance(START + hour * HOUR - self.clock.now())
            self.office.now = self.clock.now()
            found = self.office.runs()
            self.policy = found.policy
            tell_of_policy(self.memory, found, "en", self.clock.now())
            self.run_with(replace(self.world(), policy_problem=found.problem))


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    made = Life(tmp_path)
    yield made
    made.close()


def test_nobody_approves_it_and_the_machine_keeps_its_day(life: Life) -> None:
    life.run_at(1)
    life.office.publish(MERGED, START + 26 * HOUR)
    life.run_at(2, 4, 24)
    assert life.verbs() == []
    life.run_at(25, 26, 27)
    assert life.verbs() == ["stop"], "a day after its owner was told, as the policy in force says"

    told = [title for title in life.mailbox.titles if title.startswith("Published policy")]
    assert len(told) == 4, "the channel, and each of the three approvers, once"
    assert told[0].endswith("waits: it loosens what is in force")


def test_approved_it_decides_from_its_moment_on_and_the_wait_begins_anew(life: Life) -> None:
    """Two approvers and a day's notice let it pass; the machine's owner still gets the whole, shorter, grace."""
    digest = life.office.publish(MERGED, START + 24 * HOUR).publication.digest
    life.office.approve(digest, FIRST, SECOND)
    life.run_at(1, 2, 23)
    assert life.verbs() == []
    life.run_at(25, 26, 27)
    assert life.verbs() == ["stop"]
    assert life.policy.idle_gpu[0].ladder[-1].wait == HOUR
