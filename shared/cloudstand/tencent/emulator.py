"""The emulator: one loopback port for every product of the cloud."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from typing_extensions import Self

from cloudstand.tencent.core.actions import PRODUCTS, Action, Product
from cloudstand.tencent.core.asking import Asked
from cloudstand.tencent.core.credentials import Accounts
from cloudstand.tencent.core.errors import ApiError, denied
from cloudstand.tencent.core.memory import Memory
from cloudstand.tencent.core.parameters import checked, typed
from cloudstand.tencent.core.protocol import JSON, Heading, body_of, enveloped, heading_of, query_of
from cloudstand.tencent.core.settings import CardSeries, Settings
from cloudstand.tencent.iam.identity import regions_of
from cloudstand.tencent.iam.wishes import wish
from cloudstand.wire.authority import Authority
from cloudstand.wire.door import WorldDoor
from cloudstand.wire.faults import Fault, FaultKind, Faults
from cloudstand.wire.keys import Keys
from cloudstand.wire.limits import RateLimits
from cloudstand.wire.messages import Answer, Ending, Request
from cloudstand.wire.server import WireServer
from cloudstand.world.cloud import World
from cloudstand.world.fleet import made_up_request_id
from cloudstand.world.places import provider_of
from cloudstand.world.records import WorldRefusalError

_FREE = frozenset({"GetCallerIdentity"})  # asks for no permission
_UNDONE = (FaultKind.REFUSED, FaultKind.RESET, FaultKind.STALLED, FaultKind.NOT_JSON)


def _wall() -> datetime:
    return datetime.now(timezone.utc)


@dataclass(frozen=True, slots=True)
class Call:
    """One call whose signature was right, whatever came of it."""

    service: str
    action: str
    account: str
    region: str


class TencentEmulator:
    """Tencent Cloud over the world behind `door`; serves many threads until closed.

    Accounts are those of the fleet in this `cloud`, the first of which leads the organisation; `role` can be assumed
    in each, with `external_id` where one is set. `wall` is the clock that signatures are checked by: callers sign by
    the real one; tokens live by the world's. `rates` has burst and calls a second by action and limits each account
    in each region; None limits nothing, `settings.PUBLISHED_RATES` are the vendor's. `refuses_stop_charging` are
    instance types whose stop without charges is refused rather than ignored. `monitor_instances` and `monitor_points`
    bound one question to the monitor, and `monitor_cards` is what it tells of single cards.

    Attributes:
        faults: what shall go wrong on the wire.
        limits: how often calls were throttled.
        calls: every call that was rightly signed, in order.
        allowed: what each account's callers may do (`cvm:StopInstances`); who is absent may do everything.
        authorities: what policies let an identity do, by account and role (none: the user); who is absent needs none.
        desk: what is set about the bill, and the budgets of the console.
        policies: what is attached to parts of the organisation and to groups.
        key_desk: where KMS is offered and opened; its keys are the world's.
        network_desk: templates, and what else the world's networks do not say.
        trail: how the audit trail pages.
        server: what it is served through; `server.control` opens a door for tests in other languages.
    """

    def __init__(
        self,
        door: WorldDoor,
        *,
        external_id: str = "",
        role: str = "costguard",
        port: int | None = 0,
        latency_seconds: float = 0.0,
        rates: Mapping[str, tuple[float, float]] | None = None,
        wall: Callable[[], datetime] = _wall,
        cloud: str = "tencent",
        regions: Sequence[str] | None = None,
        monitor_instances: int = 10,
        monitor_points: int = 1_440,
        refuses_stop_charging: frozenset[str] = frozenset(),
        monitor_cards: CardSeries = CardSeries.DECLARED,
    ) -> None:
        with door.opened() as world:
            found = dict.fromkeys(spec.account for spec in world.fleet if spec.cloud == cloud)
        if provider_of(cloud) != "tencent" or not found:
            message = f"no machine of the fleet stands in {cloud}"
            raise ValueError(message)
        self._door = door
        self._wall = wall
        self._accounts = Accounts(tuple(found), role=role, external_id=external_id)
        self._memory = Memory()
        self._settings = Settings(
            cloud, role, monitor_instances, monitor_points, refuses_stop_charging, regions, monitor_cards
        )
        self._numbers = itertools.count(1)
        self.faults = Faults()
        self.limits = RateLimits(rates or {})
        self.calls: list[Call] = []
        self.allowed: dict[str, set[str]] = {}
        self.authorities: dict[tuple[str, str], Authority] = {}
        self.desk = self._memory.desk
        self.policies = self._memory.policies
        self.key_desk = self._memory.keys
        self.network_desk = self._memory.networks
        self.trail = self._memory.trail
        self.server = WireServer(self._answer, port=port, latency_seconds=latency_seconds, cloud=cloud)
        self.server.now = door.clock.now

    @property
    def url(self) -> str:
        """Where it listens: the endpoint of every product."""
        return self.server.url

    @property
    def keys(self) -> Keys:
        """The key of the organisation's management account."""
        return self.keys_of(self._accounts.management)

    def keys_of(self, account: str) -> Keys:
        """The key of an account."""
        return self._accounts.keys_of(account)

    @property
    def monitor_cards(self) -> CardSeries:
        """What the monitor tells of single cards from now on."""
        return self._settings.monitor_cards

    @monitor_cards.setter
    def monitor_cards(self, told: CardSeries) -> None:
        self._settings = replace(self._settings, monitor_cards=told)

    @property
    def requests(self) -> int:
        """How many requests arrived, signed or not."""
        return self.server.requests

    def close(self) -> None:
        """Stop serving; may be repeated."""
        self.server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, request: Request) -> Answer:
        request_id = made_up_request_id("request", str(next(self._numbers)))
        language = request.headers.get("x-tc-language", "zh-CN")
        try:
            heading = heading_of(request, self._accounts, self._wall(), self._door.clock.now())
        except ApiError as err:
            return _failed(request_id, err, language)
        account = heading.identity.account
        self.calls.append(Call(heading.service, heading.action, account, heading.region))
        fault = self.faults.take(heading.action, account, heading.region)
        if fault is not None and fault.kind in _UNDONE:
            return _undone(request_id, fault, language)
        try:
            fields = self._done(request, heading, request_id, language)
            answer = Answer(200, enveloped(fields.pop("RequestId", request_id), fields), JSON)
        except ApiError as err:
            answer = _failed(request_id, err, language)
        return answer if fault is None else _spoiled(answer, fault)

    def _done(self, request: Request, heading: Heading, request_id: str, language: str) -> dict[str, Any]:
        product, action = _action(heading)
        service, name, account = heading.service, heading.action, heading.identity.account
        if not self.limits.allow(name, account, heading.region):
            raise ApiError(product.throttled, f"{name} is asked too often.", "请求的次数超过了频率限制。")
        permission = f"{product.cam or service}:{name}"
        if permission not in self.allowed.get(account, {permission}):
            raise _denial(product, heading)
        given = typed(action.parameters, query_of(request)) if request.method == "GET" else body_of(request)
        checked(action.parameters, given)
        with self._door.opened() as world:
            if not self._may(heading, permission, given, world):
                raise _denial(product, heading)
            asked = Asked(
                heading.identity,
                heading.region,
                given,
                language,
                request_id,
                world,
                self._accounts,
                self._memory,
                self._settings,
                request.headers.get("x-tc-requestclient", ""),
            )
            _check_region(asked, action)
            try:
                if action.operation is not None:
                    world.require(self._settings.cloud, account, action.operation)
            except WorldRefusalError as err:
                raise _denial(product, heading) from err
            if action.part and not world.networks.may(self._settings.cloud, account, action.part):
                raise _denial(product, heading)
            return dict(action.answer(asked))

    def _may(self, heading: Heading, permission: str, given: Mapping[str, Any], world: World) -> bool:
        """Whether policies let the caller, where any are enforced."""
        caller = heading.identity
        authority = self.authorities.get((caller.account, caller.role))
        if authority is None or heading.action in _FREE:
            return True
        return authority.allows(wish(permission, heading.region, caller, given, world))


