"""The messages whose Slack blocks are kept beside this file; run as a program, it writes them anew.

python -m tests.golden.slack_messages
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from costguard.adapters.notifiers.slack.blocks import fallback, message_blocks, parts_that_fit
from costguard.domain.answers import AnswerKind, AnswerRef
from costguard.ports import Choice, Message, MessagePart

FOLDER = Path(__file__).parent / "slack"
DAY = timedelta(days=1)
_PICTURE = "▁▁▂▁▁·▁▁▁▃█▁▁▁▁▁▁▁▁▁▁▁▁▁"


def choices_of(number: int) -> tuple[Choice, ...]:
    of = AnswerRef(f"{number:016x}", f"{number:024x}")
    asks = f"Stop notebook-{number} now? What is running on it is lost; its disks stay."
    return (
        Choice(AnswerKind.KEEP, "Keep 24 h", of, DAY),
        Choice(AnswerKind.KEEP, "Keep 7 d", of, 7 * DAY),
        Choice(AnswerKind.STOP_NOW, "Stop now", of, asks=asks),
        Choice(AnswerKind.NOT_MINE, "Not mine", of),
    )


def part(number: int) -> MessagePart:
    return MessagePart(
        decision_id=f"{number:024x}",
        title=f"notebook-{number} stops not before 2026-03-03 18:00 Asia/Shanghai (10:00 UTC)",
        fields=(
            ("What", f"p4d.24xlarge i-{number:017x} notebook-{number}"),
            ("Where", "aws 111122223333 us-east-1"),
            ("Evidence", "GPU 8x ≤ 1.2 %, CPU ≤ 3 %; 100 % of samples"),
            ("Cost", "32.77 USD/h, 786.48 USD a day (AWS price list of 2026-03-01)"),
        ),
        picture=_PICTURE,
        choices=choices_of(number),
    )


def _short(number: int) -> MessagePart:
    whole = part(number)
    return replace(whole, fields=whole.fields[:2], choices=whole.choices[1:3])


def batch(parts: Sequence[MessagePart]) -> Message:
    title = f"{len(parts)} machines of nlp are idle" if len(parts) > 1 else parts[0].title
    return Message(
        "slack:#gpu-nlp",
        title,
        "\n".join((title, *(part.title for part in parts), "Nothing happens before.")),
        (("Owner", "nlp"), ("Rule", "research")),
        ("Nothing happens before.", "costguard undo takes back what was done."),
        parts=tuple(parts),
        notice_id="run-1",
    )


def split(message: Message) -> list[Message]:
    """As many messages as it takes, as the outbox makes them."""
    whole: list[Message] = []
    while message.parts:
        held = parts_that_fit(message)
        whole.append(replace(message, parts=message.parts[:held]))
        message = replace(message, parts=message.parts[held:])
    return whole


def _chinese() -> Message:
    of = AnswerRef("c" * 16, "d" * 24)
    machine = MessagePart(
        decision_id="d" * 24,
        title="训练-3 将于 2026-03-03 18:00 Asia/Shanghai（10:00 UTC）后停止",
        fields=(
            ("实例", "ecs.gn7i-c8g1.2xlarge i-bp1abcdefg 训练-3"),
            ("位置", "alibaba 1234567890123456 cn-hangzhou"),
            ("证据", "GPU ≤ 1.2 %，CPU ≤ 3 %；样本 100 %"),
            ("费用", "13.20 CNY/小时，每天 316.80 CNY"),
        ),
        picture=_PICTURE,
        choices=(
            Choice(AnswerKind.KEEP, "保留 24 小时", of, DAY),
            Choice(AnswerKind.KEEP, "保留 7 天", of, 7 * DAY),
            Choice(AnswerKind.STOP_NOW, "现在停止", of, asks="现在停止 训练-3？正在运行的任务会丢失，磁盘保留。"),
            Choice(AnswerKind.APPROVE, "批准", of, asks="批准终止 训练-3？"),
            Choice(AnswerKind.NOT_MINE, "不是我的", of),
        ),
    )
    fields = (("负责人", "自然语言组"), ("规则", "research"))
    return Message("#gpu", machine.title, machine.title, fields, ("在此之前不会有任何操作。",), parts=(machine,))


def _hostile() -> Message:
    words = '<!channel> <@U1|you> *b* _i_ ~s~ `c` :tada: &amp; "q" \\ http://evil.example @here \u202e\u200b\x1b[31m'
    of = AnswerRef("e" * 16, "f" * 24)
    choices = (
        Choice(AnswerKind.STOP_NOW, words, of, asks=words),
        Choice(AnswerKind.KEEP, f"\n{words}", AnswerRef(words, words), DAY),
        Choice(AnswerKind.APPROVE, "", of),
    )
    machine = MessagePart(words, words, ((words, words), ("", "\x00")), (words, f"> {words}"), words, choices)
    return Message("#gpu", words, words, ((words, words),), (words,), parts=(machine, replace(machine, status=words)))


def _edited() -> Message:
    kept = replace(part(0), status="Kept until 2026-03-04 18:00 by an owner; nothing happens before.")
    stopped = replace(part(1), status="Stopped at 2026-03-03 18:02. Undo: costguard undo 000000000000000000000001")
    return batch((kept, stopped, part(2)))


MESSAGES: dict[str, list[Message]] = {
    "one": [batch([part(0)])],
    "five": split(batch([part(number) for number in range(5)])),
    "fifty": split(batch([_short(number) for number in range(50)])),
    "edited": [_edited()],
    "chinese": [_chinese()],
    "hostile": [_hostile()],
}
"""By file name: what one notice becomes, one message or several."""


def golden(name: str) -> str:
    """What the file of this name has to hold."""
    return "[\n" + ",\n".join(map(_message, MESSAGES[name])) + "\n]\n"


def _message(message: Message) -> str:
    """A block a line, so that a change of one shows as one."""
    blocks = ",\n".join(f"  {json.dumps(block, ensure_ascii=False)}" for block in message_blocks(message))
    return f' {{"text": {json.dumps(fallback(message.text), ensure_ascii=False)}, "blocks": [\n{blocks}\n ]}}'


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for kept in MESSAGES:
        (FOLDER / f"{kept}.json").write_text(golden(kept), encoding="utf-8")
