"""How requests leave for Alibaba Cloud: over TLS, by gate, counted, tried again or not; and what comes of answers."""

from __future__ import annotations

import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from aliyunsdkcore.request import CommonRequest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.contract.alibaba_world import (
    MINUTE,
    NOW,
    AlibabaStandIn,
    AlibabaWorld,
    Relay,
    alibaba_stand_in,
    alibaba_world,
    patient_pacer,
)
from tests.world_ports.translate import to_product

from cloudstand.alibaba.emulator import AlibabaEmulator
from cloudstand.clock import MovedClock
from cloudstand.fleets import ALIBABA_ACCOUNT, HANGZHOU, alibaba_machine
from cloudstand.wire.door import WorldDoor
from cloudstand.wire.faults import FaultKind
from cloudstand.world import workload as does
from cloudstand.world.cloud import World as Clouds
from costguard.domain.errors import (
    AccessDeniedError,
    InvalidInputError,
    OutcomeUnknownError,
    ProviderError,
    RefusedError,
    ThrottledError,
    TruncatedReadError,
    UnavailableError,
)
from costguard.domain.refs import Shard
from costguard.domain.resources import GapKind
from costguard.ports import Target
from costguard.providers.alibaba.compute.executor import AlibabaExecutor
from costguard.providers.alibaba.core.errors import gap
from costguard.providers.alibaba.core.session import AlibabaSession, discover
from costguard.providers.alibaba.core.transport import Question, Transport, WireError
from costguard.providers.alibaba.iam.permissions import OPERATIONS
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.kit.core.gate import Gate

MEMBER = "1098765432109876"
SHARD = Shard("alibaba", ALIBABA_ACCOUNT, HANGZHOU)
KEYS = Keys("LTAI5tMadeUpMadeUpMadeUp", "made-up-secret-of-thirty-letters")
TEMPORARY = Keys("STS.MadeUpMadeUpMadeUp", "another-made-up-secret-of-letters", "CAISmadeUpTokenMadeUp")

CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("StopInstances", {"InstanceId": ["i-1"]}),
    ("DeleteInstances", {"InstanceId": ["i-1"]}),
    ("StartInstances", {"InstanceId": ["i-1"]}),
    ("CreateSnapshot", {"DiskId": "d-1"}),
]


@pytest.fixture(scope="module")
def stand_in() -> Iterator[AlibabaStandIn]:
    with alibaba_stand_in() as made:
        yield made


@pytest.fixture
def world(stand_in: AlibabaStandIn) -> Iterator[AlibabaWorld]:
    with alibaba_world(stand_in) as made:
        made.session.identity()
        made.emulator.calls.clear()
        yield made


def keys_of(world: AlibabaWorld) -> Keys:
    return to_product(world.emulator.keys_of(world.shard.account))


def count(world: AlibabaWorld, action: str) -> int:
    return sum(asked.get("Action") == action for asked in world.relay.asked)


@pytest.mark.parametrize(("operation", "parameters"), CHANGES)
@pytest.mark.parametrize("more", [{}, {"DryRun": True}])
def test_a_read_only_session_lets_no_change_out(
    world: AlibabaWorld, operation: str, parameters: dict[str, Any], more: dict[str, bool]
) -> None:
    with pytest.raises(AccessDeniedError, match="read-only here"):
        world.session.call(world.shard, "ecs", operation, **parameters, **more)

    assert count(world, operation) == 0


@pytest.mark.parametrize(("operation", "parameters"), CHANGES)
@pytest.mark.parametrize("more", [{}, {"DryRun": False}])
def test_a_dry_running_session_lets_only_dry_runs_out(
    world: AlibabaWorld, operation: str, parameters: dict[str, Any], more: dict[str, bool]
) -> None:
    session = world.session.dry_running()
    with pytest.raises(AccessDeniedError, match="read-only here"):
        session.call(world.shard, "ecs", operation, **parameters, **more)
    session.close()

    assert count(world, operation) == 0


