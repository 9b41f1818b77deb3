"""The authorization of Prometheus goes to the hosts that the settings name for it, and nowhere else."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.builders import NOW, instance
from tests.contract.loopback_tls import serving_tls, trusting, write_certificate
from tests.unit.test_prometheus_http import answering

from cloudstand.clock import MovedClock
from costguard.adapters.signal_sources.combined import CombinedSignals, RefusedSignals
from costguard.adapters.signal_sources.http import HttpEndpoint
from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.program import Program
from costguard.connections.prometheus import prometheus_signals, refusal
from costguard.domain.errors import AccessDeniedError, InvalidInputError, UnavailableError
from costguard.domain.resources import GapKind
from costguard.domain.signals import SignalName
from costguard.policy.model.policy import Prometheus
from costguard.settings import Secret, Settings, load_settings

TOKEN = "Bearer canary-0123456789"
EMPTY = b'{"status":"success","data":{"resultType":"vector","result":[]}}'
OK = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(EMPTY), EMPTY)
MACHINE = instance("i-0123456789abcdef0")


def bound(*hosts: str) -> Settings:
    return replace(Settings(), prometheus_authorization=Secret(TOKEN), prometheus_hosts=hosts)


@pytest.fixture
def unbound() -> Iterator[str]:
    """The address of a real server that nobody may reach: nothing has connected to it in the end."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.setblocking(False)  # noqa: FBT003 - as socket has it
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_host_that_is_not_bound_is_not_asked_and_leaves_a_gap(unbound: str) -> None:
    """Neither with the token nor without it: half an answer could call a busy machine idle."""
    settings = bound("prometheus.example.com:9090")
    source = prometheus_signals(settings, Prometheus(unbound), (SignalName.GPU,))
    report = CombinedSignals([source]).read([MACHINE], NOW - timedelta(hours=1), NOW)
    assert report.readings == {}
    (gap,) = report.gaps
    assert gap.kind is GapKind.DENIED
    assert "COSTGUARD_PROMETHEUS_HOSTS does not name" in gap.detail
    assert unbound.removeprefix("http://") in gap.fix
    assert "canary" not in str(gap)


def test_a_bound_host_is_sent_the_token() -> None:
    received: list[bytes] = []
    with answering(OK, received) as url:
        post = HttpEndpoint(url, authorization=TOKEN).post_form
        assert post("/api/v1/query", {"query": "up"}).status == 200
    assert TOKEN.encode() in received[0]
    host = url.removeprefix("http://").partition("/")[0]
    assert refusal(bound(host), Prometheus(url)) is None


@pytest.mark.parametrize(
    ("hosts", "url"),
    [
        (("prometheus.example.com",), "https://prometheus.example.com:9090"),
        (("prometheus.example.com:9090",), "https://prometheus.example.com"),
        (("example.com",), "https://prometheus.example.com"),
        (("prometheus.example.com",), "https://prometheus.example.com.evil.example"),
        (("prometheus.example.com",), "https://prometheus.example.com."),
        (("[::1]:9090",), "https://[::2]:9090"),
    ],
)
def test_a_host_is_bound_with_its_port_and_whole(hosts: tuple[str, ...], url: str) -> None:
    settings = bound(*hosts)
    assert isinstance(prometheus_signals(settings, Prometheus(url), ()), RefusedSignals)


@pytest.mark.parametrize(
    ("hosts", "url"),
    [
        (("prometheus.example.com",), "https://Prometheus.example.com:443/base"),
        (("prometheus.example.com:9090",), "https://prometheus.example.com:9090"),
        (("private:prometheus.corp.example:9090",), "https://prometheus.corp.example:9090"),
        (("[::1]:9090",), "http://[::1]:9090"),
    ],
)
def test_a_host_that_is_named_is_asked(hosts: tuple[str, ...], url: str) -> None:
    assert refusal(bound(*hosts), Prometheus(url)) is None


def test_a_bound_host_is_not_sent_the_token_unencrypted() -> None:
    reason, fix = refusal(bound("prometheus.example.com:9090"), Prometheus("http://prometheus.example.com:9090")) or (
        "",
        "",
    )
    assert "unencrypted" in reason
    assert "https://" in fix


