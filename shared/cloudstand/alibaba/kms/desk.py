"""What a test sets up about keys that the world does not know: who has KMS, and whose keys are kept from whom."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class KeyDesk:
    """What a test sets up.

    `unopened` are accounts that never opened KMS, `not_offered` regions that have none: there the real cloud has no
    address, which a fault of the wire must play. `hidden` are keys that may not be described, by id. `quotas` is how
    many versions the keys of an instance may have together, by its id; one without a row has room for all.
    `page` is the most that any list gives at once. `secrets` are kept texts, or bytes, by account, region and name.
    """

    unopened: set[str] = field(default_factory=set)
    not_offered: set[str] = field(default_factory=set)
    hidden: set[str] = field(default_factory=set)
    quotas: dict[str, int] = field(default_factory=dict)
    page: int = 200
    secrets: dict[tuple[str, str, str], str | bytes] = field(default_factory=dict)
