"""Robots of chat groups: which there are, by the setting COSTGUARD_ROBOTS, and how one is spoken to.

A robot's hook is a secret in itself: whoever knows it can write to the group. It is in no error, receipt or repr.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

from costguard.adapters.notifiers.outward import OutwardAddress, Resolve, Response, judged, place_of, post, resolved
from costguard.adapters.notifiers.plain import must_hold
from costguard.adapters.notifiers.robots.layout import Laid, Sheet, laid_out, room_for
from costguard.adapters.notifiers.router import visible
from costguard.domain.errors import InvalidInputError, NoticeError, RateLimitedError, RejectedNoticeError
from costguard.ports import Delivery, Message

if TYPE_CHECKING:
    import ssl

    from costguard.adapters.notifiers.plain import Link

SETTING = "COSTGUARD_ROBOTS"
_NAME = re.compile(r"(?P<kind>feishu|dingtalk|wecom):[a-z0-9][a-z0-9-]{0,39}")
_TOKEN = r"[A-Za-z0-9_-]{8,128}"  # noqa: S105 - a pattern
_SECRET = re.compile(r"[!-~]{8,200}", re.ASCII)
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_MOST_ROBOTS = 200
_LONGEST_SETTING = 64 * 1024
_MOST_BYTES = 64 * 1024  # of an answer; real ones have a hundred
_LONGEST_WORDS = 200
_LONGEST_CODE = 20
_OK, _TOO_MANY = 200, 429
_RETRY = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class _Form:
    """What the hook of one vendor looks like, and whether its robots may have a secret to sign with."""

    hosts: frozenset[str]
    target: re.Pattern[str]
    example: str
    signs: bool


_FORMS: Mapping[str, _Form] = {
    "feishu": _Form(
        frozenset({"open.feishu.cn", "open.larksuite.com"}),
        re.compile(rf"/open-apis/bot/v2/hook/{_TOKEN}"),
        "https://open.feishu.cn/open-apis/bot/v2/hook/… or https://open.larksuite.com/open-apis/bot/v2/hook/…",
        signs=True,
    ),
    "dingtalk": _Form(
        frozenset({"oapi.dingtalk.com"}),
        re.compile(rf"/robot/send\?access_token={_TOKEN}"),
        "https://oapi.dingtalk.com/robot/send?access_token=…",
        signs=True,
    ),
    "wecom": _Form(
        frozenset({"qyapi.weixin.qq.com"}),
        re.compile(rf"/cgi-bin/webhook/send\?key={_TOKEN}"),
        "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=…",
        signs=False,
    ),
}
KINDS = tuple(_FORMS)


@dataclass(frozen=True, slots=True)
class Robot:
    """One robot, by the address that a policy names it with. Without a `secret` nothing is signed."""

    address: str
    place: OutwardAddress = field(repr=False)
    secret: str = field(default="", repr=False)

    @property
    def kind(self) -> str:
        """Its vendor: `feishu`, `dingtalk` or `wecom`."""
        return self.address.partition(":")[0]

    @property
    def unsigned(self) -> bool:
        """Whether its vendor can check signatures and it has no secret to make them."""
        return _FORMS[self.kind].signs and not self.secret

    def cleaned(self, words: str) -> str:
        """What a vendor said, on one line, without the secrets it may repeat."""
        said = visible(words)
        for secret in (self.secret, self.place.target, re.split("[/=]", self.place.target)[-1]):
            said = said.replace(secret, "***") if secret else said
        return said[:_LONGEST_WORDS]


def read_robots(text: str, *, private: bool) -> Mapping[str, Robot]:
    """The robots by address; none where `text` is empty. With `private` stand-ins on this machine are robots too.

    Raises:
        InvalidInputError: names every entry that is wrong, and what is expected; repeats no hook and no secret.
    """
    robots, problems = look_at_robots(text, private=private)
    if problems:
        raise InvalidInputError("; ".join(problem for _, problem in problems))
    return robots


def look_at_robots(text: str, *, private: bool) -> tuple[Mapping[str, Robot], Sequence[tuple[str, str]]]:
    """The robots that are right, and of each entry that is not its address and what is wrong."""
    if not text:
        return {}, ()
    try:
        document = json.loads(text, object_pairs_hook=_once) if len(text) <= _LONGEST_SETTING else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or len(document) > _MOST_ROBOTS:
        return {}, [
            ("", f'{SETTING} is no JSON object of robots, each once; expected {{"feishu:research": {{"hook": "…"}}}}')
        ]
    robots: dict[str, Robot] = {}
    problems: list[tuple[str, str]] = []
    for number, (name, entry) in enumerate(document.items(), start=1):
        known = _NAME.fullmatch(name)
        if known is None:  # it may be a hook in the wrong place
            expected = "expected feishu:NAME, dingtalk:NAME or wecom:NAME, of small letters, digits and -"
            problems.append((f"entry {number}", f"{SETTING}: the name of entry {number} is no robot's; {expected}"))
            continue
        wrong = _wrong_entry(known["kind"], entry)
        place = None if wrong else _place(known["kind"], entry["hook"], private=private)
        if place is None:
            wrong = wrong or f"hook is not of the form {_FORMS[known['kind']].example}"
            problems.append((name, f"{SETTING}: {name}: {wrong}"))
        else:
            robots[name] = Robot(name, place, entry.get("secret", ""))
    return robots, problems


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _wrong_entry(kind: str, entry: object) -> str:
    if not isinstance(entry, dict) or not entry.keys() <= {"hook", "secret"} or not isinstance(entry.get("hook"), str):
        return 'expected an object with the key "hook"' + (' and perhaps "secret"' if _FORMS[kind].signs else "")
    if "secret" not in entry:
        return ""
    if not _FORMS[kind].signs:
        return "its vendor knows no secret; leave it out"
    secret = entry["secret"]
    good = isinstance(secret, str) and _SECRET.fullmatch(secret)
    return "" if good else "secret is not what the robot's page shows: 8 to 200 letters, digits and signs"


def _place(kind: str, hook: str, *, private: bool) -> OutwardAddress | None:
    form = _FORMS[kind]
    try:
        place = place_of(hook, private=private)
    except RejectedNoticeError:
        return None
    vendors = place.tls and place.host in form.hosts and place.port == 443  # noqa: PLR2004 - of https
    here = private and place.host in _LOOPBACK
    return place if (vendors or here) and form.target.fullmatch(place.target) else None


class RobotVendor(Protocol):
    """How one vendor's robots are spoken to: its markup, its signature, its answers."""

    name: str
    sheet: Sheet

    def document(self, laid: Laid) -> dict[str, Any]:
        """What is posted, without a signature."""

    def signed(self, target: str, document: dict[str, Any], secret: str, now: datetime) -> tuple[str, dict[str, Any]]:
        """Path and query, and document, with the signature where the vendor looks for it."""

    def refusal(self, answer: Mapping[str, Any], robot: str, said: Callable[[str], str]) -> NoticeError | None:
        """What a vendor's JSON answer says went wrong; None only for the documented code of success.

        `robot` is what errors call it, `said` cleans the vendor's own words.
        """