def test_without_a_token_every_server_is_asked_as_before() -> None:
    assert refusal(Settings(), Prometheus("http://prometheus.internal:9090")) is None


# what a name stands for


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "fe80::1%eth0", "fd00:ec2::254", "100.100.100.200", "::ffff:169.254.0.23"]
)
@pytest.mark.parametrize("authorization", ["", TOKEN])
def test_a_name_that_stands_for_what_clouds_keep_is_not_asked(address: str, authorization: str) -> None:
    for answer in ([address], ["203.0.113.9", address]):
        endpoint = HttpEndpoint(
            "https://prometheus.example.com", authorization=authorization, resolve=lambda *_, answer=answer: answer
        )
        with pytest.raises(AccessDeniedError, match="link-local or metadata"):
            endpoint.post_form("/api/v1/query", {"query": "up"})


@pytest.mark.parametrize("address", ["10.0.0.1", "127.0.0.1", "fd12::1", "::ffff:10.0.0.1", "not-an-address"])
def test_a_bound_host_has_public_addresses_unless_it_is_said_to_be_private(address: str) -> None:
    endpoint = HttpEndpoint(
        "https://prometheus.example.com", authorization=TOKEN, private=False, resolve=lambda *_: [address]
    )
    with pytest.raises(AccessDeniedError, match="was not asked"):
        endpoint.post_form("/api/v1/query", {"query": "up"})


def test_the_connection_goes_to_the_address_that_was_judged() -> None:
    """The name is looked up once: a second look-up would lead elsewhere."""
    received: list[bytes] = []
    answers = [["127.0.0.1"], ["169.254.169.254"]]
    with answering(OK, received) as url:
        port = url.removeprefix("http://").partition("/")[0].rpartition(":")[2]
        named = f"http://prometheus.example.com:{port}"
        answer = HttpEndpoint(named, resolve=lambda *_: answers.pop(0)).post_form("/q", {"query": "up"})
    assert answer.status == 200
    assert answers == [["169.254.169.254"]]
    assert f"Host: prometheus.example.com:{port}\r\n".encode() in received[0]


@pytest.mark.parametrize("name", ["prometheus.example.com", "elsewhere.example.com"])
def test_over_tls_the_token_is_sent_to_who_proves_the_name_and_nobody_else(name: str, tmp_path: Path) -> None:
    certificate = write_certificate(tmp_path / "own.pem", "prometheus.example.com")
    received: list[bytes] = []
    with answering(OK, received, tls=serving_tls(certificate)) as url:
        port = url.removeprefix("http://").partition("/")[0].rpartition(":")[2]
        endpoint = HttpEndpoint(
            f"https://{name}:{port}",
            authorization=TOKEN,
            resolve=lambda *_: ["127.0.0.1"],
            tls=trusting(certificate),
        )
        if name == "prometheus.example.com":
            assert endpoint.post_form("/api/v1/query", {"query": "up"}).status == 200
        else:
            with pytest.raises(UnavailableError, match="certificate"):
                endpoint.post_form("/api/v1/query", {"query": "up"})
    assert [TOKEN.encode() in each for each in received] == ([True] if name == "prometheus.example.com" else [])


def test_this_machine_by_name_is_sent_the_token_only_where_the_name_stands_for_it() -> None:
    endpoint = HttpEndpoint("http://localhost:9090", authorization=TOKEN, resolve=lambda *_: ["10.0.0.1"])
    with pytest.raises(AccessDeniedError, match="unencrypted"):
        endpoint.post_form("/api/v1/query", {"query": "up"})


def test_a_token_and_http_to_another_machine_make_no_endpoint() -> None:
    with pytest.raises(InvalidInputError, match="unencrypted"):
        HttpEndpoint("http://prometheus.example.com", authorization=TOKEN)


# settings


def test_a_token_without_hosts_is_refused_with_what_to_set() -> None:
    with pytest.raises(
        InvalidInputError, match=r"set that to the hosts of .* such as prometheus\.example\.com:9090"
    ) as caught:
        load_settings({"COSTGUARD_PROMETHEUS_AUTHORIZATION": TOKEN})
    assert "COSTGUARD_PROMETHEUS_HOSTS" in str(caught.value)
    assert "canary" not in str(caught.value)
    with pytest.raises(InvalidInputError, match="COSTGUARD_PROMETHEUS_HOSTS"):
        load_settings({"COSTGUARD_PROMETHEUS_AUTHORIZATION": "secret:aws:prometheus"})


