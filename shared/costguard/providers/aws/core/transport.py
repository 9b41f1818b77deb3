"""SDK sessions and clients, and the gate through which every request leaves the process."""

from __future__ import annotations

import functools
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from copy import copy
from datetime import datetime, timezone
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from costguard.providers.aws.iam.permissions import KNOWN_OPERATIONS, OPERATIONS
from costguard.providers.kit.core.gate import Gate
from costguard.providers.kit.core.pacing import on_this_machine
from costguard.providers.kit.iam.permissions import Operation

# Reading AWS's timestamps quickly. botocore tries `float()`, then hands every string to dateutil: 17 to 28 µs a
# point, which is most of the client CPU of a metrics read. The forms AWS sends are few; anything else goes to
# botocore's own.

_ISO_MILLISECONDS = 24  # 2026-01-02T03:04:05.678Z
_PLAIN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z", re.ASCII)


def parse_timestamp(value: Any) -> datetime:
    """`value` as an aware UTC datetime.

    Raises:
        ValueError: no form that botocore knows either.
        RuntimeError: a number no calendar reaches.
    """
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        micros = int(value[20:23]) * 1000 if len(value) == _ISO_MILLISECONDS else 0
        return datetime(
            int(value[0:4]),
            int(value[5:7]),
            int(value[8:10]),
            int(value[11:13]),
            int(value[14:16]),
            int(value[17:19]),
            micros,
            tzinfo=timezone.utc,
        )
    if isinstance(value, (int, float)):
        try:
            return datetime.fromtimestamp(value, timezone.utc)
        except (OSError, OverflowError, ValueError):
            pass  # botocore has a way round platform limits
    from botocore.utils import parse_timestamp as slow

    moment: datetime = slow(value)
    # a time without zone is UTC in every AWS API; botocore leaves it naive
    return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment.astimezone(timezone.utc)


_CONNECT_SECONDS = 5
_READ_SECONDS = 30
_AWS_HOSTS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws", ".api.amazonwebservices.com.cn")
_MOST_CLIENTS = 64  # a kept client costs about 1.3 MB; 17 regions of 100 accounts would be 2 GB


_OF_THE_SDK = frozenset({"sts", "sso", "sso-oidc", "signin"})
"""Services that credential providers of the SDK call for themselves."""


@functools.lru_cache(maxsize=1)
def _loader() -> Any:
    """The API models, read once a process: 17 sessions take 0.9 s and 82 MB with it, 4.7 s and 269 MB without.

    A client gets a method for every operation of its model: EC2 has 830, and we may call 33 of them.
    """
    from botocore.loaders import Loader

    class OurPart(Loader):
        """Models of the operations in permissions.py alone, of the services named there."""

        def __init__(self) -> None:
            super().__init__()
            self._narrowed: dict[tuple[str, str | None], Any] = {}

        def load_service_model(self, service_name: str, type_name: str, api_version: str | None = None) -> Any:
            model = super().load_service_model(service_name, type_name, api_version)
            if type_name != "service-2" or service_name in _OF_THE_SDK:
                return model
            key = (service_name, api_version)
            if key not in self._narrowed:
                self._narrowed[key] = _narrowed(service_name, model)
            return self._narrowed[key]

    return OurPart()


def _narrowed(service: str, model: Mapping[str, Any]) -> Mapping[str, Any]:
    """`model` with the operations of this service that may be called; whole where the table names none."""
    ours = {name.partition(":")[2] for name in KNOWN_OPERATIONS if name.startswith(f"{service}:")}
    if not ours:
        return model
    return {**model, "operations": {name: told for name, told in model["operations"].items() if name in ours}}


@functools.lru_cache(maxsize=1)
def _handlers() -> Any:
    """The SDK's own event handlers, to be copied: each of the 127 is looked at when it is registered, 8 ms in all."""
    from botocore.hooks import HierarchicalEmitter
    from botocore.session import Session

    registered = HierarchicalEmitter()
    Session(event_hooks=registered)
    return registered


def is_aws(endpoint_url: str) -> bool:
    """Whether requests go to AWS itself, not to a stand-in that the user or AWS_ENDPOINT_URL names."""
    return (urlsplit(endpoint_url).hostname or "").endswith(_AWS_HOSTS)


class WatchedGate(Gate):
    """A gate that stands before every request of botocore sessions."""

    def __init__(
        self, operations: Mapping[str, Operation] = OPERATIONS, *, may_change: bool, may_dry_run: bool = False
    ) -> None:
        super().__init__(operations, may_change=may_change, may_dry_run=may_dry_run)

    def watch(self, botocore_session: Any) -> None:
        """Stand before every client of this session, those of its credential providers included."""
        botocore_session.register("before-call", self._before_call)
        botocore_session.register("before-send", self._before_send)

    def _before_call(self, event_name: str, params: Any = None, **_: Any) -> None:
        body = params.get("body") if isinstance(params, Mapping) else None
        self.check(_operation(event_name), dry_run=_asks_for_a_dry_run(body))

    def _before_send(self, event_name: str, request: Any = None, **_: Any) -> None:
        name, dry_run = _operation(event_name), _asks_for_a_dry_run(getattr(request, "body", None))
        self.check(name, dry_run=dry_run)
        self.sending(name, dry_run=dry_run)


