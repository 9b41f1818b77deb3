"""The parts of a session that readers need: enough for what stands in for one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from costguard.domain.refs import Shard


class Calls(Protocol):
    """Asks single questions."""

    def call(self, shard: Shard, service: str, operation: str, /, **parameters: Any) -> Mapping[str, Any]:
        """One request, retried within the deadline; raises ProviderError."""


class Lists(Protocol):
    """Reads lists that come in pages."""

    def pages(
        self, shard: Shard, service: str, operation: str, result_key: str, /, **parameters: Any
    ) -> Iterator[Sequence[Any]]:
        """The list under `result_key` of every page; raises ProviderError."""


class Reads(Calls, Lists, Protocol):
    """Both."""


def listed(session: Lists, shard: Shard, api: str, result_key: str, /, **parameters: Any) -> Iterator[Any]:
    """Every item of the list under `result_key` of every page of `api` (`ec2:DescribeVolumes`), as `pages`."""
    service, _, operation = api.partition(":")
    for page in session.pages(shard, service, operation, result_key, **parameters):
        yield from page
