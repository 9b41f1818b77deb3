"""What every secret store promises, on each adapter: the text that is kept there, or an error that says why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.contract.secret_worlds import LEAKED, VAULTS, TencentVault, Vault, opened, store_of

from costguard.domain.errors import (
    AccessDeniedError,
    NotFoundError,
    ProviderError,
    RefusedError,
    ThrottledError,
    UnavailableError,
)
from costguard.providers.alibaba.core.services import AlibabaSecrets
from costguard.providers.alibaba.iam.permissions import REACH as ALIBABA
from costguard.providers.aws.iam.permissions import REACH as AWS
from costguard.providers.kit.iam.permissions import Feature, Purpose
from costguard.providers.tencent.core.services import TencentSecrets
from costguard.providers.tencent.iam.permissions import REACH as TENCENT

NAME = "costguard/slack"
VALUE = 'xoxb-1 "quoted"\n中文'


@pytest.fixture(params=VAULTS, scope="module")
def vault(request: pytest.FixtureRequest) -> Iterator[Vault]:
    found, closing = opened(request.param)
    with closing:
        yield found


@pytest.fixture(autouse=True)
def fine(vault: Vault) -> None:
    vault.answer("fine")


def test_the_current_text_is_read_as_it_was_written(vault: Vault) -> None:
    vault.keep(NAME, "old")
    vault.keep(NAME, VALUE)
    store = store_of(vault)
    assert [store.read(NAME), store.read(NAME)] == [VALUE, VALUE]


def test_one_request_is_sent_and_it_asks_for_nothing_else(vault: Vault) -> None:
    vault.keep(NAME, VALUE)
    before = len(vault.sent())
    store_of(vault).read(NAME)
    assert vault.sent()[before:] == ["GetSecretValue"]


def test_a_secret_that_is_not_there_is_an_error_and_never_empty(vault: Vault) -> None:
    with pytest.raises(NotFoundError):
        store_of(vault).read("costguard/never")
    vault.keep(NAME, VALUE)
    with pytest.raises(NotFoundError):
        store_of(vault, region=vault.elsewhere).read(NAME)


def test_what_is_binary_or_empty_is_refused(vault: Vault) -> None:
    vault.keep("costguard/binary", b"\x00\x01")
    with pytest.raises(RefusedError, match="no text"):
        store_of(vault).read("costguard/binary")
    vault.keep(NAME, VALUE)
    vault.answer("empty")
    with pytest.raises(RefusedError, match="no text"):
        store_of(vault).read(NAME)


def test_an_answer_of_another_form_is_not_believed(vault: Vault) -> None:
    vault.keep(NAME, VALUE)
    vault.answer("null")
    with pytest.raises(ProviderError):
        store_of(vault).read(NAME)


def test_a_denial_names_the_permission_and_repeats_no_secret(vault: Vault) -> None:
    vault.keep(NAME, VALUE)
    vault.answer("denied")
    store = store_of(vault)
    with pytest.raises(AccessDeniedError) as raised:
        store.read(NAME)
    assert raised.value.operation == vault.permission
    assert f"grant {vault.permission} to these credentials" in store.fix_for(raised.value)
    assert LEAKED not in str(raised.value)


@pytest.mark.parametrize(("how", "kind"), [("throttled", ThrottledError), ("broken", UnavailableError)])
def test_what_may_pass_is_told_as_that_once_time_is_up(vault: Vault, how: str, kind: type[ProviderError]) -> None:
    vault.keep(NAME, VALUE)
    vault.answer(how)
    store = store_of(vault, seconds_left=_ending_after(len(vault.sent()), vault))
    with pytest.raises(kind) as raised:
        store.read(NAME)
    assert "again later" in store.fix_for(raised.value)


def _ending_after(before: int, vault: Vault) -> Callable[[], float]:
    """Time until the first answer, and none for another try."""
    return lambda: 0.0 if vault.sent()[before:] else 10.0


def test_without_credentials_nothing_is_sent() -> None:
    for store in (AlibabaSecrets("alibaba", "cn-shanghai", None), TencentSecrets("tencent", "ap-shanghai", None)):
        with pytest.raises(AccessDeniedError, match="no credentials"):
            store.read(NAME)


def test_each_reads_values_and_can_change_nothing() -> None:
    for reach in (AWS, ALIBABA, TENCENT):
        table = reach[Purpose.SECRET].values()
        (own,) = (one.name for one in table if one.feature is Feature.SECRETS)
        assert own.endswith(":GetSecretValue")
        assert not any(one.changes_something for one in table)


def test_a_version_is_named_where_the_vendor_asks_for_one() -> None:
    vault, closing = opened("tencent")
    with closing:
        assert isinstance(vault, TencentVault)
        vault.keep(NAME, VALUE, "v2")
        store = store_of(vault)
        assert store.read(NAME, "v2") == VALUE
        with pytest.raises(NotFoundError) as raised:
            store.read(NAME)
        assert "?version=v1" in store.fix_for(raised.value)