# events go by the service's id, everything else by its client's name
_CLIENTS = {"cost-explorer": "ce", "secrets-manager": "secretsmanager"}


def _operation(event_name: str) -> str:
    _, service, operation = event_name.split(".", 2)  # before-send.ec2.DescribeInstances
    return f"{_CLIENTS.get(service, service)}:{operation}"


def _asks_for_a_dry_run(body: Any) -> bool:
    """Whether the form that leaves says `DryRun=true`, once and in no other way; anything unreadable does not."""
    if isinstance(body, Mapping):
        return body.get("DryRun") == "true"
    if isinstance(body, (bytes, bytearray)):
        body = body.decode("latin1")
    if not isinstance(body, str):
        return False
    return [value for name, value in parse_qsl(body, keep_blank_values=True) if name == "DryRun"] == ["true"]


def new_session(gate: WatchedGate, *, profile: str = "", credentials: Any = None) -> Any:
    """A botocore session behind `gate`, with the shared models and the quick timestamp parser."""
    import botocore.session

    session: Any = botocore.session.Session(
        profile=profile or None, event_hooks=copy(_handlers()), include_builtin_handlers=False
    )
    session.register_component("data_loader", _loader())
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=parse_timestamp)
    # the old global STS endpoint issues tokens that opt-in regions refuse
    session.set_config_variable("sts_regional_endpoints", "regional")
    if credentials is not None:
        session._credentials = credentials  # noqa: SLF001 - what boto3 and botocore's own examples do
    session.register("before-parse.ec2", _legal_xml)
    gate.watch(session)
    return session


_ILLEGAL_IN_XML = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")


def _legal_xml(response_dict: dict[str, Any], **_: Any) -> None:
    """One tag with a raw control character must not make a whole page unreadable; it becomes U+FFFD."""
    body = response_dict.get("body")
    if isinstance(body, bytes) and _ILLEGAL_IN_XML.search(body):
        response_dict["body"] = _ILLEGAL_IN_XML.sub("\N{REPLACEMENT CHARACTER}".encode(), body)


class Clients:
    """Clients by (account, region, service), built one at a time, the least recently used dropped first."""

    def __init__(self, *, endpoint_url: str = "", agent: str = "costguard") -> None:
        self._endpoint_url = endpoint_url or None
        self._agent = agent
        self._kept: OrderedDict[tuple[str, str, str], Any] = OrderedDict()
        self._sessions: dict[str, Any] = {}
        self._lock = threading.Lock()

    def add_session(self, account: str, botocore_session: Any) -> None:
        """Use `botocore_session` for `account` from now on.

        boto3 would add resources and transfers of S3, which nobody here uses, for 10 MB and a third of its import.
        """
        with self._lock:
            self._sessions[account] = botocore_session

    def has_session(self, account: str) -> bool:
        """Whether `account` has credentials here."""
        with self._lock:
            return account in self._sessions

    def get(self, account: str, region: str, service: str) -> Any:
        """The client, built on first use. Building is not safe from several threads, so it waits its turn."""
        key = (account, region, service)
        with self._lock:
            client = self._kept.get(key)
            if client is None:
                client = self._sessions[account].create_client(
                    service,
                    region_name=region,
                    endpoint_url=self._endpoint_url,
                    config=_config(self._agent, direct=on_this_machine(self._endpoint_url)),
                )
                self._kept[key] = client
                if len(self._kept) > _MOST_CLIENTS:
                    self._kept.popitem(last=False)  # not closed: another thread may be reading with it
            else:
                self._kept.move_to_end(key)
            return client

    def close(self) -> None:
        """Close every connection; clients are built anew if asked for again."""
        with self._lock:
            kept = list(self._kept.values())
            self._kept.clear()
        for client in kept:
            client.close()


@functools.lru_cache(maxsize=4)
def _config(agent: str, *, direct: bool) -> Any:
    """`agent` is our part of the user agent.

    `direct` leaves proxies of the environment out: a stand-in on this machine is not behind one.
    """
    from botocore.config import Config

    return Config(
        # one try: what may be tried again, and when, is decided in session.py
        retries={"mode": "standard", "total_max_attempts": 1},
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        max_pool_connections=16,
        tcp_keepalive=True,
        user_agent_extra=agent,
        proxies={} if direct else None,
    )
