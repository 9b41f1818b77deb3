"""A ledger, a folder of bundles and people who publish, for tests of published policies."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from tests.builders import NOW

from costguard.adapters.ledgers.open import open_ledger
from costguard.adapters.object_stores.folder import FolderStore
from costguard.adapters.policy_sources.published import BundleShelf
from costguard.engine.ledger.memory import Memory
from costguard.engine.policy.agreeing import Word, agree, ask_approver
from costguard.engine.policy.in_force import PolicyInForce, published_in_force
from costguard.engine.policy.publishing import Published, Wish, publish, roll_back
from costguard.policy.documents.bundle import bundle_name
from costguard.ports import PolicyText

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
FIRST, SECOND, THIRD = "U0APPROV1", "U0APPROV2", "U0APPROV3"
ENFORCES = f"""
version: 1
mode: enforce
notify: {{default: "slack:#gpu", answers: {{slack_team: T0SANDBOX, approvers: [{FIRST}, {SECOND}, {THIRD}]}}}}
idle_gpu:
  - name: all
    idle_when_all: {{lasting: 24h, every_gpu_max_below: 5%}}
    then: [warn, {{stop: {{wait: 24h}}}}]
"""
OBSERVES = ENFORCES.replace("enforce", "observe")
LOOSER = ENFORCES.replace("5%", "9%")
TIGHTER = ENFORCES.replace("lasting: 24h", "lasting: 72h")


def text(yaml: str) -> PolicyText:
    return PolicyText({"costguard.yaml": yaml}, "checkout", "policy")


@dataclass
class Office:
    """One deployment. What this process has fetched before it knows; see `cold`."""

    folder: Path
    now: datetime = NOW
    memory: Memory = field(default_factory=lambda: Memory.over(open_ledger("memory:")))

    @property
    def bundles(self) -> BundleShelf:
        return BundleShelf(FolderStore(self.folder), "published:policies")

    @property
    def cold(self) -> BundleShelf:
        """As a process sees it that has fetched nothing yet."""
        self.folder.mkdir(exist_ok=True)
        place = Path(f"{self.folder}-{len(list(self.folder.parent.iterdir()))}")
        place.symlink_to(self.folder)
        return BundleShelf(FolderStore(place), str(place))

    def publish(self, yaml: str, effective_at: datetime | None = None) -> Published:
        return publish(self.bundles, self.memory, text(yaml), Wish("ops", "why", effective_at), self.now)

    def roll_back(self, digest: str = "", effective_at: datetime | None = None) -> Published:
        return roll_back(self.bundles, self.memory, digest, Wish("ops", "", effective_at), self.now)

    def approve(self, digest: str, *people: str) -> list[Published]:
        """Each is sent a code, and says it back."""
        words = [Word(digest, person, "12345678") for person in people]
        for word in words:
            ask_approver(self.bundles, self.memory, word, self.now)
        return [agree(self.bundles, self.memory, word, self.now) for word in words]

    def runs(self, *, cold: bool = False) -> PolicyInForce:
        return published_in_force(self.cold if cold else self.bundles, self.memory, self.now)

    def enforcing(self) -> Office:
        """ENFORCES is in force, as after a deployment that took its policy from files before."""
        self.memory.policies.remember(text(ENFORCES), self.now)
        self.publish(ENFORCES)
        self.runs()
        return self

    def object(self, digest: str) -> Path:
        return self.folder / bundle_name(digest)


def gpu_bound(found: PolicyInForce) -> float:
    return found.policy.idle_gpu[0].idle.every_gpu_max_below_percent