class RobotNotifier:
    """A `Notifier` for addresses like `research`, the name of a robot of one vendor.

    `now` dates signatures, `link` makes the addresses of Keep links, `language` is that of the robot's own few words.
    `private` lets a robot's host be of one's own network. `resolve` and `tls` stand in for this system's resolver and
    certificates.
    """

    def __init__(
        self,
        vendor: RobotVendor,
        robots: Mapping[str, Robot],
        *,
        now: Callable[[], datetime],
        link: Link | None = None,
        language: str = "en",
        private: bool = False,
        timeout: timedelta = timedelta(seconds=15),
        resolve: Resolve = resolved,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._vendor = vendor
        self._robots = {address.partition(":")[2]: robot for address, robot in robots.items()}
        self._now = now
        self._link = link
        self._language = language
        self._private = private
        self._timeout = timeout
        self._resolve = resolve
        self._tls = tls

    def send(self, message: Message) -> Delivery:
        """Post now, once. Only the documented code of success is the vendor's word that the group has it.

        One whose answer is lost may have arrived: sent again, the group sees it twice, as robots know no keys.
        """
        robot = self._robot(message.channel)
        must_hold(message, self.capacity(message))
        laid = laid_out(message, robot.address, self._vendor.sheet, self._link, self._language)
        target, document = self._vendor.signed(
            robot.place.target, self._vendor.document(laid), robot.secret, self._now()
        )
        body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        addresses = judged(robot.place, self._resolve, private=self._private)
        place = OutwardAddress(robot.place.tls, robot.place.host, robot.place.port, target, robot.place.shown)
        headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "costguard"}
        answer = post(place, addresses, body, headers, timeout=self._timeout, tls=self._tls, most=_MOST_BYTES)
        self._judge(robot, answer)
        key = sha256(message.notice_id.encode() if message.notice_id else body).hexdigest()[:32]
        return Delivery(f"{robot.address}:{key}")

    def edit(self, receipt: str, message: Message) -> bool:  # noqa: ARG002 - what was sent stays as it is
        """Nothing can be changed there."""
        return False

    def capacity(self, message: Message) -> int:
        """How many of the first parts fit into one message whole; at least one, which may be cut."""
        robot = self._robots.get(message.channel)
        address = robot.address if robot is not None else message.channel
        return room_for(message, address, self._vendor.sheet, self._link)

    def _robot(self, name: str) -> Robot:
        robot = self._robots.get(name)
        if robot is None:
            known = ", ".join(sorted(self._robots)) or "none"
            text = f"no {self._vendor.name} robot is called {name[:100]!a}; {SETTING} knows: {known}"
            raise RejectedNoticeError(text)
        return robot

    def _judge(self, robot: Robot, answer: Response) -> None:
        """Return only if the vendor took the message."""
        called = f"the {self._vendor.name} robot {robot.address}"
        said = _object(answer.body)
        refusal = self._vendor.refusal(said, called, robot.cleaned) if said is not None else None
        if refusal is not None:
            raise refusal
        if answer.status == _TOO_MANY:
            text = f"{called} answers 429 and is asked again in {_RETRY.total_seconds():.0f} s"
            raise RateLimitedError(text, retry_after=_RETRY)
        if said is None or answer.status != _OK:
            text = f"{called} answers {answer.status} without its vendor's code of success; that proves no delivery"
            raise NoticeError(text)


def _object(body: bytes) -> dict[str, Any] | None:
    """The JSON object that an answer is; None where it is anything else."""
    try:
        found = json.loads(body.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


@dataclass(frozen=True, slots=True)
class Codes:
    """What a vendor's codes mean: those to wait for, and those refused for good with what a person can do."""

    product: str
    waits: Mapping[int, timedelta]
    fixes: Mapping[int, str]

    def refusal(self, code: object, words: str, robot: str) -> NoticeError | None:
        """The error for `code`; None for 0 alone, which is success."""
        if type(code) is not int or len(str(code)) > _LONGEST_CODE:  # True is no code, and neither is "0"
            return NoticeError(f"{robot} answers without a code; that proves no delivery")
        if code == 0:
            return None
        wait = self.waits.get(code)
        if wait is not None:
            text = f"{robot} is asked to wait {wait.total_seconds():.0f} s: {code} {words}"
            return RateLimitedError(text, retry_after=wait)
        if code in self.fixes:
            return RejectedNoticeError(f"{self.product} refuses {robot}: {code} {words}; {self.fixes[code]}")
        return NoticeError(f"{self.product} did not take the message of {robot}: {code} {words}")
