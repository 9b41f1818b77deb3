"""The outline of the demo: its policy, and what people and machines do day by day. The engine's part is passed in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from costguard.domain.refs import ResourceRef
from costguard.ports import Clock, PolicyText

DEMO_POLICY = Path(__file__).with_name("demo-policy")
"""A folder like a config repository: `costguard.yaml`, `owners.yaml`, `policies/*.yaml`."""
DAYS = 13  # day 0 to day 12
BEFORE_RUN = timedelta(hours=1)  # owners act an hour before the day's run
_ONE_DAY = timedelta(days=1)

Result = TypeVar("Result")


def demo_policy() -> PolicyText:
    """The files of the demo's policy, as its user would write them."""
    paths = sorted(DEMO_POLICY.rglob("*.yaml"))
    files = {path.relative_to(DEMO_POLICY).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    revision = sha256("\0".join(text for pair in sorted(files.items()) for text in pair).encode()).hexdigest()
    return PolicyText(files, revision[:12], "the demo's policy")


class Setting(Protocol):
    """Where a story happens: a `Sandbox`, or a world without wires."""

    @property
    def clock(self) -> Clock:
        """Its time."""

    def advance(self, step: timedelta) -> datetime:
        """Let time pass; returns the new moment."""

    def machine(self, name: str) -> ResourceRef:
        """The machine of this name; LookupError where there is none."""

    def work_on(self, machine: ResourceRef) -> None:
        """Its owner works on it, from now on and whenever it runs."""


@dataclass(frozen=True, slots=True)
class Buttons:
    """How owners answer: keep a machine for so long, let its local disk go, have it started again."""

    keep: Callable[[ResourceRef, timedelta], None]
    approve: Callable[[ResourceRef], None]
    start: Callable[[ResourceRef], None]


@dataclass(frozen=True, slots=True)
class Stage:
    """What an event may touch: the sandbox, and the owner's buttons in Costguard."""

    sandbox: Setting
    buttons: Buttons


@dataclass(frozen=True, slots=True)
class StoryEvent:
    """Something that people or machines do on a day, an hour before that day's run. The texts tell it."""

    day: int
    text: str
    text_zh: str
    act: Callable[[Stage], None]


@dataclass(frozen=True, slots=True)
class Day(Generic[Result]):
    """One day as lived: what happened before the run, and what the run made of it."""

    number: int
    now: datetime
    events: tuple[StoryEvent, ...]
    result: Result


def _owner_snoozes(stage: Stage) -> None:
    stage.buttons.keep(stage.sandbox.machine("ablation-runs"), timedelta(days=14))


def _owner_agrees(stage: Stage) -> None:
    stage.buttons.approve(stage.sandbox.machine("batch-transcoder"))


def _nothing(_: Stage) -> None:
    """The machine does it by itself: its workload says so."""


def _owner_returns(stage: Stage) -> None:
    machine = stage.sandbox.machine("staging-inference")
    stage.buttons.start(machine)
    stage.sandbox.work_on(machine)


EVENTS: tuple[StoryEvent, ...] = (
    StoryEvent(
        0,
        "fresh-experiment was launched three hours ago; nobody can know yet whether it is idle.",
        "fresh-experiment 三小时前才启动，还无法判断它是否空闲。",
        _nothing,
    ),
    StoryEvent(
        0,
        "No tag says whose staging-inference is: the audit trail says who launched it, and the search team is told.",
        "staging-inference 没有负责人标签：审计日志说明是谁启动的，于是通知搜索团队。",
        _nothing,
    ),
    StoryEvent(
        2,
        "An hour before its stop, the speech team presses Keep until … below ablation-runs, and says why.",
        "停机前一小时，语音团队在 ablation-runs 的通知下点击“保留至……”，并说明原因。",
        _owner_snoozes,
    ),
    StoryEvent(
        2,
        "The media team reads that batch-transcoder's 8,000 GB local disk will be empty, and presses Approve. It costs "
        "more than 20 USD an hour, so that an approver has to agree as well, and does.",
        "媒体团队看到 batch-transcoder 的 8,000 GB 本地盘将被清空，点击“批准”。其费用每小时超过 20 USD，因此还须"
        "一名审批人同意，审批人也已批准。",
        _owner_agrees,
    ),
    StoryEvent(
        3,
        "nightly-eval, warned yesterday, has found work again by itself.",
        "昨天收到通知的 nightly-eval 自己又有了任务。",
        _nothing,
    ),
    StoryEvent(
        5,
        "It is Saturday, a day after the notice of nightly-eval: by the calendar nothing is stopped before Monday.",
        "今天是星期六，距 nightly-eval 的通知已有一天：按工作日历，星期一之前不停机。",
        _nothing,
    ),
    StoryEvent(
        6,
        "The search team needs staging-inference once more, and presses Start again below the news of its stop.",
        "搜索团队又需要 staging-inference，在停机消息下点击“重新启动”。",
        _owner_returns,
    ),
    StoryEvent(
        7,
        "nightly-eval finds work again before the run; nobody had stopped it.",
        "nightly-eval 在运行之前又有了任务；周末没有被停机。",
        _nothing,
    ),
)


def live(
    sandbox: Setting,
    run_day: Callable[[datetime], Result],
    buttons: Buttons,
    *,
    days: int = DAYS,
    events: Sequence[StoryEvent] = EVENTS,
) -> Iterator[Day[Result]]:
    """Live through `days`, one at a time: time passes, people act, `run_day` runs; yields each day when it is over."""
    stage = Stage(sandbox, buttons)
    begins = sandbox.clock.now()
    for number in range(days):
        run_at = begins + number * _ONE_DAY
        if run_at - BEFORE_RUN > sandbox.clock.now():
            sandbox.advance(run_at - BEFORE_RUN - sandbox.clock.now())
        today = tuple(event for event in events if event.day == number)
        for event in today:
            event.act(stage)
        if run_at > sandbox.clock.now():
            sandbox.advance(run_at - sandbox.clock.now())
        now = sandbox.clock.now()
        yield Day(number, now, today, run_day(now))