def test_hosts_without_a_token_are_refused() -> None:
    """Else a token that got lost would let servers be asked without it."""
    with pytest.raises(InvalidInputError, match="set both or neither"):
        load_settings({"COSTGUARD_PROMETHEUS_HOSTS": "prometheus.example.com"})


def test_hosts_are_read_as_those_of_policies_in_git_are() -> None:
    said = {
        "COSTGUARD_PROMETHEUS_AUTHORIZATION": TOKEN,
        "COSTGUARD_PROMETHEUS_HOSTS": " Prom.Example.com , private:a:9090, [::1]:9090",
    }
    assert load_settings(said).prometheus_hosts == ("prom.example.com", "private:a:9090", "[::1]:9090")


@pytest.mark.parametrize("hosts", ["*", "*.example.com", "https://prom", "u@h", "private:", "h:", "[::1", "a/b"])
def test_what_is_no_host_is_refused(hosts: str) -> None:
    with pytest.raises(InvalidInputError, match=r"COSTGUARD_PROMETHEUS_HOSTS names .*, expected such as prometheus"):
        load_settings({"COSTGUARD_PROMETHEUS_AUTHORIZATION": TOKEN, "COSTGUARD_PROMETHEUS_HOSTS": hosts})


@pytest.mark.parametrize(
    "url", ["http://slack.com/api/", "http://proxy.corp.example/", "https://169.254.169.254/", "https://0xa9fea9fe/"]
)
def test_the_slack_token_goes_neither_unencrypted_nor_where_clouds_keep_something(url: str) -> None:
    with pytest.raises(InvalidInputError, match="COSTGUARD_SLACK_URL"):
        load_settings({"COSTGUARD_SLACK_URL": url})


# policy check

POLICY = """\
version: 1
idle_gpu: [{name: a}]
signals:
  prometheus:
    - {url: "https://prometheus.example.com:9090"}
    - {url: "https://other.example.com"}
"""


def checked(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], settings: Settings, text: str
) -> tuple[int, dict[str, Any]]:
    (tmp_path / "costguard.yaml").write_text(text, encoding="utf-8")
    program = Program(settings=lambda: settings, clock=MovedClock(NOW))
    status = run(["policy", "check", str(tmp_path), "--json"], program=program)
    return int(status), json.loads(capfd.readouterr().out)


def test_policy_check_names_the_line_of_a_server_that_the_token_is_not_bound_to(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    status, told = checked(tmp_path, capfd, bound("prometheus.example.com:9090"), POLICY)
    assert status == Exit.BAD_INPUT
    (problem,) = told["problems"]
    assert (problem["path"], problem["line"], problem["column"]) == (str(tmp_path / "costguard.yaml"), 6, 13)
    assert "other.example.com" in problem["message"]
    assert "COSTGUARD_PROMETHEUS_HOSTS" in problem["fix"]


def test_policy_check_passes_where_no_token_is_set(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert checked(tmp_path, capfd, Settings(), POLICY)[0] == Exit.OK


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "[fe80::1]", "100.100.100.200", "metadata.tencentyun.com", "2852039166", "0x7f.1"]
)
@pytest.mark.parametrize(
    "line",
    [
        'signals: {prometheus: [{url: "https://HOST/x"}]}',
        'notify: {default: "https://HOST/x"}',
        'owners: [{name: a, owns: {tags: {t: a}}, channel: "https://HOST/x"}]',
        'budgets: [{name: a, monthly: 1 USD, tell: ["https://HOST/x"]}]',
    ],
)
def test_policy_check_names_the_line_of_an_address_that_clouds_keep(
    host: str, line: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = "version: 1\nidle_gpu: [{name: a}]\n" + line.replace("HOST", host) + "\n"
    status, told = checked(tmp_path, capfd, Settings(), text)
    assert status == Exit.BAD_INPUT
    (problem,) = told["problems"]
    assert problem["line"] == 3
    assert problem["column"] == text.splitlines()[2].index('"https') + 1
    assert "link-local or metadata" in problem["message"] or "in another form" in problem["message"]
    assert "write for example https://" in problem["fix"]
