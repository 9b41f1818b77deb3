"""The messages whose form for chat robots is kept beside this file; run as a program, it writes them anew.

python -m tests.golden.robot_messages
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

from costguard.adapters.notifiers.plain import KeepLinks
from costguard.adapters.notifiers.robots.dingtalk import DingTalk
from costguard.adapters.notifiers.robots.feishu import Feishu
from costguard.adapters.notifiers.robots.layout import laid_out
from costguard.adapters.notifiers.robots.notifier import RobotVendor
from costguard.adapters.notifiers.robots.wecom import WeCom
from costguard.domain.answers import AnswerKind, AnswerRef
from costguard.ports import Choice, Message, MessagePart

FOLDER = Path(__file__).parent / "robots"
NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
VENDORS: Mapping[str, RobotVendor] = {"feishu": Feishu(), "dingtalk": DingTalk(), "wecom": WeCom()}
_LINKS = KeepLinks("https://answers.example.com/", "a secret of thirty-two letters or more")
_HOSTILE = '<at user_id="all">所有人</at> <@all> @all [x](https://evil.example) **b** `c` &#60;'


def _part(number: int, title: str, keep: tuple[str, str], *, status: str = "") -> MessagePart:
    of = AnswerRef(f"{number:016x}", f"{number:024x}")
    lengths = (timedelta(hours=24), timedelta(days=7))
    return MessagePart(
        decision_id=of.decision_id,
        title=title,
        fields=(("规格", "ecs.gn7i-c32g1.8xlarge"), ("费用", "32.10 CNY/小时")),
        lines=("已空闲 26 小时。",),
        picture="▁▁▂▁▁·▁▁▁▃█▁▁▁▁▁▁▁▁▁▁▁▁▁",
        choices=tuple(Choice(AnswerKind.KEEP, label, of, length) for label, length in zip(keep, lengths, strict=True)),
        status=status,
    )


_KEEP = ("保留 24 小时", "保留 7 天")
MESSAGES: Mapping[str, tuple[str, Message]] = {
    "several": (
        "zh",
        Message(
            "ops",
            "nlp 团队有 2 台机器空闲",
            "",
            (("负责人", "nlp"), ("每日费用", "770.40 CNY")),
            ("在此之前不会有任何操作。",),
            parts=(
                _part(1, "训练机 train-1（i-0a1）最早将于 18:00 停机", _KEEP),
                _part(2, "训练机 train-2（i-0a2）最早将于 18:00 停机", _KEEP, status="已保留至 3 月 9 日"),
            ),
        ),
    ),
    "alone": (
        "en",
        Message(
            "ops",
            "train-1 stops not before 18:00",
            "",
            (("What", "p4d.24xlarge i-0a1"), ("Cost", "32.77 USD/h")),
            ("Nothing happens before.",),
            parts=(
                MessagePart(
                    f"{1:024x}",
                    "",
                    picture="▁▁▂▁",
                    choices=(Choice(AnswerKind.KEEP, "Keep 24 h", AnswerRef("1" * 16, "1" * 24), timedelta(hours=24)),),
                ),
            ),
        ),
    ),
    "hostile": (
        "en",
        Message("ops", _HOSTILE, _HOSTILE, ((_HOSTILE, _HOSTILE),), (_HOSTILE, *("line " * 200,) * 40)),
    ),
}


def made(kind: str, name: str) -> str:
    """The document for one vendor's robot, as it is kept."""
    language, message = MESSAGES[name]
    laid = laid_out(message, f"{kind}:ops", VENDORS[kind].sheet, _LINKS.at(lambda: NOW), language)
    return json.dumps(VENDORS[kind].document(laid), ensure_ascii=False, indent=2) + "\n"


def main() -> None:
    """Write every file anew."""
    FOLDER.mkdir(exist_ok=True)
    for kind in VENDORS:
        for name in MESSAGES:
            (FOLDER / f"{kind}-{name}.json").write_text(made(kind, name), "utf-8")


if __name__ == "__main__":
    main()
