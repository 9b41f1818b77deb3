"""One rule for machines in plain terms, and the YAML that says it to the program."""

from __future__ import annotations

from dataclasses import dataclass

MODES = ("observe", "warn", "enforce")
APART = "local_disk_approver_above: [0 USD, 0 CNY]"


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """One rule in plain terms. Hours; `terminate` None ends the ladder at stop; `stop` None at the notice.

    `terminations` None: as many a day as `actions`.
    `spares`: it leaves out what has the tag that these policies spare by.
    """

    name: str = "research"
    team: str = "research"
    mode: str = "enforce"
    lasting: int = 4
    stop: int | None = 24
    terminate: int | None = 24
    actions: int = 10
    share_percent: int = 100
    usd: int | None = 1000
    cny: int | None = 1000
    local_disk: str = "ask"
    unstoppable: str = "hold"
    spares: bool = False
    terminations: int | None = None

    @property
    def harshness(self) -> tuple[int, int, int, int, str]:
        """Where rules overlap, the smallest is the gentlest."""
        strongest = 2 if self.terminate is not None else 1 if self.stop is not None else 0
        waits = (self.stop or 0) + (self.terminate or 0)
        return (MODES.index(self.mode), strongest, -waits, -self.lasting, self.name)

    def looser_than(self, other: RuleSpec) -> bool:
        """Whether it may act sooner than `other`: then people get the whole wait anew."""
        return (
            self.lasting < other.lasting
            or (self.stop is not None and other.stop is not None and self.stop < other.stop)
            or (self.terminate is not None and other.terminate is not None and self.terminate < other.terminate)
        )

    def yaml(self, *, apart: bool = False) -> str:
        """The entry of `idle_gpu`. `apart`: no local disk is lost without an approver."""
        ladder = ["warn"]
        if self.stop is not None:
            ladder.append(f"{{stop: {{wait: {self.stop}h}}}}")
        if self.terminate is not None:
            ladder.append(f"{{terminate: {{wait: {self.terminate}h}}}}")
        caps = [f"{amount} {unit}" for amount, unit in ((self.usd, "USD"), (self.cny, "CNY")) if amount is not None]
        ends = "" if self.terminations is None else f" terminations_per_day: {self.terminations},"
        spared = "    except_when_any: [{tags: {purpose: customer-demo}}]\n" if self.spares else ""
        return (
            f"  - name: {self.name}\n"
            f"    mode: {self.mode}\n"
            f"    applies_when_all: {{tags: {{team: {self.team}}}}}\n"
            f"    idle_when_all: {{lasting: {self.lasting}h, every_gpu_max_below: 5%}}\n{spared}"
            f"    then: [{', '.join(ladder)}]\n"
            f"    safety: {{actions_per_day: {self.actions}, fleet_share_per_day: {self.share_percent}%,{ends}"
            f" hourly_cost_stopped_per_day: [{', '.join(caps)}],"
            f" local_disk: {self.local_disk}, {APART + ', ' if apart else ''}unstoppable: {self.unstoppable}}}\n"
        )
