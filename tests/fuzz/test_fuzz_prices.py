"""Price lists, damaged: a positive price of sensible length in the cloud's currency, the dated table's, or none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import builders as b
from tests.fuzz.bounds import LONG, attempt, fuzz
from tests.fuzz.mutations import Mutated, json_junk, junk, mutated, texts

from costguard.domain.actions import Verb
from costguard.domain.errors import ProviderError
from costguard.domain.money import HourlyRate
from costguard.domain.refs import Shard
from costguard.domain.resources import Billing, Volume
from costguard.planning import CapUse
from costguard.planning.rails import cap_rail, rule_limit
from costguard.providers.aws.billing.prices import AwsPrices
from costguard.providers.aws.core import errors
from costguard.providers.kit.core.credentials import without_secrets

MACHINE = b.instance("i-1", instance_type="g5.xlarge")
SPOT = b.instance("i-2", instance_type="g5.xlarge", billing=Billing.SPOT, zone="us-east-1a")
ENTRY: dict[str, Any] = {
    "product": {
        "attributes": {
            "instanceType": "g5.xlarge", "regionCode": "us-east-1", "operatingSystem": "Linux", "tenancy": "Shared",
            "capacitystatus": "Used", "marketoption": "OnDemand",
        }
    },
    "terms": {
        "OnDemand": {
            "X.Y": {"priceDimensions": {"X.Y.Z": {"unit": "Hrs", "pricePerUnit": {"USD": "1.0060000000"}}}},
        }
    },
}  # fmt: skip
HISTORY = [
    {"InstanceType": "g5.xlarge", "ProductDescription": "Linux/UNIX", "AvailabilityZone": "us-east-1a",
     "SpotPrice": "0.402300", "Timestamp": b.NOW},
]  # fmt: skip


class Canned:
    """The two price calls, answered from a book."""

    def __init__(self, price_list: Any = None, history: Any = None) -> None:
        self._answers = {
            "GetProducts": [json.dumps(ENTRY)] if price_list is None else price_list,
            "DescribeSpotPriceHistory": HISTORY if history is None else history,
        }

    def pages(self, _: Shard, __: str, operation: str, ___: str, /, **____: Any) -> Iterator[Sequence[Any]]:
        answer = self._answers[operation]
        if not isinstance(answer, list):  # as AwsSession.pages does
            raise ProviderError("no list", operation=operation)
        yield answer


def rates(cloud: Canned, *, measure: bool = False) -> Mapping[Any, HourlyRate]:
    found = attempt("prices", lambda: AwsPrices(cloud, (), now=b.NOW).rates([MACHINE, SPOT]), measure=measure)
    assert found is not None
    for rate in found.values():
        assert rate.money.currency == "USD"
        assert 0 < rate.money.amount < 10**9
        assert len(str(rate.money)) < 40
        rule = b.rule()
        assert cap_rail(Verb.STOP, rule_limit(rule, 1), CapUse(), replace(rate)) is None or rate.money.amount > 1000
    return found


def test_the_price_list_and_the_history_are_read_to_begin_with() -> None:
    found = rates(Canned())
    assert (found[MACHINE.ref].money.amount, found[MACHINE.ref].source) == (Decimal("1.006"), "aws-pricing")
    assert (found[SPOT.ref].money.amount, found[SPOT.ref].source) == (Decimal("0.4023"), "aws-spot")


@fuzz(quick=60)
@given(mutated(ENTRY, json_junk()))
def test_a_damaged_entry_gives_a_price_or_none(damaged: Mutated) -> None:
    rates(Canned(price_list=[json.dumps(damaged.document)]))


@fuzz(quick=40)
@given(mutated(HISTORY))
def test_a_damaged_history_gives_a_price_or_none(damaged: Mutated) -> None:
    found = rates(Canned(history=damaged.document))
    assert found[MACHINE.ref].source == "aws-pricing"


@fuzz(quick=30)
@given(junk(), st.lists(junk() | texts(), max_size=3))
def test_anything_as_a_price_list_gives_a_price_or_none(answer: Any, entries: list[Any]) -> None:
    rates(Canned(price_list=answer, history=answer))
    rates(Canned(price_list=entries, history=entries))


AMOUNTS: list[Any] = [
    "1E+999999999",
    "1e5",
    "9" * 60_000,
    "NaN",
    "-1",
    "0",
    "0.0",
    "Infinity",
    "1_0",
    "１",  # noqa: RUF001
    "",
    " 1",
    "1 ",
    None,
    1,
    1.0,
    True,
    [],
    "0x1",
]


@pytest.mark.parametrize("amount", AMOUNTS, ids=lambda value: ascii(value)[:12])
def test_no_amount_is_a_bomb_or_a_price_that_is_none(amount: Any) -> None:
    entry = json.loads(json.dumps(ENTRY))
    entry["terms"]["OnDemand"]["X.Y"]["priceDimensions"]["X.Y.Z"]["pricePerUnit"]["USD"] = amount
    found = rates(Canned(price_list=[json.dumps(entry)], history=[{**HISTORY[0], "SpotPrice": amount}]), measure=True)
    assert found.get(MACHINE.ref) is None or found[MACHINE.ref].source == "table"
    assert SPOT.ref not in found


BOMBS = [
    "[" * 60_000,
    "[" * 30_000 + "]" * 30_000,
    '{"a":' * 9_000 + "1" + "}" * 9_000,
    "9" * 60_000,
    '"' + "a" * 60_000 + '"',
    "\ud800",
    "NaN",
]


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda text: ascii(text)[:12])
def test_a_bomb_of_an_entry_is_passed_over(bomb: str) -> None:
    found = rates(Canned(price_list=[bomb, json.dumps(ENTRY)]), measure=LONG)
    assert found[MACHINE.ref].source == "aws-pricing"


@fuzz(quick=30)
@given(st.floats(0, 1e12, allow_nan=False))
def test_what_stays_billed_is_a_price_whatever_the_size(size: float) -> None:
    volume = Volume(b.ref("vol-1", "volume"), size, "gp3")
    prices = AwsPrices(Canned(), (), now=b.NOW)
    lines = attempt("prices", lambda: prices.kept_hourly(b.detail(MACHINE, volumes=(volume,))))
    assert lines is not None
    assert all(money is None or money.amount >= 0 for _, money in lines)


ERRORS = {
    "Error": {"Code": "UnauthorizedOperation", "Message": "You are not authorized. AKIAABCDEFGHIJKLMNOP"},
    "ResponseMetadata": {"HTTPStatusCode": 403, "RequestId": "r"},
}


@fuzz(quick=50)
@given(mutated(ERRORS), st.booleans())
def test_a_damaged_error_is_still_an_error_of_ours(damaged: Mutated, changes: bool) -> None:  # noqa: FBT001
    from botocore.exceptions import ClientError

    try:
        failed: Exception = ClientError(damaged.document, "StopInstances")
    except (TypeError, AttributeError, ValueError, KeyError):
        return  # the SDK itself makes no error of it
    found = attempt("errors", lambda: errors.translate(failed, "ec2:StopInstances", changes=changes, sent=True))
    assert isinstance(found, ProviderError)
    str(found).encode()
    assert "AKIAABCDEFGHIJKLMNOP" not in str(found)
    assert len(str(found)) < 1000


@pytest.mark.parametrize(
    "piece", ["X-Amz-", "//", "AKIA", "a", "Signature", "=", "Encoded authorization failure message: "]
)
def test_no_text_makes_the_removal_of_secrets_slow(piece: str) -> None:
    found = attempt("errors", lambda: without_secrets(piece * (60_000 // len(piece))))
    assert found is not None
    assert len(found) <= 300