def _action(heading: Heading) -> tuple[Product, Action]:
    product = PRODUCTS.get(heading.service)
    if product is None:
        raise ApiError("NoSuchProduct", f"there is no product {heading.service}.", "产品不存在。")
    if heading.version != product.version:
        raise ApiError("NoSuchVersion", f"{heading.service} has no version {heading.version}.", "接口版本不存在。")
    action = product.actions.get(heading.action)
    if action is None:
        raise ApiError("InvalidAction", f"there is no action {heading.action}.", "接口不存在。")
    return product, action


def _check_region(asked: Asked, action: Action) -> None:
    if not action.regional:
        return
    if not asked.region:
        raise ApiError(
            "MissingParameter", "The request is missing a required parameter `Region`.", "缺少参数`Region`。"
        )
    if not regions_of(asked).get(asked.region, ("", "", False))[2]:
        raise ApiError("UnsupportedRegion", f"{asked.region} is not supported.", "接口不支持所传地域。")


def _denial(product: Product, heading: Heading) -> ApiError:
    resource = f"qcs::{heading.service}:{heading.region}:uin/{heading.identity.account}:*"
    return denied(product.denied, product.cam or heading.service, heading.action, resource)


def _failed(request_id: str, err: ApiError, language: str) -> Answer:
    """An error: with status 200, as every answer."""
    return Answer(200, enveloped(request_id, {"Error": err.told(language)}), JSON)


def _undone(request_id: str, fault: Fault, language: str) -> Answer:
    if fault.kind is FaultKind.REFUSED:
        answer = _failed(request_id, ApiError(fault.code or "InternalError", "as was asked for"), language)
        return replace(answer, status=fault.status or 200)
    if fault.kind is FaultKind.RESET:
        return Answer(200, b"", ending=Ending.RESET)
    if fault.kind is FaultKind.STALLED:
        return Answer(200, b"{}", ending=Ending.STALLED)
    return Answer(200, b"<html><body>502 Bad Gateway</body></html>", JSON)


def _spoiled(answer: Answer, fault: Fault) -> Answer:
    if fault.kind is FaultKind.LOST_ANSWER:
        return replace(answer, ending=Ending.RESET)
    if fault.kind is FaultKind.TRUNCATED:
        return replace(answer, ending=Ending.TRUNCATED)
    return replace(answer, content_type=f"{JSON}; charset=utf-8")
