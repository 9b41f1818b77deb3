"""What is blanked before a line leaves the process, and what is not."""

from __future__ import annotations

import json

import pytest

from costguard.faas.logs import Redactor
from costguard.settings import Secret, Settings


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (
            "GET https://b.s3.amazonaws.com/p.yaml?X-Amz-Credential=AKIA&X-Amz-Signature=f00d&x=1",
            "GET https://b.s3.amazonaws.com/p.yaml?X-Amz-Credential=***&X-Amz-Signature=***&x=1",
        ),
        ("https://oss?OSSAccessKeyId=LTAI1&Expires=1&Signature=a%2Bb%3D", "https://oss?OSSAccessKeyId=***&Expires=1&Signature=***"),
        ("q-sign-algorithm=sha1&q-ak=AKID1&q-signature=beef", "q-sign-algorithm=sha1&q-ak=***&q-signature=***"),
        ("postgresql://keeper:word@db/costguard", "postgresql://***@db/costguard"),
        ("the token xoxb-12-ab is invalid", "the token *** is invalid"),
        ("POST https://hooks.slack.com/services/T0/B0/xyz", "POST https://***"),
        ("key ASIAIOSFODNN7EXAMPLE", "key ***"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("GET /keep?t=ck1-s92seTt7QgJAlkQIhlHftjEKMDAw_- 200", "GET /keep?t=*** 200"),
        ('{"t": "ck1-s92seTt7QgJAlkQIhlHftjEKMDAw_-"}', '{"t": "***"}'),
        ("https://open.feishu.cn/open-apis/bot/v2/hook/0c1e-4a5b", "https://open.feishu.cn/open-apis/bot/v2/hook/***"),
        ("https://oapi.dingtalk.com/robot/send?access_token=0a1b", "https://oapi.dingtalk.com/robot/send?access_token=***"),
        ("https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=69-3a", "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=***"),
        ("sign with SEC" + "0f" * 32, "sign with ***"),
    ],
)  # fmt: skip
def test_credentials_are_known_by_their_shape(text: str, clean: str) -> None:
    assert Redactor().clean(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "found 3 idle instances in aws:111122223333:us-east-1:instance:i-0123456789abcdef0",
        "dynamodb://costguard?region=eu-west-1",
        "http://127.0.0.1:5000/path?design=new",
        "arn:aws:iam::111122223333:role/costguard",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert Redactor.of(["a"]).clean(text) == text


def test_a_known_secret_is_blanked_in_every_form_it_takes() -> None:
    secret = 'pa"ss\\wörd/1'
    redactor = Redactor.of([secret])
    for form in (secret, json.dumps(secret), json.dumps(secret, ensure_ascii=False), "pa%22ss%5Cw%C3%B6rd%2F1"):
        assert "rd" not in redactor.clean(form)


def test_an_error_is_clean_or_said_to_be_not() -> None:
    redactor = Redactor.of(["made-up-secret"])
    assert redactor.clean_error(ValueError("nothing here")) is None
    assert redactor.clean_error(ValueError("made-up-secret")) == "ValueError: ***"
    outer = ValueError("outer")
    outer.__cause__ = KeyError("made-up-secret")
    assert redactor.clean_error(outer) == "ValueError: outer"


def test_an_error_that_causes_itself_is_looked_at_once() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert Redactor().clean_error(first) is None


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (
            "https://hooks.example.com/services/T0B0/canary-path-0123456789 said no",
            "https://hooks.example.com/services/T0B0/*** said no",
        ),
        (
            "https://example.com/a-page-with-a-long-name/and-no-figure-in-it",
            "https://example.com/a-page-with-a-long-name/and-no-figure-in-it",
        ),
        (
            "https://b.example.com/digests/2026-W10-8dc146960fab4fa1386d.html",
            "https://b.example.com/digests/2026-W10-8dc146960fab4fa1386d.html",
        ),
        (
            "arn:aws:iam::111122223333:role/costguard-0123456789-reader",
            "arn:aws:iam::111122223333:role/costguard-0123456789-reader",
        ),
    ],
)
def test_a_token_in_the_path_of_an_address_is_blanked_and_other_paths_stay(text: str, clean: str) -> None:
    assert Redactor().clean(text) == clean


def test_the_token_of_a_robots_hook_is_known_without_its_address() -> None:
    """Whoever is asked repeats the path that it was asked by, and not the whole address."""
    robots = {
        "dingtalk:ops": {"hook": "https://oapi.dingtalk.com/robot/send?access_token=canarytoken"},
        "feishu:ops": {"hook": "https://open.feishu.cn/open-apis/bot/v2/hook/canaryhook"},
    }
    redactor = Redactor.of(Settings(robots=Secret(json.dumps(robots))).secrets())
    assert redactor.clean("no canarytoken, no canaryhook here") == "no ***, no *** here"
