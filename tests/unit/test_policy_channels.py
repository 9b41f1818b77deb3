"""The addresses a policy may name: robots by their names, never by their hooks."""

from __future__ import annotations

import pytest

from costguard.policy.model.channels import channel
from costguard.policy.syntax.problems import BadValueError

UUID = "f19abcde-7a4b-4c1d-9d01-1234567890ab"


@pytest.mark.parametrize("address", ["feishu:research", "dingtalk:ops", "wecom:ml", "feishu:a", "wecom:" + "a-1" * 5])
def test_a_robot_is_named_by_its_vendor_and_its_name(address: str) -> None:
    assert channel(address) == address


@pytest.mark.parametrize(
    "address",
    ["feishu:", "feishu:Research", "feishu:-a", "feishu:a b", "lark:ops", "weixin:ops", "WeCom:ops", "feishu:研究"],
)
def test_another_form_of_a_robots_name_is_refused_with_the_right_one(address: str) -> None:
    with pytest.raises(BadValueError) as caught:
        channel(address)
    assert "is not the name of a robot" in str(caught.value.args)
    assert "feishu:, dingtalk: or wecom:" in str(caught.value.args) + str(vars(caught.value))


@pytest.mark.parametrize(
    "address",
    [
        f"https://open.feishu.cn/open-apis/bot/v2/hook/{UUID}",
        f"https://open.larksuite.com:443/open-apis/bot/v2/hook/{UUID}",
        f"https://OAPI.dingtalk.com/robot/send?access_token={UUID}",
        f"http://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={UUID}",
        f"https://x@qyapi.weixin.qq.com./cgi-bin/webhook/send?key={UUID}",
        f"feishu:https://open.feishu.cn/open-apis/bot/v2/hook/{UUID}",
        f"feishu:{UUID}",
        f"wecom:key={UUID}",
        f"dingtalk:{'0123456789abcdef' * 4}",
    ],
)
def test_a_hook_is_refused_unrepeated_with_where_it_belongs(address: str) -> None:
    with pytest.raises(BadValueError) as caught:
        channel(address)
    said = str(caught.value.args) + str(vars(caught.value))
    assert "COSTGUARD_ROBOTS" in said
    assert UUID not in said
    assert "0123456789abcdef" not in said
