"""The emulator: Alibaba Cloud over one world, at one address on loopback, for any SDK that signs in the RPC style."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from threading import Lock
from typing import Any
from urllib.parse import quote

from typing_extensions import Self, assert_never

from cloudstand.alibaba.billing.bills import BillDesk
from cloudstand.alibaba.compute.changes import dry_run
from cloudstand.alibaba.core.actions import ACTIONS, Action, Denial
from cloudstand.alibaba.core.credentials import Credential
from cloudstand.alibaba.core.errors import (
    BAD_REQUEST,
    FORBIDDEN,
    NOT_FOUND,
    ApiError,
    RefusedInBody,
    by_code,
    missing,
    not_modelled,
)
from cloudstand.alibaba.core.protocol import Verifier, parameters_of
from cloudstand.alibaba.core.site import ApiCall, Call, SentMail, site_of
from cloudstand.alibaba.iam.desk import PolicyDesk
from cloudstand.alibaba.iam.wishes import wishes
from cloudstand.alibaba.kms.desk import KeyDesk
from cloudstand.alibaba.network.desk import NetworkDesk
from cloudstand.alibaba.tables import PRODUCTS, TABLES
from cloudstand.wire.authority import Authority
from cloudstand.wire.door import WorldDoor
from cloudstand.wire.faults import Fault, FaultKind, Faults
from cloudstand.wire.keys import Keys
from cloudstand.wire.limits import RateLimits
from cloudstand.wire.messages import Answer, Ending, Request
from cloudstand.wire.server import WireServer
from cloudstand.world.cloud import World
from cloudstand.world.trail import TrailDesk

JSON = "application/json;charset=utf-8"
_PROXY_PAGE = b"<html><head><title>502 Bad Gateway</title></head><body>Bad Gateway</body></html>"
_HOSTS = {
    "sts": "sts.aliyuncs.com",
    "resourcedirectory": "resourcedirectory.aliyuncs.com",
    "dm": "dm.aliyuncs.com",
    "bss": "business.aliyuncs.com",
    "ram": "ram.aliyuncs.com",
    "vpcpeer": "vpcpeer.aliyuncs.com",
}
_REGIONAL = {"ecs": "ecs", "vpc": "vpc", "cms": "metrics", "kms": "kms", "actiontrail": "actiontrail"}


def _wall() -> datetime:
    return datetime.now(timezone.utc)


class AlibabaEmulator:
    """Serves the machines of one cloud of a world from threads of its own until closed.

    Attributes:
        url: where every product answers.
        faults: what goes wrong on the way, on request.
        calls: every believed request in order.
        limits: how often it lets itself be asked; without `rates` as often as anybody likes.
        server: what it listens with; its `control` opens `/_sandbox/` to tests in other languages.
        allowed: RAM actions (`ecs:StopInstances`) by account; an account without a row may do everything.

    `wall` is what signatures are timed by: the real time, wherever the world's clock stands. `forbids_lists` is told
    in `Site`.
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
        cloud: str = "alibaba",
        forbids_lists: bool = False,
        wall: Callable[[], datetime] = _wall,
    ) -> None:
        self._door = door
        with door.opened() as world:
            self._site = site_of(world, cloud, role=role, external_id=external_id, forbids_lists=forbids_lists)
        self._verifier = Verifier(self._site.credentials, wall)
        self._lock = Lock()
        self.faults = Faults()
        self.limits = RateLimits(rates or {})
        self.calls: list[Call] = []
        self.server = WireServer(self._answer, port=port, latency_seconds=latency_seconds, cloud=cloud)
        self.server.now = door.clock.now

    @property
    def url(self) -> str:
        """Where every product answers."""
        return self.server.url

    @property
    def keys(self) -> Keys:
        """The access key of a RAM user of the organisation's management account."""
        return self.keys_of(self._site.accounts[0])

    def keys_of(self, account: str) -> Keys:
        """The access key of a RAM user of this account.

        Raises:
            KeyError: there is no such account.
        """
        return self._site.credentials.user(account).keys

    @property
    def accounts(self) -> tuple[str, ...]:
        """The accounts of the organisation; the first leads it."""
        return self._site.accounts

    @property
    def allowed(self) -> dict[str, set[str]]:
        """What the identities of an account may do."""
        return self._site.allowed

    @property
    def authorities(self) -> dict[tuple[str, str], Authority]:
        """What policies let an identity do, by account and role (none: the user); who has no row needs none."""
        return self._site.authorities

    @property
    def mails(self) -> list[SentMail]:
        """What DirectMail took, in order."""
        return self._site.mails

    @property
    def bills(self) -> BillDesk:
        """What a test may set up about bills and the console's budgets."""
        return self._site.bills

    @property
    def policies(self) -> PolicyDesk:
        """What a test may set up about control policies and those of groups, and what came of it."""
        return self._site.policies

    @property
    def kms(self) -> KeyDesk:
        """What a test may set up about keys beyond those of the world."""
        return self._site.kms

    @property
    def networks(self) -> NetworkDesk:
        """What a test may set up about networks beyond those of the world."""
        return self._site.networks

    @property
    def trail(self) -> TrailDesk:
        """What a test may set up about the audit trail."""
        return self._site.trail

    def close(self) -> None:
        """Stop serving; may be repeated."""
        self.server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, request: Request) -> Answer:
        request_id = self._site.next_request_id()
        try:
            parameters = parameters_of(request)
            product = _product(parameters)
            caller = self._verifier.verify(request.method, parameters, self._door.clock.now())
            known = _known(product, parameters["Action"])
        except ApiError as err:
            return _error(err, "aliyuncs.com", request_id)
        asked = Call(product, parameters["Action"], caller.account, parameters.get("RegionId", ""))
        with self._lock:
            self.calls.append(asked)
        fault = self.faults.take(asked.action, asked.account, asked.region)
        if fault is not None and fault.kind in _NOTHING_DONE:
            return _faulty(fault, _host(asked), request_id)
        agent = request.headers.get("user-agent", "")
        return _ended(self._asked(asked, known, caller, parameters, request_id, agent), fault)

    def _asked(
        self,
        asked: Call,
        known: Action,
        caller: Credential,
        parameters: Mapping[str, str],
        request_id: str,
        agent: str,
    ) -> Answer:
        try:
            if not self.limits.allow(asked.action, asked.account, "" if known.per_account else asked.region):
                raise by_code("Rejected.Throttling" if asked.service == "kms" else "Throttling.User")
            checked = TABLES[asked.service, asked.action].read(parameters)
            call = ApiCall(self._site, caller, asked.service, asked.action, asked.region, checked, agent)
            with self._door.opened() as world:
                body = {**_answered(call, known, world), "RequestId": request_id}
        except RefusedInBody as err:
            body = {"Code": err.code, "Message": err.message, "Success": False, "RequestId": request_id}
        except ApiError as err:
            return _error(err, _host(asked), request_id)
        return Answer(200, _encoded(body), JSON)