def test_not_even_the_sdks_own_client_lets_a_change_out(world: AlibabaWorld) -> None:
    """The gate stands in the adapter that writes to the socket, so no way round `call` exists."""
    client = world.session._transport._client(keys_of(world))  # noqa: SLF001 - the way round, on purpose
    for operation, code in (("StopInstances", AccessDeniedError), ("DescribeInstances", WireError)):
        request = CommonRequest(world.relay.url, "2014-05-26", operation)
        request.add_query_param("InstanceId.1", "i-1")
        with pytest.raises(code):
            client.do_action_with_exception(request)

    assert world.emulator.calls == []


def test_an_operation_nobody_listed_leaves_no_session(world: AlibabaWorld) -> None:
    for session in (world.session, world.acting):
        with pytest.raises(AccessDeniedError, match="not among the operations"):
            session.call(world.shard, "ecs", "RunInstances", ImageId="x")

    assert count(world, "RunInstances") == 0


def test_every_request_is_counted_retries_too(world: AlibabaWorld) -> None:
    world.fault(FaultKind.REFUSED, "DescribeInstances", times=2, code="Throttling", status=400)
    world.session.call(world.shard, "ecs", "DescribeInstances")

    counted = {one.operation: one for one in world.session.calls_made()}

    assert counted["ecs:DescribeInstances"].calls == count(world, "DescribeInstances") == 3
    assert not any(one.changes_something for one in counted.values())


@pytest.mark.parametrize(
    ("kind", "code", "status"),
    [
        (FaultKind.REFUSED, "Throttling.User", 400),
        (FaultKind.REFUSED, "InternalError", 500),
        (FaultKind.REFUSED, "ServiceUnavailable", 503),
        (FaultKind.RESET, "", 0),
        (FaultKind.LOST_ANSWER, "", 0),
        (FaultKind.NOT_JSON, "", 0),
    ],
)
def test_a_read_that_failed_in_passing_is_asked_again(
    world: AlibabaWorld, kind: FaultKind, code: str, status: int
) -> None:
    world.fault(kind, "DescribeInstances", times=2, code=code, status=status)

    world.session.call(world.shard, "ecs", "DescribeInstances")

    assert count(world, "DescribeInstances") == 3


def test_a_read_that_stays_throttled_ends(world: AlibabaWorld) -> None:
    world.fault(FaultKind.REFUSED, "DescribeInstances", code="Throttling", status=400)

    with pytest.raises(ThrottledError) as caught:
        world.session.call(world.shard, "ecs", "DescribeInstances")

    assert count(world, "DescribeInstances") == 8
    assert gap(world.shard, "inventory", caught.value).kind is GapKind.THROTTLED


def test_an_answer_labelled_as_something_else_is_judged_by_what_is_in_it(world: AlibabaWorld) -> None:
    world.fault(FaultKind.WRONG_TYPE, "DescribeInstances", times=1)

    assert world.session.call(world.shard, "ecs", "DescribeInstances")["RequestId"]


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (500, "InternalError", OutcomeUnknownError),
        (503, "ServiceUnavailable", OutcomeUnknownError),
        (400, "Throttling.User", ThrottledError),
        (403, "IncorrectInstanceStatus", RefusedError),
        (403, "Forbidden.RAM", AccessDeniedError),
        (400, "SignatureNonceUsed", OutcomeUnknownError),
    ],
)
def test_a_change_is_sent_once_whatever_comes_back(
    world: AlibabaWorld, status: int, code: str, error: type[ProviderError]
) -> None:
    world.fault(FaultKind.REFUSED, "StopInstances", code=code, status=status)

    with pytest.raises(error) as caught:
        world.acting.call(world.shard, "ecs", "StopInstances", InstanceId=["i-1"])

    assert type(caught.value) is error
    assert (caught.value.operation, caught.value.code) == ("ecs:StopInstances", code)
    assert count(world, "StopInstances") == 1


@pytest.mark.parametrize("kind", [FaultKind.RESET, FaultKind.LOST_ANSWER, FaultKind.TRUNCATED, FaultKind.NOT_JSON])
def test_a_change_without_a_whole_answer_is_an_unknown_outcome(world: AlibabaWorld, kind: FaultKind) -> None:
    native_id = world.launch()
    world.fault(kind, "StopInstances")

    with pytest.raises(OutcomeUnknownError):
        world.acting.call(world.shard, "ecs", "StopInstances", InstanceId=[native_id])

    assert count(world, "StopInstances") == 1


