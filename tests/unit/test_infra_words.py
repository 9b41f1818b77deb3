"""The Terraform of clouds whose providers are not at hand, held against what those publish, and against each other."""

from __future__ import annotations

from tests.infra import alibaba, parity_words, tencent


def test_alibabas_modules_use_only_what_its_provider_publishes() -> None:
    assert alibaba.check_names() == []


def test_tencents_modules_use_only_what_its_provider_publishes() -> None:
    assert tencent.check_names() == []


def test_the_three_clouds_agree_in_their_words() -> None:
    assert parity_words.check() == []