def _faulty(fault: Fault, host: str, request_id: str) -> Answer:
    if fault.kind is FaultKind.REFUSED:
        return _error(by_code(fault.code or "Throttling.User", fault.status), host, request_id)
    if fault.kind is FaultKind.NOT_JSON:
        return Answer(502, _PROXY_PAGE, "text/html")
    ending = Ending.RESET if fault.kind is FaultKind.RESET else Ending.STALLED
    return Answer(200, _encoded({"RequestId": request_id}), JSON, ending=ending)


_NOTHING_DONE = (FaultKind.REFUSED, FaultKind.RESET, FaultKind.STALLED, FaultKind.NOT_JSON)


def _answered(call: ApiCall, action: Action, world: World) -> Mapping[str, Any]:
    """The body of the answer, once the caller's permission and region are seen to."""
    is_dry_run = action.dry_run and call.asked.flag("DryRun")
    if not _permitted(call, action, world):
        if action.when_denied is None or is_dry_run or call.site.forbids_lists:
            raise _denied(call, action)
        return action.when_denied(call, world)
    if call.service in ("ecs", "vpc", "vpcpeer") and call.region not in call.site.regions:
        raise ApiError("InvalidRegionId.NotFound", "The specified RegionId does not exist.", NOT_FOUND)
    if is_dry_run:
        raise dry_run()
    return action.handler(call, world)