def test_what_cannot_be_written_down_is_never_sent(world: AlibabaWorld) -> None:
    """An empty list of ids could be read as all of them."""
    with pytest.raises(RefusedError, match="not sent"):
        world.acting.call(world.shard, "ecs", "StopInstances", InstanceId=[])

    assert count(world, "StopInstances") == 0


def test_nobody_listening_is_unavailable_for_reads_and_changes_alike(world: AlibabaWorld) -> None:
    working = world.acting
    working.identity()
    working._endpoint = "http://127.0.0.1:1"  # noqa: SLF001 - nobody listens there
    for operation in ("DescribeInstances", "StopInstances"):
        with pytest.raises(UnavailableError):
            working.call(world.shard, "ecs", operation)


def test_no_credentials_is_a_denial_that_says_what_to_do() -> None:
    session = AlibabaSession(keys=None, now=lambda: NOW)
    with pytest.raises(AccessDeniedError) as caught:
        session.identity()

    assert "provide valid Alibaba Cloud credentials" in gap(Shard("alibaba", ""), "accounts", caught.value).fix


def test_a_wrong_secret_is_a_denial_without_the_signature_in_it(world: AlibabaWorld) -> None:
    ours = keys_of(world)
    session = AlibabaSession(
        keys=Keys(ours.key_id, "wrong"), endpoint=world.relay.url, pacer=patient_pacer(), now=lambda: NOW
    )
    with pytest.raises(AccessDeniedError, match="SignatureDoesNotMatch") as caught:
        session.identity()
    session.close()

    assert ours.key_id not in str(caught.value)


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://ecs.cn-hangzhou.aliyuncs.com",
        "http://10.0.0.1:8080",
        "http://127.0.0.1.example:80",
        "ftp://127.0.0.1",
        "127.0.0.1:80",
        "https://user:word@127.0.0.1",
        "https://127.0.0.1/path",
        "https://127.0.0.1?x=1",
        "http://127.0.0.1:notaport",
    ],
)
def test_only_a_stand_in_on_this_machine_may_be_asked_in_the_clear(endpoint: str) -> None:
    with pytest.raises(InvalidInputError):
        AlibabaSession(keys=KEYS, endpoint=endpoint, now=lambda: NOW)


def test_an_unknown_cloud_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="alibaba-moon"):
        AlibabaSession(cloud="alibaba-moon", keys=KEYS, now=lambda: NOW)


@pytest.mark.parametrize("region", ["cn-wulanchabu", "ap-southeast-7", "na-south-1", "me-central-1"])
def test_regions_the_sdk_does_not_know_are_asked_over_tls_at_their_own_address(region: str) -> None:
    session = AlibabaSession(keys=KEYS, now=lambda: NOW)

    question = session._question(region, "ecs", "DescribeInstances", {})  # noqa: SLF001 - what would be sent

    assert question.domain == f"https://ecs.{region}.aliyuncs.com"
    assert question.parameters["RegionId"] == region


def transport() -> Transport:
    return Transport(Gate(OPERATIONS, may_change=True))


def asking(
    domain: str, action: str = "GetCallerIdentity", version: str = "2015-04-01", service: str = "sts"
) -> Question:
    return Question(f"{service}:{action}", version, domain, {"RegionId": HANGZHOU})


def test_what_would_leave_in_the_clear_is_stopped_at_the_last_moment() -> None:
    sending = transport()
    with pytest.raises(WireError, match="NotEncrypted") as caught:
        sending.send(KEYS, asking("http://sts.aliyuncs.com"), seconds=1)
    sending.close()

    assert not caught.value.sent


