"""Every error Costguard raises, and what its caller does with it.

CostguardError
├── InvalidInputError        tell the user file, line, field and the fix; change nothing
│   └── StalePlanError       the plan no longer matches the world: refuse, say why, plan again
├── ProviderError            a cloud or metrics backend did not answer as documented
│   ├── AccessDeniedError    record a gap (reading) or hold the case (acting); name the permission
│   │   └── DeniedByOrganisationError   a policy of the organisation denies it: the same, but no grant helps
│   ├── ClosedRegionError    the organisation denies everything in the region: like one not opted in, no gap
│   ├── ThrottledError       retried within the deadline by the transport; then a gap
│   ├── NotFoundError        the resource is gone: close its case as vanished
│   ├── RefusedError         the cloud refused for a stated reason: hold the case with it
│   │   └── NoCapacityError  it has no room for the machine now: a start is tried again by a later run
│   ├── TruncatedReadError   pages ended early or repeated: a gap, never a short list
│   ├── UnavailableError     network or server fault on a read, or before anything was sent: a gap
│   └── OutcomeUnknownError  the call may have taken effect: describe before anything else
├── LedgerError              durable memory failed: stop acting at once
│   ├── VersionConflictError another run was first: re-read, decide anew
│   └── NewerSchemaError     written by a newer Costguard: refuse to touch it
└── NoticeError              a message did not arrive: harm waits
    ├── RateLimitedError     try again after `retry_after`
    └── RejectedNoticeError  the channel will never take it: dead letter, shown to people
"""

from __future__ import annotations

from datetime import timedelta


class CostguardError(Exception):
    """Base of every error this program raises on purpose."""


class InvalidInputError(CostguardError):
    """Something a person or machine handed in is wrong; nothing was changed.

    The message is complete for a reader: where (file:line:column, field), what was found,
    what was expected, what to do.
    """


class StalePlanError(InvalidInputError):
    """A saved plan no longer describes the world, the policy or the ledger."""


class ProviderError(CostguardError):
    """A cloud or metrics backend answered with an error, or not as documented.

    `operation` is the vendor's call (`ec2:DescribeInstances`), `code` the vendor's own error code.
    """

    def __init__(self, message: str, *, operation: str = "", code: str = "") -> None:
        super().__init__(message)
        self.operation = operation
        self.code = code


class AccessDeniedError(ProviderError):
    """The credentials lack a permission; `operation` names it."""


class DeniedByOrganisationError(AccessDeniedError):
    """A policy of the organisation denies it to everybody in the account, whatever their roles are granted."""


class ClosedRegionError(ProviderError):
    """The organisation denies whatever is asked in a region: nothing was read there, and nothing is known of it."""


class ThrottledError(ProviderError):
    """The cloud asked us to slow down until the time allowed was used up."""


class NotFoundError(ProviderError):
    """The resource does not exist (any more)."""


class RefusedError(ProviderError):
    """The cloud understood and refused: wrong state, protected, unsupported."""


class NoCapacityError(RefusedError):
    """The cloud has no room for a machine of this type there now; nothing changed, and later it may have."""


class TruncatedReadError(ProviderError):
    """A paged answer ended early, repeated a token, or contradicted its own count."""


class UnavailableError(ProviderError):
    """Nothing usable came back and nothing can have been changed."""


class OutcomeUnknownError(ProviderError):
    """A changing call was sent and its answer lost: it may have taken effect."""


class LedgerError(CostguardError):
    """The ledger could not be read or written."""


class VersionConflictError(LedgerError):
    """The record changed since it was read."""


class NewerSchemaError(LedgerError):
    """The record was written by a newer Costguard than this one."""


class NoticeError(CostguardError):
    """A message was not delivered."""


class RateLimitedError(NoticeError):
    """The channel asks to wait `retry_after` before the next message."""

    def __init__(self, message: str, *, retry_after: timedelta) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RejectedNoticeError(NoticeError):
    """The channel refuses this message or these credentials for good."""