def _permitted(call: ApiCall, action: Action, world: World) -> bool:
    allowed = call.site.allowed.get(call.account)
    if action.permissions and allowed is not None and not allowed.intersection(action.permissions):
        return False
    authority = call.site.authorities.get((call.account, call.caller.role))
    if authority is not None and action.permissions and not authority.allows(*wishes(call, action.permissions, world)):
        return False
    if action.part and not world.networks.may(call.site.cloud, call.account, action.part):
        return False
    return action.operation is None or world.may(call.site.cloud, call.account, action.operation)


def _denied(call: ApiCall, action: Action) -> ApiError:
    detail = {
        "AuthAction": action.permissions[0] if action.permissions else f"{call.service}:{call.action}",
        "AuthPrincipalType": "AssumedRoleUser" if call.caller.role else "SubUser",
        "AuthPrincipalOwnerId": call.account,
        "AuthPrincipalDisplayName": call.caller.arn.rpartition(":")[2],
        "PolicyType": "AccountLevelIdentityBasedPolicy",
        "NoPermissionType": "ImplicitDeny",
    }
    if action.denial in (Denial.FORBIDDEN, Denial.EMPTY):
        message = "User not authorized to operate on the specified resource, or this API doesn't support RAM."
        return ApiError("Forbidden.RAM", message, FORBIDDEN, denied=detail)
    if action.denial is Denial.NO_PERMISSION:
        message = "You are not authorized to do this action. You should be authorized by RAM."
        return ApiError("NoPermission", message, FORBIDDEN, denied=detail)
    if action.denial is Denial.NO_KEY_PERMISSION:
        message = "This operation is forbidden by permission system."
        return ApiError("Forbidden.NoPermission", message, FORBIDDEN, denied=detail)
    if action.denial is Denial.ACCESS_FORBIDDEN:
        message = "User not authorized to operate on the specified resource."
        return ApiError("AccessForbidden", message, FORBIDDEN)
    if action.denial is Denial.NOT_AUTHORIZED:
        return RefusedInBody("NotAuthorized", "This API is not authorized for caller.")
    assert_never(action.denial)


def _product(parameters: Mapping[str, str]) -> str:
    for name in ("Action", "Version"):
        if not parameters.get(name):
            raise missing(name)
    product = PRODUCTS.get(parameters["Version"])
    if product is None:
        raise ApiError("InvalidVersion", "Specified parameter Version is not valid.", BAD_REQUEST)
    return product


def _known(product: str, name: str) -> Action:
    action = ACTIONS.get((product, name))
    if action is None:
        raise not_modelled("the action", name)
    return action


def _host(asked: Call) -> str:
    return _HOSTS.get(asked.service) or f"{_REGIONAL[asked.service]}.{asked.region}.aliyuncs.com"


def _ended(answer: Answer, fault: Fault | None) -> Answer:
    """What was done, and what of the answer arrives."""
    if fault is None:
        return answer
    if fault.kind is FaultKind.LOST_ANSWER:
        return Answer(answer.status, answer.body, answer.content_type, ending=Ending.RESET)
    if fault.kind is FaultKind.TRUNCATED:
        return Answer(answer.status, answer.body, answer.content_type, ending=Ending.TRUNCATED)
    return Answer(answer.status, answer.body, "text/plain;charset=utf-8")


def _error(err: ApiError, host: str, request_id: str) -> Answer:
    body: dict[str, Any] = {
        "RequestId": request_id,
        "HostId": host,
        "Code": err.code,
        "Message": err.message,
        "Recommend": f"https://api.aliyun.com/troubleshoot?q={quote(err.code, safe='')}&requestId={request_id}",
    }
    if err.denied is not None:
        body["AccessDeniedDetail"] = err.denied
    return Answer(err.status, _encoded(body), JSON)


def _encoded(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
