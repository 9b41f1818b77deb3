"""What a cloud that sends mail answers, turned into what the outbox understands: wait, never, or try again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from costguard.domain.errors import (
    AccessDeniedError,
    InvalidInputError,
    NoticeError,
    ProviderError,
    RateLimitedError,
    RejectedNoticeError,
    ThrottledError,
)
from costguard.domain.refs import Shard

_WAIT = timedelta(minutes=1)  # rates are by the second, but others send too; no cloud says how long
_QUOTA_WAIT = timedelta(hours=1)  # of a day's quota: over twenty-four hours that move, or until midnight


@dataclass(frozen=True, slots=True)
class MailService:
    """One cloud's service: its name for people, its operation, and what its refusals mean.

    `rejected` are codes that the same mail will always meet, with what a person can do; every other refusal may pass.
    """

    name: str
    operation: str
    rejected: Mapping[str, str]
    fix_for: Callable[[ProviderError], str]

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Errors of the provider raised in here leave as those of a notice."""
        try:
            yield
        except InvalidInputError as err:
            text = f"{self.name} cannot be used: {err}"
            raise RejectedNoticeError(text) from err
        except ProviderError as err:
            raise self._notice_error(err) from err

    def _notice_error(self, err: ProviderError) -> NoticeError:
        text, fix = f"{self.name} did not take the mail: {err}", self.rejected.get(err.code, "")
        if isinstance(err, ThrottledError):
            wait = _QUOTA_WAIT if "quota" in str(err).lower() else _WAIT
            return RateLimitedError(text, retry_after=wait)
        if fix:
            return RejectedNoticeError(f"{text}; {fix}")
        fix = self.fix_for(err)
        if isinstance(err, AccessDeniedError) and err.operation == self.operation and fix.startswith("grant "):
            return RejectedNoticeError(f"{text}; {fix}")
        return NoticeError(f"{text}; {fix}" if fix else text)


def own_account(cloud: str) -> Shard:
    """Where mail is sent from: the account of our own credentials, in its home region."""
    return Shard(cloud, "")