@pytest.mark.parametrize("keys", [KEYS, TEMPORARY])
def test_keys_in_the_environment_never_replace_ours(
    world: AlibabaWorld, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK prefers those variables to a token it is given, in silence: changes would go to another account."""
    monkeypatch.setenv("ALIYUN_ACCESS_KEY_ID", "LTAI5tOfSomebodyElse")
    monkeypatch.setenv("ALIYUN_ACCESS_KEY_SECRET", "somebody-elses")
    sending = transport()
    sending.send(keys, asking(world.relay.url), seconds=5)
    sending.close()

    asked = world.relay.asked[-1]
    assert (asked["AccessKeyId"], asked.get("SecurityToken", "")) == (keys.key_id, keys.token)


def test_a_request_signed_with_other_keys_does_not_leave(world: AlibabaWorld) -> None:
    sending = transport()
    sending._clients[KEYS] = sending._new_client(TEMPORARY)  # noqa: SLF001 - as a mixed-up SDK would
    before = world.requests()
    with pytest.raises(WireError, match="WrongKey"):
        sending.send(KEYS, asking(world.relay.url), seconds=5)
    sending.close()

    assert world.requests() == before


def test_a_proxy_of_the_environment_does_not_stand_before_this_machine(
    world: AlibabaWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    assert world.session.call(world.shard, "ecs", "DescribeRegions")["RequestId"]


def test_neither_logs_nor_errors_tell_a_secret(
    world: AlibabaWorld,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DEBUG", "sdk")
    told = ""
    with caplog.at_level(logging.DEBUG):
        sending = transport()
        sending.send(TEMPORARY, asking(world.relay.url), seconds=5)
        with pytest.raises(WireError) as caught:
            sending.send(TEMPORARY, asking("http://127.0.0.1:1"), seconds=5)
        sending.close()
        told = f"{caught.value!r} {caught.value.__cause__!r} {caught.value.__context__ is None}"
    captured = capsys.readouterr()
    everything = f"{told}{caplog.text}{captured.out}{captured.err}"

    assert caught.value.__suppress_context__
    for secret in (TEMPORARY.key_id, TEMPORARY.token, TEMPORARY.secret, "Signature="):
        assert secret not in everything


def test_pages_end_when_a_token_comes_back(world: AlibabaWorld) -> None:
    world.go_wrong("list", "repeated page")

    with pytest.raises(TruncatedReadError, match="same page token"):
        list(world.session.pages(world.shard, "ecs", "DescribeInstances", "Instances.Instance", MaxResults=100))


def test_no_wait_goes_past_the_deadline(world: AlibabaWorld) -> None:
    left = iter([60.0, 60.0, 0.01])
    session = AlibabaSession(
        keys=keys_of(world),
        endpoint=world.relay.url,
        pacer=patient_pacer(),
        deadline=lambda: next(left, 0.0),
        now=lambda: NOW,
    )
    world.fault(FaultKind.REFUSED, "GetCallerIdentity", code="Throttling", status=400)
    before = count(world, "GetCallerIdentity")

    with pytest.raises(ThrottledError):
        session.identity()
    with pytest.raises(UnavailableError) as caught:
        session.identity()
    session.close()

    assert count(world, "GetCallerIdentity") == before + 1
    assert gap(world.shard, "inventory", caught.value).kind is GapKind.DEADLINE


def test_threads_share_a_client_and_each_asks_its_own_region(world: AlibabaWorld) -> None:
    world.launch()
    assert world.inventory.read(world.shard).complete
    regions = [HANGZHOU, "cn-beijing", "cn-shanghai", HANGZHOU] * 3

    def seen(region: str) -> int:
        shard = Shard("alibaba", world.shard.account, region)
        return sum(len(page) for page in world.session.pages(shard, "ecs", "DescribeInstances", "Instances.Instance"))

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(seen, regions))

    assert found == [1 if region == HANGZHOU else 0 for region in regions]


# members of an organisation


class Organisation:
    """Two accounts; the member is entered by a role that asks for an external id."""

    def __init__(self, *, external_id: str = "sesame") -> None:
        self.clock = MovedClock(NOW)
        fleet = [
            alibaba_machine("mine", does.idle(), NOW - timedelta(days=1)),
            alibaba_machine("theirs", does.idle(), NOW - timedelta(days=1), account=MEMBER),
        ]
        self.emulator = AlibabaEmulator(WorldDoor(Clouds(fleet, NOW), self.clock), external_id=external_id)
        self.relay = Relay(self.emulator.url)
        self.session = self.session_at(self.clock.now)

    def session_at(self, now: Callable[[], datetime]) -> AlibabaSession:
        return AlibabaSession(
            keys=to_product(self.emulator.keys), endpoint=self.relay.url, pacer=patient_pacer(), now=now
        )

    def target(self, account: str = MEMBER, **more: Any) -> Target:
        fields = {"regions": (HANGZHOU,), "role": "costguard", "external_id": "sesame", **more}
        return Target("alibaba", account, **fields)

    def assumed(self) -> int:
        return sum(asked.get("Action") == "AssumeRole" for asked in self.relay.asked)

    def close(self) -> None:
        self.session.close()
        self.relay.close()
        self.emulator.close()


@pytest.fixture
def organisation() -> Iterator[Organisation]:
    made = Organisation()
    try:
        yield made
    finally:
        made.close()


def ids(session: AlibabaSession, account: str) -> list[str]:
    shard = Shard("alibaba", account, HANGZHOU)
    pages = session.pages(shard, "ecs", "DescribeInstances", "Instances.Instance")
    return [item["InstanceName"] for page in pages for item in page]


def test_a_member_is_read_by_role_and_the_leader_with_its_own_keys(organisation: Organisation) -> None:
    found = discover(organisation.session, organisation.target("", organisation=True))

    assert [shard.account for shard in found.shards] == sorted([ALIBABA_ACCOUNT, MEMBER])
    assert found.gaps == ()
    assert ids(organisation.session, MEMBER) == ["theirs"]
    assert ids(organisation.session, ALIBABA_ACCOUNT) == ["mine"]
    assert organisation.assumed() == 1


@pytest.mark.parametrize(
    ("more", "kind"), [({"external_id": "wrong"}, GapKind.DENIED), ({"role": "nobody"}, GapKind.UNREADABLE)]
)
def test_a_member_that_cannot_be_entered_is_a_gap_with_what_to_do(
    organisation: Organisation, more: dict[str, str], kind: GapKind
) -> None:
    found = discover(organisation.session, organisation.target(**more))

    assert found.shards == ()
    (gap_,) = found.gaps
    assert (gap_.what, gap_.kind, gap_.shard.account) == ("accounts", kind, MEMBER)
    assert "external id" in gap_.fix


def test_a_role_that_leads_to_another_account_is_not_used(organisation: Organisation) -> None:
    organisation.session.identity()
    organisation.relay.changes["GetCallerIdentity"] = lambda answer: {**answer, "AccountId": "1111111111111111"}

    with pytest.raises(AccessDeniedError, match="leads to account 1111111111111111"):
        organisation.session.for_account(organisation.target(), MEMBER)
    with pytest.raises(AccessDeniedError, match="leads to account"):
        ids(organisation.session, MEMBER)


def test_a_roles_keys_are_renewed_before_they_end(organisation: Organisation) -> None:
    organisation.session.for_account(organisation.target(), MEMBER)
    organisation.clock.advance(49 * MINUTE)
    ids(organisation.session, MEMBER)
    assert organisation.assumed() == 1
    organisation.clock.advance(2 * MINUTE)
    ids(organisation.session, MEMBER)

    assert organisation.assumed() == 2


def test_keys_that_ended_early_are_renewed_once_for_a_read_and_never_for_a_change(organisation: Organisation) -> None:
    """Our clock stands still, so nothing here knows that they have ended."""
    session = organisation.session_at(lambda: NOW)
    acting = session.acting()
    for one in (session, acting):
        one.for_account(organisation.target(), MEMBER)
    organisation.clock.advance(timedelta(hours=2))

    assert ids(session, MEMBER) == ["theirs"]
    with pytest.raises(AccessDeniedError, match="Expired"):
        acting.call(Shard("alibaba", MEMBER, HANGZHOU), "ecs", "StopInstances", InstanceId=["i-1"])
    assert sum(asked.get("Action") == "StopInstances" for asked in organisation.relay.asked) == 1
    session.close()
    acting.close()


def test_another_account_without_a_role_is_not_entered(organisation: Organisation) -> None:
    with pytest.raises(AccessDeniedError, match="names no role"):
        organisation.session.for_account(organisation.target(role=""), MEMBER)


def test_an_acting_twin_knows_the_accounts_its_reader_found(organisation: Organisation) -> None:
    discover(organisation.session, organisation.target())
    twin = organisation.session.acting()

    assert ids(twin, MEMBER) == ["theirs"]
    twin.close()


def test_an_executor_needs_a_session_made_for_acting(organisation: Organisation) -> None:
    with pytest.raises(InvalidInputError, match="read-only"):
        AlibabaExecutor(organisation.session)


# the wire itself


@contextmanager
def serving(answer: Callable[[Any], None], wrap: Callable[[socket.socket], Any] = lambda raw: raw) -> Iterator[str]:
    """A server that reads one request a connection and answers with bytes of its own."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                raw, _ = listening.accept()
            except OSError:
                return
            try:
                with wrap(raw) as connection:
                    connection.recv(65536)
                    answer(connection)
            except OSError:
                raw.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


GOOD = b'{"RequestId":"R"}'


def whole(connection: Any) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(GOOD), GOOD))


