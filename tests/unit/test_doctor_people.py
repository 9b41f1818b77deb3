"""What the doctor says of robots: each by itself, from the settings alone."""

from __future__ import annotations

import json

from tests.builders import policy

from costguard.connections.people import robots_looked_at
from costguard.engine.doctor.checks import channel_check, examine_robots
from costguard.report.doctor.checks import Code
from costguard.report.doctor.views import check_words
from costguard.settings import load_settings

HOOK = "https://oapi.dingtalk.com/robot/send?access_token=t0p-s3cret"
ROBOTS = {
    "dingtalk:ops": {"hook": HOOK, "secret": "SEC0123456"},
    "dingtalk:bare": {"hook": HOOK},
    "wecom:ml": {"hook": "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=t0p-s3cret"},
    "feishu:lost": {"hook": HOOK},
}


def test_each_robot_is_asked_for_its_hook_and_its_secret() -> None:
    looked = robots_looked_at(load_settings({"COSTGUARD_ROBOTS": json.dumps(ROBOTS)}))
    checks = {check.target: check for check in examine_robots(looked)}
    assert {address: check.code for address, check in checks.items()} == {
        "dingtalk:ops": Code.ROBOT_READY,
        "dingtalk:bare": Code.ROBOT_UNSIGNED,
        "wecom:ml": Code.ROBOT_READY,
        "feishu:lost": Code.ROBOT_WRONG,
    }
    assert "open.feishu.cn" in check_words(checks["feishu:lost"])
    assert "s3cret" not in "".join(map(check_words, checks.values()))


def test_without_robots_nothing_is_asked_and_a_broken_setting_is_one_answer() -> None:
    assert list(examine_robots(robots_looked_at(load_settings({})))) == []
    (check,) = examine_robots(robots_looked_at(load_settings({"COSTGUARD_ROBOTS": "{t0p-s3cret"})))
    assert (check.code, check.target) == (Code.ROBOT_WRONG, "")
    assert "s3cret" not in check_words(check)


def test_a_robot_that_is_not_set_up_proves_nothing() -> None:
    set_up = frozenset({"slack", "feishu:ops"})
    for channel, code in {
        "feishu:ops": Code.CHANNEL_PROVES,
        "feishu:other": Code.CHANNEL_MISSING,
        "#gpu": Code.CHANNEL_PROVES,
    }.items():
        assert channel_check(policy(default_channel=channel), set_up).code is code
