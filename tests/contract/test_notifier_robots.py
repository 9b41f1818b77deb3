"""Robots of Feishu, DingTalk and WeCom: signed as documented, delivered by the documented code, inert, bounded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from tests.golden.robot_messages import FOLDER, MESSAGES, VENDORS, made

from cloudstand.clock import MovedClock
from cloudstand.robots import RobotStandIns
from costguard.adapters.notifiers.plain import KeepLinks, Link
from costguard.adapters.notifiers.robots import dingtalk, feishu
from costguard.adapters.notifiers.robots.notifier import KINDS, RobotNotifier, look_at_robots, read_robots
from costguard.domain.answers import AnswerKind, AnswerRef
from costguard.domain.errors import InvalidInputError, NoticeError, RateLimitedError, RejectedNoticeError
from costguard.ports import Choice, Message, MessagePart

NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
LINK_SECRET = "a secret of thirty-two letters or more"
every_robot = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def opened() -> Iterator[RobotStandIns]:
    with RobotStandIns(MovedClock(NOW)) as stand_ins:
        yield stand_ins


@pytest.fixture
def robots(opened: RobotStandIns) -> RobotStandIns:
    opened.faults.status, opened.faults.answer, opened.faults.keyword = 200, None, ""
    opened.posted.clear()
    return opened


def keep_link() -> Link:
    return KeepLinks("https://answers.example.com/", LINK_SECRET).at(lambda: NOW)


def notifier(
    robots: RobotStandIns, kind: str, *, at: datetime = NOW, setting: str = "", link: Link | None = None
) -> RobotNotifier:
    known = read_robots(setting or robots.setting, private=True)
    mine = {address: robot for address, robot in known.items() if robot.kind == kind}
    return RobotNotifier(VENDORS[kind], mine, now=lambda: at, private=True, link=link)


def part(number: int, **more: Any) -> MessagePart:
    of = AnswerRef(f"{number:016x}", f"{number:024x}")
    choices = (
        Choice(AnswerKind.KEEP, "Keep 24 h", of, timedelta(hours=24)),
        Choice(AnswerKind.KEEP, "Keep 7 d", of, timedelta(days=7)),
        Choice(AnswerKind.STOP_NOW, "Stop now", of, asks="Stop it?"),
        Choice(AnswerKind.APPROVE, "Approve", of),
        Choice(AnswerKind.NOT_MINE, "Not mine", of),
    )
    given: dict[str, Any] = {
        "fields": (("Type", "p4d.24xlarge"), ("Cost", "32.77 USD/h"), ("Next", "stop at 18:00")),
        "lines": ("Idle for 26 h.",),
        "picture": "▁▁▂▁▁▁▁▁",
        "choices": choices,
        **more,
    }
    title = given.pop("title", f"train-{number} (i-0a{number}) stops at 18:00")
    return MessagePart(f"{number:024x}", title, **given)


def message(*parts: MessagePart, **more: Any) -> Message:
    given: dict[str, Any] = {
        "title": "3 machines of nlp stop at 18:00",
        "text": "3 machines of nlp stop at 18:00",
        "fields": (("Owner", "nlp"),),
        "lines": ("Nothing happens before.",),
        **more,
    }
    return Message("ops", parts=parts, **given)


# what the vendors document


def test_signatures_are_those_of_an_independent_program() -> None:
    """Made with openssl: the documents give algorithms and no examples."""
    assert feishu.signature("SEC-of-the-test-robot", 1772442000) == "cK9CnZEwCi7qinEosjGj1fwHAwFVHYwEJ8fu/u9GJ2E="
    assert dingtalk.signature("SEC-of-the-test-robot", 1772442000000) == "TsDkOeleSafV3LRtUPrGGNqIqMKEfRq98hZLvpfoDfM="


@pytest.mark.parametrize("kind", ["feishu", "dingtalk"])
@pytest.mark.parametrize("off", [timedelta(minutes=-61), timedelta(minutes=61)])
def test_an_old_signature_and_another_secret_are_refused_with_the_fix(
    robots: RobotStandIns, kind: str, off: timedelta
) -> None:
    with pytest.raises(RejectedNoticeError, match=r"secret .*this machine's clock"):
        notifier(robots, kind, at=NOW + off).send(message())
    other = robots.setting.replace(robots.secret, "SECanothersecret")
    with pytest.raises(RejectedNoticeError, match="secret"):
        notifier(robots, kind, setting=other).send(message())
    without = {name: {"hook": entry["hook"]} for name, entry in json.loads(robots.setting).items()}
    with pytest.raises(RejectedNoticeError):
        notifier(robots, kind, setting=json.dumps(without)).send(message())
    assert robots.posted == []


@every_robot
def test_an_unknown_hook_and_another_group_are_refused_with_the_fix(robots: RobotStandIns, kind: str) -> None:
    other = robots.setting.replace(robots.token, "another-token")
    with pytest.raises(RejectedNoticeError, match="COSTGUARD_ROBOTS again") as caught:
        notifier(robots, kind, setting=other).send(message())
    assert "another-token" not in str(caught.value)
    with pytest.raises(RejectedNoticeError, match=r"no .* robot is called 'research'; COSTGUARD_ROBOTS knows: ops"):
        notifier(robots, kind).send(Message("research", "t", "t"))


@pytest.mark.parametrize("kind", ["feishu", "dingtalk"])
def test_a_robot_that_wants_a_keyword_says_what_to_do(robots: RobotStandIns, kind: str) -> None:
    robots.faults.keyword = "no-such-word"
    with pytest.raises(RejectedNoticeError, match="let it check the signature"):
        notifier(robots, kind).send(message())


MEANS = [
    *(("feishu", {"code": code}, RejectedNoticeError) for code in (19001, 19002, 19007, 19021, 19022, 19024, 9499)),
    *(("feishu", {"code": code, "StatusCode": 0}, RateLimitedError) for code in (11232, 99991400)),
    ("feishu", {"StatusCode": 0, "StatusMessage": "", "code": 9499, "msg": "too many request"}, RateLimitedError),
    ("feishu", {"StatusCode": 19007, "code": 0}, RejectedNoticeError),
    ("feishu", {"code": 424242, "msg": "new"}, NoticeError),
    *(
        ("dingtalk", {"errcode": code}, RejectedNoticeError)
        for code in (310000, 300001, 300005, 400013, 400101, 400102, 400106, 430101, 430104, 460101)
    ),
    *(("dingtalk", {"errcode": code}, RateLimitedError) for code in (130101, 410100, 660026)),
    *(("dingtalk", {"errcode": code}, NoticeError) for code in (-1, 500100)),
    *(("wecom", {"errcode": code}, RejectedNoticeError) for code in (93000, 93004, 93008, 40058, 44004)),
    ("wecom", {"errcode": 45009}, RateLimitedError),
    ("wecom", {"errcode": -1}, NoticeError),
]


@pytest.mark.parametrize(("kind", "answer", "error"), MEANS, ids=str)
def test_every_documented_code_has_its_meaning(
    robots: RobotStandIns, kind: str, answer: dict[str, Any], error: type[NoticeError]
) -> None:
    robots.faults.answer = json.dumps(answer).encode()
    with pytest.raises(NoticeError) as caught:
        notifier(robots, kind).send(message())
    assert type(caught.value) is error
    if isinstance(caught.value, RateLimitedError):
        window = timedelta(minutes=10 if kind == "dingtalk" else 1)
        assert caught.value.retry_after == window


UNPROVEN = [b"", b"ok", b"{}", b"[]", b"null", b"0", b'"ok"', b"<html>ok</html>", b"\xff\xfe", b"[" * 60_000,
            b'{"code": "0", "errcode": "0"}', b'{"code": false, "errcode": false}', b'{"code": null, "errcode": null}',
            b'{"code": 0.0, "errcode": 0.0}', b'{"code": 0, "errcode": 0', b'{"code": 1, "code": 0, "errcode": 1}',
            b'{"errcode": 1, "errcode": 0}', b'{"code": ' + b"9" * 4000 + b', "errcode": ' + b"9" * 4000 + b"}",
            b'{"StatusCode": true, "errcode": true}', b'{"Code": 0, "ErrCode": 0}',
            b'{"code": 0, "errcode": 0, "x": "' + b"x" * 100_000 + b'"}']  # fmt: skip


@every_robot
@pytest.mark.parametrize("body", UNPROVEN, ids=lambda body: str(body[:40]))
def test_200_with_anything_but_the_documented_code_proves_nothing(
    robots: RobotStandIns, kind: str, body: bytes
) -> None:
    robots.faults.answer = body
    with pytest.raises(NoticeError) as caught:
        notifier(robots, kind).send(message())
    assert type(caught.value) is NoticeError
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


@every_robot
@pytest.mark.parametrize(("status", "error"), [(500, NoticeError), (302, NoticeError), (429, RateLimitedError)])
def test_success_in_another_status_proves_nothing(
    robots: RobotStandIns, kind: str, status: int, error: type[NoticeError]
) -> None:
    robots.faults.status, robots.faults.answer = status, b'{"code": 0, "errcode": 0}'
    with pytest.raises(error):
        notifier(robots, kind).send(message())


@every_robot
def test_what_a_vendor_repeats_of_hook_and_secret_is_blanked(robots: RobotStandIns, kind: str) -> None:
    said = f"wrong: {robots.token} {robots.secret}\x1b[31m " + "x" * 5000
    robots.faults.answer = json.dumps({"code": 1, "errcode": 1, "msg": said, "errmsg": said}).encode()
    with pytest.raises(NoticeError) as caught:
        notifier(robots, kind).send(message())
    assert robots.token not in str(caught.value)
    assert kind == "wecom" or robots.secret not in str(caught.value)
    assert len(str(caught.value)) < 500


# parts, links and limits


@every_robot
def test_every_part_shows_what_it_is_and_how_to_keep_it(robots: RobotStandIns, kind: str) -> None:
    told = notifier(robots, kind, link=keep_link())
    told.send(message(part(1), part(2)))
    (posted,) = robots.posted
    for number in (1, 2):
        assert f"train-{number} (i-0a{number}) stops at 18:00" in posted.words
        assert f"costguard approve {number:016x}" in posted.words
    assert posted.words.count("https://answers.example.com/keep?t=") == 4
    assert "▁▁▂▁▁▁▁▁" in posted.words
    assert "Nothing happens before." in posted.words
    assert "not shown here" not in posted.words
    assert not told.edit("feishu:ops:0", message())


@every_robot
def test_without_a_way_to_answer_the_command_is_named(robots: RobotStandIns, kind: str) -> None:
    notifier(robots, kind).send(message(part(1)))
    assert "costguard snooze 0000000000000001 --for 24h" in robots.posted[0].words
    assert "costguard snooze 0000000000000001 --for 168h" in robots.posted[0].words


@every_robot
def test_what_became_of_a_part_takes_the_place_of_its_choices(robots: RobotStandIns, kind: str) -> None:
    notifier(robots, kind, link=keep_link()).send(message(part(1, status="Kept until Friday")))
    (posted,) = robots.posted
    assert "Kept until Friday" in posted.words
    assert "/keep?t=" not in posted.words
    assert "costguard" not in posted.words


@pytest.mark.parametrize(("kind", "least"), [("feishu", 15), ("dingtalk", 25), ("wecom", 5)])
def test_its_capacity_is_what_one_message_holds_whole(robots: RobotStandIns, kind: str, least: int) -> None:
    told = notifier(robots, kind, link=keep_link())
    whole = message(*(part(number) for number in range(100)))
    room = told.capacity(whole)
    assert room >= least
    told.send(message(*whole.parts[:room]))
    assert "not shown here" not in robots.posted[0].words
    with pytest.raises(RejectedNoticeError, match="to be sent as several"):
        told.send(whole)
    assert told.capacity(message()) == 1
    assert told.capacity(Message("unknown", "t", "t", parts=whole.parts)) >= room


@every_robot
def test_a_part_too_large_for_any_message_is_cut_and_counted(robots: RobotStandIns, kind: str) -> None:
    huge = part(1, fields=(("Tag", "值" * 9000),) * 600, lines=("行" * 5000,) * 600)
    told = notifier(robots, kind, link=keep_link())
    assert told.capacity(message(huge)) == 1
    told.send(message(huge, title="标题" * 5000))
    (posted,) = robots.posted
    assert "train-1" in posted.words
    assert posted.words.count("/keep?t=") == 2, "how to keep it is shown before everything else"
    assert re.search(r"… and \d+ more, not shown here", posted.words)


@every_robot
@pytest.mark.parametrize("letter", ['"', "\\", "中", "\U0001f600"])
def test_no_letters_make_a_request_longer_than_the_vendor_takes(robots: RobotStandIns, kind: str, letter: str) -> None:
    told = notifier(robots, kind, link=keep_link())
    filled = letter * 2000
    fields = ((filled, filled),) * 300
    told.send(message(part(1, title=filled, fields=fields, status=filled), title=filled, fields=fields))
    whole = message(*(part(number, title=filled, fields=fields[:3]) for number in range(12)))
    told.send(message(*whole.parts[: told.capacity(whole)]))
    assert len(robots.posted) == 2, "the stand-in refuses what is too long"


HOSTILE = [
    '<at user_id="all">所有人</at>', "<at id=all></at>", "@all", "@所有人", "<@all>", "<@zhang>",
    "[x](https://evil.example)", "![x](https://evil.example/a.png)", "**bold**", "~~gone~~", "`code`", "# heading",
    "> quote", '<font color="red">x</font>', "&#60;@all&#62;", "&lt;@all&gt;", "https://evil.example/login", "[微笑]",
    "a|b", "\\<@all>", "\u202eevil\u2066", "a\nb\rc\x00",
]  # fmt: skip
COMMANDING = re.compile(r"<|\[[^\]]*\]\(|(?<!\w)@|\*|~~|`|^#|&(?:#|\w+;)|://|[\x00-\x1f\u202e\u2066]")


@pytest.mark.parametrize("words", HOSTILE, ids=ascii)
def test_words_from_outside_are_shown_and_never_obeyed(words: str) -> None:
    for kind in ("dingtalk", "wecom"):
        shown = VENDORS[kind].sheet.words(words, 500)
        assert shown
        assert not COMMANDING.search(shown), shown
    assert "<at" not in VENDORS["feishu"].sheet.words(words, 500).lower()


def test_a_card_of_feishu_holds_no_markup_at_all(robots: RobotStandIns) -> None:
    notifier(robots, "feishu", link=keep_link()).send(message(part(1), title="**x**", fields=(("<at id=all>", "*y*"),)))
    card = json.dumps(robots.posted[0].document)
    assert set(re.findall(r'"tag": "(\w+)"', card)) == {"plain_text", "div", "hr", "action", "button"}


def test_names_mail_addresses_and_paths_stay_as_they_are() -> None:
    for said in ("team_nlp", "ops@example.com", "acs:ecs:cn-beijing:i-0a", "R&D", "a < b"[:1], "50 %", "i-0a/sda"):
        assert VENDORS["dingtalk"].sheet.words(said, 100) == said


# golden files: what the three say of the same message


@every_robot
@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_the_message_is_the_one_on_file(kind: str, name: str) -> None:
    """A layout changed on purpose: `python -m tests.golden.robot_messages`, and read the difference."""
    assert made(kind, name) == (FOLDER / f"{kind}-{name}.json").read_text("utf-8")


def test_every_file_is_one_of_a_message() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {f"{kind}-{name}.json" for kind in KINDS for name in MESSAGES}


# the setting


GOOD = {
    "feishu:research": {"hook": "https://open.feishu.cn/open-apis/bot/v2/hook/0c1e-made-up", "secret": "madeup-secret"},
    "feishu:lark": {"hook": "https://open.larksuite.com/open-apis/bot/v2/hook/0c1e-4a5b-made-up"},
    "dingtalk:ops": {"hook": "https://oapi.dingtalk.com/robot/send?access_token=0123456789ab", "secret": "SEC0123456"},
    "wecom:ml": {"hook": "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=693a91f6-made-up"},
}  # fmt: skip


def test_the_setting_names_robots_and_shows_no_secret() -> None:
    robots = read_robots(json.dumps(GOOD), private=False)
    assert set(robots) == set(GOOD)
    assert [address for address, robot in robots.items() if robot.unsigned] == ["feishu:lark"]
    assert "made-up" not in repr(robots)
    assert "madeup" not in repr(robots)
    assert "SEC0123456" not in repr(robots)
    assert read_robots("", private=False) == {}


HOOK = "https://open.feishu.cn/open-apis/bot/v2/hook/t0p-s3cret"
WRONG: list[tuple[str, str]] = [
    ("{", "is no JSON object of robots"),
    ("[]", "is no JSON object of robots"),
    ("null", "is no JSON object of robots"),
    ("[" * 30_000, "is no JSON object of robots"),
    (f'{{"feishu:a": {{"hook": "{HOOK}"}}, "feishu:a": {{"hook": "{HOOK}"}}}}', "each once"),
    (json.dumps({HOOK: {"hook": HOOK}}), "the name of entry 1 is no robot's"),
    (json.dumps({"slack:a": {"hook": HOOK}}), "the name of entry 1 is no robot's"),
    (json.dumps({"feishu:A_b": {"hook": HOOK}}), "the name of entry 1 is no robot's"),
    (json.dumps({"feishu:a": HOOK}), 'feishu:a: expected an object with the key "hook"'),
    (json.dumps({"feishu:a": {}}), 'feishu:a: expected an object with the key "hook"'),
    (json.dumps({"feishu:a": {"hook": HOOK, "keyword": "t0p-s3cret"}}), "feishu:a: expected an object"),
    (json.dumps({"feishu:a": {"hook": 1}}), "feishu:a: expected an object"),
    (json.dumps({"feishu:a": {"hook": HOOK, "secret": "t0p s3cret"}}), "feishu:a: secret is not what"),
    (json.dumps({"feishu:a": {"hook": HOOK, "secret": ""}}), "feishu:a: secret is not what"),
    (json.dumps({"feishu:a": {"hook": HOOK, "secret": None}}), "feishu:a: secret is not what"),
    (json.dumps({"wecom:a": {**GOOD["wecom:ml"], "secret": "t0p-s3cret"}}), "wecom:a: its vendor knows no secret"),
]


@pytest.mark.parametrize(("text", "problem"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_with_the_setting_is_said_without_its_secrets(text: str, problem: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_robots(text, private=True)
    assert problem in str(caught.value)
    assert "COSTGUARD_ROBOTS" in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "hook",
    [
        HOOK.replace("https", "http"),
        HOOK.replace("open.feishu.cn", "open.feishu.cn.evil.example"),
        HOOK.replace("open.feishu.cn", "evil.example"),
        HOOK.replace("open.feishu.cn", "open.feishu.cn@evil.example"),
        HOOK.replace("open.feishu.cn", "open.feishu.cn:8443"),
        HOOK.replace("open.feishu.cn", "OPEN.feishu.cn."),
        HOOK.replace("open.feishu.cn", "qyapi.weixin.qq.com"),
        HOOK.replace("/v2/", "/v1/"),
        f"{HOOK}?x=1",
        f"{HOOK}#x",
        f"{HOOK}/../x",
        "http://127.0.0.1:8080/open-apis/bot/v2/hook/t0p-s3cret",
        "https://127.0.0.1/open-apis/bot/v2/hook/t0p-s3cret",
        "http://169.254.169.254/open-apis/bot/v2/hook/t0p-s3cret",
        "",
        "hook",
    ],
)
def test_a_hook_leads_to_its_vendor_and_nowhere_else(hook: str) -> None:
    robots, problems = look_at_robots(json.dumps({"feishu:a": {"hook": hook}, **GOOD}), private=False)
    assert set(robots) == set(GOOD), "the others are right"
    ((address, problem),) = problems
    assert address == "feishu:a"
    assert "open.feishu.cn/open-apis/bot/v2/hook/…" in problem
    assert "s3cret" not in problem


def test_a_host_that_turns_private_is_not_called() -> None:
    robots = read_robots(json.dumps(GOOD), private=False)
    told = RobotNotifier(
        feishu.Feishu(), {"feishu:lark": robots["feishu:lark"]}, now=lambda: NOW, resolve=lambda *_: ["10.0.0.7"]
    )
    with pytest.raises(RejectedNoticeError, match="private address"):
        told.send(Message("lark", "t", "t"))
