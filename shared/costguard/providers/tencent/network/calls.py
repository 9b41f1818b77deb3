"""The part of `TencentSession` that reading networks needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from costguard.domain.refs import Shard


class Calls(Protocol):
    """Asks, and turns pages."""

    def call(self, shard: Shard, service: str, action: str, /, **parameters: Any) -> dict[str, Any]:
        """One request; raises ProviderError."""

    def pages(
        self, shard: Shard, service: str, action: str, result_key: str, /, **parameters: Any
    ) -> Iterator[list[Any]]:
        """The list under `result_key` of every page; raises ProviderError."""
