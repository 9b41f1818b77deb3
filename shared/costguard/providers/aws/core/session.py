"""One door to AWS: identity, accounts, and every request with its pacing, retries and errors."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from costguard.domain.errors import (
    AccessDeniedError,
    InvalidInputError,
    ProviderError,
    TruncatedReadError,
)
from costguard.domain.refs import Shard
from costguard.ports import CallCount, Target
from costguard.providers.aws.core import errors
from costguard.providers.aws.core.rates import RATES, family_of
from costguard.providers.aws.core.transport import Clients, WatchedGate, is_aws, new_session
from costguard.providers.aws.iam.permissions import REACH
from costguard.providers.kit.core.fields import account_id, as_documented, moment, named, part, text
from costguard.providers.kit.core.pacing import Pacer, pacer_for
from costguard.providers.kit.core.paging import by_token
from costguard.providers.kit.core.redaction import without_secrets
from costguard.providers.kit.core.retry import RetryPolicy
from costguard.providers.kit.iam.purposes import Purpose

HOME_REGIONS = {"aws": "us-east-1", "aws-cn": "cn-north-1", "aws-us-gov": "us-gov-west-1"}
"""Where account-wide questions are asked, by cloud; the clouds are named as AWS names its partitions."""

_WHO = "sts:GetCallerIdentity"
_OWN = ""  # the account key of the credentials we started with
_ROLE_SECONDS = 3600  # what role chaining allows at most


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the credentials are."""

    account: str
    arn: str
    partition: str


