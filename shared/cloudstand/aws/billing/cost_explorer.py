"""Cost Explorer, which moto answers from a queue of canned results: here from what the world is charged."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64Error
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from hashlib import blake2b
from typing import Any

from cloudstand.aws.billing.cost_facts import CostFact, cost_facts
from cloudstand.aws.core.questions import Question, RefusedQuestionError, invalid, understood
from cloudstand.world.cloud import World

_PLACES = Decimal("1e-10")  # the decimal places of AWS's own examples
_INVOICED_AFTER = timedelta(days=5)  # of the next month; until then every amount is an estimate
_DAY = timedelta(days=1)
_PAGE = 1_000
_MOST_KEYS = 100

Groups = Mapping[tuple[str, ...], Sequence[CostFact]]


class CostExplorer:
    """The bill of an organisation led by the first of `accounts`, which sees all of it; the others see their own.

    `asked` are the questions about costs so far. `page_size` is how many groups fill a page. `inactive_tags` are keys
    that nobody activated for cost allocation: the bill knows them on nothing.
    """

    def __init__(self, world: World, accounts: Sequence[str], cloud: str = "aws") -> None:
        self._world = world
        self._accounts = accounts
        self._cloud = cloud
        self.asked: list[Mapping[str, Any]] = []
        self.page_size = _PAGE
        self.inactive_tags: set[str] = set()
        self._told: tuple[tuple[object, ...], Sequence[CostFact]] = ((), ())  # one run asks for the same days again

    def get_cost_and_usage(self, account: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one request for costs.

        Raises:
            RefusedQuestionError: as the service would.
        """
        self.asked.append(request)
        question = understood(request, self._world.now)
        asked = {name: value for name, value in request.items() if name != "NextPageToken"}
        first = _offset(request.get("NextPageToken"), asked)
        periods = _periods(question)
        grouped = self._grouped(account, question, periods)
        rows = [(index, keys) for index, groups in enumerate(grouped) for keys in sorted(groups)]
        page = rows[first : first + self.page_size]
        more = first + self.page_size < len(rows)
        # days without charges stand where they belong, with no groups
        begin = rows[first - 1][0] + 1 if first else 0
        begin = min(begin, page[0][0]) if page else begin
        end = page[-1][0] + 1 if more else len(periods)
        shown: dict[int, list[tuple[str, ...]]] = {index: [] for index in range(begin, end)}
        for index, keys in page:
            shown[index].append(keys)
        results = [
            self._result(question, periods[index], grouped[index], found) for index, found in sorted(shown.items())
        ]
        answer: dict[str, Any] = {"ResultsByTime": results, "DimensionValueAttributes": []}
        if question.keys:
            answer["GroupDefinitions"] = [{"Type": kind, "Key": key} for kind, key in question.keys]
        if more:
            answer["NextPageToken"] = _token(first + self.page_size, asked)
        return answer

    def list_cost_allocation_tags(self, account: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Which tags of the world's machines and charges are in the bill.

        Raises:
            RefusedQuestionError: as the service would.
        """
        if account != self._accounts[0]:
            message = "Linked account doesn't have access to cost allocation tags."
            raise RefusedQuestionError("AccessDeniedException", message)
        wanted = request.get("TagKeys")
        if wanted is not None and not 1 <= len(wanted) <= _MOST_KEYS:
            raise invalid("TagKeys must have 1 to 100 elements")
        used = {key for machine in self._world.machines.values() for key in machine.tags}
        used |= {key for other in self._world.other_charges for key in other.tags}
        tags = [
            {"TagKey": key, "Type": "UserDefined", "Status": "Inactive" if key in self.inactive_tags else "Active"}
            for key in sorted(used if wanted is None else used & set(wanted))
        ]
        return {"CostAllocationTags": [tag for tag in tags if request.get("Status") in (None, tag["Status"])]}

    def spent(self, account: str, question: Question) -> Decimal:
        """The unblended costs that a budget counts."""
        return sum((fact.metrics["UnblendedCost"] for fact in self._facts(account, question)), Decimal(0))

    def _facts(self, account: str, question: Question) -> Sequence[CostFact]:
        everything = account == self._accounts[0]
        found = []
        for fact in self._everything(question):
            if not everything and fact.account != account:
                continue
            seen = self._without_inactive(fact) if self.inactive_tags else fact
            if question.holds(seen):
                found.append(seen)
        return found

    def _everything(self, question: Question) -> Sequence[CostFact]:
        world = self._world
        asked = (question.since, question.until, world.now, world.revision, len(world.other_charges))
        if self._told[0] != asked:
            self._told = (asked, tuple(cost_facts(world, self._cloud, question.since, question.until)))
        return self._told[1]

    def _without_inactive(self, fact: CostFact) -> CostFact:
        return replace(fact, tags={key: value for key, value in fact.tags.items() if key not in self.inactive_tags})

    def _grouped(self, account: str, question: Question, periods: Sequence[tuple[datetime, datetime]]) -> list[Groups]:
        grouped: list[dict[tuple[str, ...], list[CostFact]]] = [{} for _ in periods]
        begins = [begin for begin, _ in periods]
        for fact in self._facts(account, question):
            grouped[bisect_right(begins, fact.day) - 1].setdefault(question.group_of(fact), []).append(fact)
        return list(grouped)

    def _result(
        self,
        question: Question,
        period: tuple[datetime, datetime],
        groups: Groups,
        shown: Sequence[tuple[str, ...]],
    ) -> dict[str, Any]:
        begin, end = period
        invoiced = (begin.replace(day=1) + timedelta(days=32)).replace(day=1) + _INVOICED_AFTER
        result: dict[str, Any] = {
            "TimePeriod": {"Start": f"{begin:%Y-%m-%d}", "End": f"{end:%Y-%m-%d}"},
            "Total": {},
            "Groups": [{"Keys": list(keys), "Metrics": _metrics(question, groups[keys])} for keys in shown],
            "Estimated": self._world.now < invoiced,
        }
        if not question.keys:
            facts = [fact for each in groups.values() for fact in each]
            result.update(Total=_metrics(question, facts), Groups=[])
        return result


def _metrics(question: Question, facts: Sequence[CostFact]) -> dict[str, dict[str, str]]:
    unit = facts[0].currency if facts else "USD"
    return {
        name: {
            "Amount": _amount(sum((fact.metrics[name] for fact in facts), Decimal(0))),
            "Unit": unit if name.endswith("Cost") else "N/A",
        }
        for name in question.metrics
    }


def _amount(exact: Decimal) -> str:
    return f"{exact.quantize(_PLACES):f}" if exact else "0"


def _periods(question: Question) -> list[tuple[datetime, datetime]]:
    periods = []
    begin = question.since
    while begin < question.until:
        end = (begin.replace(day=1) + timedelta(days=32)).replace(day=1) if question.monthly else begin + _DAY
        end = min(end, question.until)
        periods.append((begin, end))
        begin = end
    return periods


def _token(offset: int, asked: Mapping[str, Any]) -> str:
    return urlsafe_b64encode(f"{_digest(asked)}/{offset}".encode()).decode()


def _offset(token: Any, asked: Mapping[str, Any]) -> int:
    if token is None:
        return 0
    try:
        digest, _, offset = urlsafe_b64decode(str(token)).decode().partition("/")
    except (NotBase64Error, UnicodeDecodeError):
        digest, offset = "", ""
    if not offset.isdigit():
        message = "The pagination token is invalid. Try again without a pagination token."
        raise RefusedQuestionError("InvalidNextTokenException", message)
    if digest != _digest(asked):
        message = "Your request parameters changed between pages."
        raise RefusedQuestionError("RequestChangedException", message)
    return int(offset)


def _digest(asked: Mapping[str, Any]) -> str:
    return blake2b(json.dumps(asked, sort_keys=True).encode(), digest_size=8).hexdigest()