def test_an_answer_that_drips_ends_when_its_time_is_up() -> None:
    """Each part comes in time; the SDK would wait for as long as they keep coming."""
    done = threading.Event()

    def drip(connection: Any) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not done.wait(0.02):
            connection.sendall(b" ")

    with serving(drip) as place:
        sending = transport()
        with pytest.raises(WireError, match="TooSlow") as caught:
            sending.send(KEYS, asking(f"http://{place}"), seconds=0.2)
        done.set()
        sending.close()

    assert caught.value.sent


@pytest.mark.parametrize(
    "told",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + GOOD,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11\r\n" + GOOD + b"\r\n20\r\nx",
        b"",
        b"nonsense\r\n\r\n",
    ],
)
def test_an_answer_cut_short_is_no_answer(told: bytes) -> None:
    """The SDK takes what came for the whole; here even a part that reads as JSON does not count."""
    with serving(lambda connection: connection.sendall(told)) as place:
        sending = transport()
        with pytest.raises(WireError) as caught:
            sending.send(KEYS, asking(f"http://{place}"), seconds=5)
        sending.close()

    assert caught.value.sent


def test_silence_is_waited_for_no_longer_than_allowed() -> None:
    done = threading.Event()

    def say_nothing(_: Any) -> None:
        done.wait(5)

    with serving(say_nothing) as place:
        sending = transport()
        with pytest.raises(WireError, match="ReadTimeout") as caught:
            sending.send(KEYS, asking(f"http://{place}"), seconds=5, silence=0.1)
        done.set()
        sending.close()

    assert caught.value.sent


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of this machine, signed by nobody known."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "stand-in")])
    now = datetime.now(timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


def over_tls(certificate: Path, named: list[str | None] | None = None) -> Callable[[socket.socket], Any]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def note(_: object, name: str | None, __: object) -> None:
        if named is not None:
            named.append(name)

    context.sni_callback = note
    return lambda raw: context.wrap_socket(raw, server_side=True)


def test_a_server_nobody_vouches_for_is_told_nothing(certificate: Path) -> None:
    with serving(whole, over_tls(certificate)) as place:
        sending = transport()
        with pytest.raises(WireError, match="CERTIFICATE_VERIFY_FAILED") as caught:
            sending.send_apart(KEYS, asking(f"https://{place}"), seconds=5)
        sending.close()

    assert not caught.value.sent


def test_a_server_of_another_name_is_told_nothing(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALIBABA_CLOUD_CA_BUNDLE", str(certificate))
    with serving(whole, over_tls(certificate)) as place:
        sending = transport()
        with pytest.raises(WireError, match="IP address mismatch") as caught:
            sending.send(KEYS, asking(f"https://{place}"), seconds=5)
        sending.close()

    assert not caught.value.sent


def test_the_server_is_named_and_a_bundle_named_by_its_variable_is_trusted(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway in front of many names needs to be told which: the SDK's own library no longer tells it."""
    monkeypatch.setenv("ALIBABA_CLOUD_CA_BUNDLE", str(certificate))
    named: list[str | None] = []
    with serving(whole, over_tls(certificate, named)) as place:
        sending = transport()
        answer = sending.send(KEYS, asking(f"https://{place.replace('127.0.0.1', 'localhost')}"), seconds=5)
        sending.close()

    assert answer.body == GOOD
    assert named == ["localhost"]