class AwsSession:
    """Credentials, clients and requests for one cloud (partition) of AWS; serves many threads.

    `may_change` False refuses, before anything leaves the process, whatever permissions.py does not list
    as reading; with `may_dry_run` it lets a change out that is sent with `DryRun=True`. `keys` are an access
    key id and its secret, None to look where the SDK does. `deadline` returns the seconds left; no wait goes
    past it. `mark` is what its role sessions are called, and in its user agent: see `domain/deployments.py`.
    """

    def __init__(
        self,
        *,
        cloud: str = "aws",
        profile: str = "",
        endpoint_url: str = "",
        may_change: bool = False,
        may_dry_run: bool = False,
        home_region: str = "",
        keys: tuple[str, str] | None = None,
        deadline: Callable[[], float] | None = None,
        pacer: Pacer | None = None,
        purpose: Purpose = Purpose.GUARD,
        mark: str = "",
    ) -> None:
        if cloud not in HOME_REGIONS:
            message = (
                f"{cloud!r} is not a partition of AWS that costguard knows; expected one of {', '.join(HOME_REGIONS)}"
            )
            raise InvalidInputError(message)
        self.cloud = cloud
        self.home_region = home_region or HOME_REGIONS[cloud]
        self.may_change = may_change
        self.may_dry_run = may_dry_run
        self.purpose = purpose
        self._operations = REACH[purpose]
        self._profile = profile
        self._endpoint_url = endpoint_url
        self._keys = keys
        self._deadline = deadline
        self._pacer = pacer or pacer_for(RATES, endpoint_url)
        self._patience = RetryPolicy(self._pacer, deadline, final=(errors.UNSUPPORTED, errors.NO_BILL_YET))
        self._gate = WatchedGate(self._operations, may_change=may_change, may_dry_run=may_dry_run)
        self.mark = mark or "costguard"
        self._clients = Clients(endpoint_url=endpoint_url, agent=self.mark)
        self._routes: dict[str, Target] = {}
        self._identity: Identity | None = None
        self._entering = threading.RLock()
        self._accounts: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def acting(self) -> AwsSession:
        """A session that may change things, for the same accounts, with credentials and connections of its own."""
        return self._twin(may_change=True)

    def dry_running(self) -> AwsSession:
        """A session that asks what it would be allowed to change and can change nothing; as `acting` otherwise."""
        return self._twin(may_dry_run=True)

    def only_for(self, purpose: Purpose, *, may_change: bool = True) -> AwsSession:
        """A session that knows this purpose's operations and no other; unless it `may_change`, it only reads."""
        return self._twin(purpose, may_change=may_change)

    def _twin(
        self, purpose: Purpose = Purpose.GUARD, *, may_change: bool = False, may_dry_run: bool = False
    ) -> AwsSession:
        twin = AwsSession(
            cloud=self.cloud,
            profile=self._profile,
            endpoint_url=self._endpoint_url,
            may_change=may_change,
            may_dry_run=may_dry_run,
            home_region=self.home_region,
            keys=self._keys,
            deadline=self._deadline,
            pacer=self._pacer,
            purpose=self.purpose.narrowed(purpose),
            mark=self.mark,
        )
        twin._routes = self._routes  # shared: accounts found later count as well
        return twin

    def identity(self) -> Identity:
        """Who we are, asked once: the first request of all.

        Raises:
            InvalidInputError: the credentials belong to another partition than this session's cloud.
            AccessDeniedError: no credentials, or AWS does not accept them.
        """
        with self._entering:
            if self._identity is None:
                self._open(_OWN, self._own_credentials())
                answer = self._send(_OWN, self.home_region, "sts", "GetCallerIdentity", {})
                with as_documented(_WHO):
                    account, arn = account_id(answer, "Account"), without_secrets(text(answer, "Arn"))
                partition = arn.split(":")[1] if arn.count(":") > 1 else ""
                if partition != self.cloud:
                    message = (
                        f"the credentials belong to partition {partition or 'unknown'} ({arn}), but the target's "
                        f"cloud is {self.cloud}; use other credentials, or set the target's cloud to {partition}"
                    )
                    raise InvalidInputError(message)
                self._identity = Identity(account=account, arn=arn, partition=partition)
            return self._identity

    def for_account(self, target: Target, account: str) -> None:
        """Make `account` readable: with our own credentials, or the target's role there.

        The role is an ARN, a name, or either with `{account}` in it.

        Raises:
            AccessDeniedError: no role to assume, it may not be assumed, or it leads to another account.
        """
        self._routes[account] = target
        self._enter(account)

    def call(self, shard: Shard, service: str, operation: str, /, **parameters: Any) -> dict[str, Any]:
        """One request (`call(shard, "ec2", "DescribeInstances", MaxResults=1000)`) and its answer.

        Reads are tried again on throttling and passing faults while time lasts; a change is sent once.
        An empty region means the home region.

        Raises:
            OutcomeUnknownError: a change was sent and its answer lost.
            ProviderError: another of its kinds, see domain/errors.py.
        """
        return self._send(self._enter(shard.account), shard.region or self.home_region, service, operation, parameters)

    def pages(
        self, shard: Shard, service: str, operation: str, result_key: str, /, **parameters: Any
    ) -> Iterator[list[Any]]:
        """The list under `result_key` of every page, one page at a time.

        Raises:
            TruncatedReadError: a page without that list, a token seen before, or pages without end.
        """
        api = f"{service}:{operation}"

        def ask(page: dict[str, str]) -> dict[str, Any]:
            return self.call(shard, service, operation, **{**parameters, **page})

        def items_in(answer: dict[str, Any]) -> list[Any]:
            items = answer.get(result_key)
            if not isinstance(items, list):
                message = f"{api}: answered without {result_key}: not as documented"
                raise TruncatedReadError(message, operation=api, code="MissingResult")
            return items

        yield from by_token(api, ask, items_in, lambda answer: text(answer, "NextToken"))

    def calls_made(self) -> Sequence[CallCount]:
        """Every operation this session sent, counted where requests leave the process."""
        return self._gate.calls_made()

    def close(self) -> None:
        """Close all connections."""
        self._clients.close()

    def _own_credentials(self) -> Any:
        """The keys given, or None: then botocore looks where it always does."""
        if self._keys is None:
            return None
        from botocore.credentials import Credentials

        return Credentials(*self._keys)

    def _open(self, key: str, credentials: Any) -> None:
        try:
            self._clients.add_session(key, new_session(self._gate, profile=self._profile, credentials=credentials))
        except errors.vendor_faults() as err:
            raise errors.translate(err, "sts:GetCallerIdentity", changes=False, sent=False) from err

    def _enter(self, account: str) -> str:
        """The key of the credentials for `account`, obtained if need be."""
        identity = self.identity()
        target = self._routes.get(account)
        own = account in (_OWN, identity.account)
        if own and (target is None or not target.own_role):
            return _OWN
        if self._clients.has_session(account):
            return account
        if target is None or not target.role:
            message = (
                f"the credentials belong to account {identity.account}, not {account}, "
                "and the target names no role to assume there"
            )
            raise AccessDeniedError(message, operation="sts:AssumeRole", code="NoRole")
        with self._entering:
            one_at_a_time = self._accounts[account]
        with one_at_a_time:
            if not self._clients.has_session(account):
                self._assume(target, account, identity)
        return account

    def _assume(self, target: Target, account: str, identity: Identity) -> None:
        role = target.role.replace("{account}", account)
        arn = role if role.startswith("arn:") else f"arn:{identity.partition}:iam::{account}:role/{role}"
        parameters = {"RoleArn": arn, "RoleSessionName": self.mark, "DurationSeconds": _ROLE_SECONDS}
        if target.external_id:
            parameters["ExternalId"] = target.external_id

        def fresh() -> dict[str, str]:
            answer = self._send(_OWN, self.home_region, "sts", "AssumeRole", parameters)
            with as_documented("sts:AssumeRole"):
                issued = part(answer, "Credentials")
                expires_at = moment(issued, "Expiration")
                return {
                    "access_key": named(issued, "AccessKeyId"),
                    "secret_key": named(issued, "SecretAccessKey"),
                    "token": named(issued, "SessionToken"),
                    "expiry_time": "" if expires_at is None else expires_at.isoformat(),
                }

        from botocore.credentials import RefreshableCredentials

        with as_documented("sts:AssumeRole"):
            credentials = RefreshableCredentials.create_from_metadata(
                metadata=fresh(), refresh_using=fresh, method="assume-role"
            )
        trial = f"{account}?"  # not yet the account's key: nothing else can be called with it
        self._open(trial, credentials)
        answer = self._send(trial, self.home_region, "sts", "GetCallerIdentity", {})
        with as_documented(_WHO):
            found = text(answer, "Account")
        if found != account:
            other = without_secrets(found) or "unknown"
            message = f"role {arn} leads to account {other}, not {account}: not used"
            raise AccessDeniedError(message, operation="sts:AssumeRole", code="WrongAccount")
        self._open(account, credentials)

    def _send(self, key: str, region: str, service: str, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        api = f"{service}:{operation}"
        dry_run = parameters.get("DryRun") is True
        self._gate.check(api, dry_run=dry_run)
        family = family_of(api, changes=self._operations[api].changes_something)
        changes = self._operations[api].changes_something and not dry_run
        return self._patience.ask(
            api,
            lambda: self._pacer.reserve(key, region, family),
            lambda: self._send_once(key, region, service, operation, parameters, changes=changes),
            changes=changes,
        )

    def _send_once(
        self, key: str, region: str, service: str, operation: str, parameters: dict[str, Any], *, changes: bool
    ) -> dict[str, Any]:
        from botocore import xform_name
        from botocore.exceptions import ProfileNotFound

        api = f"{service}:{operation}"
        self._gate.expect(api)
        stand_in = False
        try:
            client = self._clients.get(key, region, service)
            stand_in = not is_aws(client.meta.endpoint_url)
            answer: dict[str, Any] = getattr(client, xform_name(operation))(**parameters)
        except ProviderError:
            raise  # from the gate, or from renewing a role's credentials
        except ProfileNotFound as err:
            message = f"AWS_PROFILE: {err}; name one of the AWS configuration files, or unset it"
            raise InvalidInputError(message) from err
        except errors.vendor_faults() as err:
            sent = self._gate.was_sent(api)
            raise errors.translate(err, api, changes=changes, sent=sent, stand_in=stand_in) from err
        return answer
