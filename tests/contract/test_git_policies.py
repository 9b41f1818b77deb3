"""Policies in git, read by the installed git from real repositories: here, and from a server on loopback."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir
from threading import Thread

import pytest
from tests.git_rig import ENVIRONMENT, Repository, Server, serving

from costguard.adapters.notifiers.outward import Resolve
from costguard.connections.policies import git_source, policy_source
from costguard.domain.errors import InvalidInputError, UnavailableError
from costguard.policy.documents.loader import load_policy
from costguard.ports import PolicyText
from costguard.settings import Settings

MAIN = b"version: 1\nidle_gpu: [{name: research}]\n"
LARGE = b"".join(sha256(bytes([at % 256, at // 256])).digest() for at in range(10_000))  # no compressing that
LOCAL = Settings()


def read_here(address: str, environment: dict[str, str] | None = None) -> PolicyText:
    return git_source(LOCAL, address, environment=ENVIRONMENT if environment is None else environment).read()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """The repository of the current folder. It has no work tree at all."""
    made = Repository.made(tmp_path / "here")
    monkeypatch.chdir(made.folder)
    return made


def test_each_revision_has_its_own_policy(here: Repository) -> None:
    first = here.commit({"policy/costguard.yaml": MAIN, "code.py": b"x"})
    second = here.commit({"policy/costguard.yaml": MAIN.replace(b"research", b"nlp")})
    here.git("tag", "-a", "v1", "-m", "one", first)

    for written, commit, rule in (
        ("git:HEAD~1:policy", first, "research"),
        ("git:main:policy", second, "nlp"),
        ("git:v1:policy/costguard.yaml", first, "research"),
        (f"git:{first[:12]}:policy", first, "research"),
    ):
        text = read_here(written)
        assert text.revision == commit
        assert load_policy(text).rule(rule) is not None


def test_an_error_names_revision_path_line_and_column(here: Repository) -> None:
    here.commit({"costguard.yaml": MAIN, "policies/a.yaml": b"idle_gpu: [{nam: a}]\n", "p/one.yaml": b"version: x\n"})

    for written, says in (
        ("git:main", "git:main:./policies/a.yaml:1:13: idle_gpu[0].nam: unknown key"),
        ("git:main:p/one.yaml", "git:main:./p/one.yaml:1:10: version"),
    ):
        with pytest.raises(InvalidInputError) as raised:
            load_policy(read_here(written))
        assert says in str(raised.value)


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("git:gone", "git:gone: git finds no commit 'gone'"),
        ("git:main:gone", "git:main:gone: no such file or folder in commit"),
        ("git:main", "git:main: the policy seems to be in git:main:policy; give that"),
        ("git:main:docs", "no policy here"),
        ("git:^main", "is wrong"),
    ],
)
def test_what_is_not_there_is_told(here: Repository, written: str, says: str) -> None:
    here.commit({"policy/costguard.yaml": MAIN, "docs/index.md": b"x"})

    with pytest.raises(InvalidInputError) as raised:
        read_here(written)

    assert says in str(raised.value)


def test_a_folder_outside_of_any_repository_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(InvalidInputError, match="not a git repository"):
        read_here("git:main")


@pytest.mark.parametrize("path", ["costguard.yaml", "policies/a.yaml", "policies/folder", "policies", "Policies"])
def test_a_link_is_refused_wherever_it_leads(here: Repository, path: str) -> None:
    files = {"costguard.yaml": MAIN, "mine.yaml": MAIN, "elsewhere/a.yaml": b""}
    here.commit({name: raw for name, raw in files.items() if name != path}, links={path: "mine.yaml"})

    with pytest.raises(InvalidInputError, match=f"git:main:./{path}: (a link; what it leads to|rules are read from)"):
        read_here("git:main")


def test_the_policy_itself_is_no_link(here: Repository) -> None:
    here.commit({"mine.yaml": MAIN}, links={"policy": "mine.yaml", "one.yaml": "/etc/passwd"})

    for written in ("git:main:policy", "git:main:one.yaml"):
        with pytest.raises(InvalidInputError, match="a link; what it leads to"):
            read_here(written)


@pytest.mark.parametrize("path", ["policies", "policies/more", "owners.yaml"])
def test_a_submodule_is_refused(here: Repository, path: str) -> None:
    commit = here.commit({"costguard.yaml": MAIN})
    here.commit({"costguard.yaml": MAIN}, submodules={path: commit})

    with pytest.raises(InvalidInputError, match=f"git:main:./{path}: a submodule"):
        read_here("git:main")


def test_files_are_bounded_before_they_are_read(here: Repository) -> None:
    here.commit({"costguard.yaml": MAIN, **{f"policies/{at:04}.yaml": b"" for at in range(1001)}})

    with pytest.raises(InvalidInputError, match="more than 1000 policy files"):
        read_here("git:main")


def test_nothing_that_a_repository_brings_is_run(here: Repository, tmp_path: Path) -> None:
    """Its configuration may name programs: a monitor of files, hooks, filters, and where missing objects come from."""
    here.commit({"costguard.yaml": MAIN, ".gitattributes": b"* filter=evil diff=evil\n"})
    ran = tmp_path / "ran"
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n", encoding="utf-8")
    evil.chmod(stat.S_IRWXU)
    for name in ("core.fsmonitor", "filter.evil.smudge", "diff.evil.textconv", "core.pager", "core.sshCommand"):
        here.git("config", name, str(evil))
    hook = here.folder / "hooks" / "reference-transaction"
    hook.parent.mkdir()
    hook.symlink_to(evil)

    assert list(read_here("git:main").files) == ["costguard.yaml"]
    assert not ran.exists()


def test_a_missing_object_is_not_fetched_from_where_the_repository_says(here: Repository, tmp_path: Path) -> None:
    here.commit({"costguard.yaml": MAIN})
    ran = tmp_path / "ran"
    blob = here.git("rev-parse", "main:costguard.yaml")
    for name, value in (
        ("core.repositoryformatversion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", f"ext::touch {ran}"),
        ("protocol.ext.allow", "always"),
    ):
        here.git("config", name, value)
    _lose(here, blob)

    with pytest.raises(InvalidInputError, match="not all of it is in this repository, as in a partial clone"):
        read_here("git:main")

    assert not ran.exists()


def _lose(repository: Repository, oid: str) -> None:
    """An object that is there no more; few at once are kept as files of their own."""
    path = repository.folder / "objects" / oid[:2] / oid[2:]
    assert path.is_file()
    path.unlink()


def test_replaced_objects_are_not_what_is_read(here: Repository) -> None:
    good = here.commit({"costguard.yaml": MAIN})
    here.git("replace", good, here.commit({"costguard.yaml": MAIN.replace(b"research", b"evil")}, branch="evil"))

    assert load_policy(read_here(f"git:{good}")).rule("research") is not None


def test_variables_that_name_another_repository_or_program_are_not_passed_on(here: Repository, tmp_path: Path) -> None:
    here.commit({"costguard.yaml": MAIN})
    trace = tmp_path / "trace"

    text = read_here("git:main", {**ENVIRONMENT, "GIT_DIR": str(tmp_path), "GIT_TRACE": str(trace)})

    assert list(text.files) == ["costguard.yaml"]
    assert not trace.exists()


def test_without_git_files_are_read_and_git_is_named(here: Repository, tmp_path: Path) -> None:
    (tmp_path / "costguard.yaml").write_bytes(MAIN)

    assert policy_source(LOCAL, str(tmp_path / "costguard.yaml")).read().files
    with pytest.raises(InvalidInputError, match="git is not installed, or not on PATH"):
        read_here("git:main", {"PATH": str(tmp_path)})
    assert here.folder.is_dir()


@pytest.mark.parametrize("host", ["lambda", "fc", "scf"])
@pytest.mark.parametrize("written", ["git:main", "git+https://github.com/acme/policy@main"])
def test_a_function_reads_no_policy_from_git(host: str, written: str) -> None:
    with pytest.raises(InvalidInputError, match=f"a function on {host} reads no policy from git; publish it"):
        policy_source(replace(LOCAL, host=host, git_hosts=("github.com",)), written)


def test_tests_are_those_of_the_same_commit(here: Repository) -> None:
    here.commit({"p/costguard.yaml": MAIN, "p/tests/a.yaml": b"tests: []\n", "p/tests/README.md": b""})

    source = git_source(LOCAL, "git:main:p", environment=ENVIRONMENT)

    assert source.tests() == {"git:main:p/tests/a.yaml": "tests: []\n"}
    with pytest.raises(InvalidInputError, match="no file of tests"):
        git_source(LOCAL, "git:main:p/costguard.yaml", environment=ENVIRONMENT).tests()


# from a server


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def acme(root: Path) -> Repository:
    made = Repository.made(root / "acme" / "policy.git")
    made.commit({"policy/costguard.yaml": MAIN})
    made.commit({"policy/costguard.yaml": MAIN.replace(b"research", b"nlp"), "large.bin": LARGE})
    made.commit({"costguard.yaml": MAIN, "owners.yaml": b"# filler\n" * 8_000}, branch="long")
    made.commit({"costguard.yaml": MAIN}, links={"owners.yaml": "/etc/passwd"}, branch="linked")
    return made


@pytest.fixture
def server(root: Path, acme: Repository) -> Iterator[Server]:
    with serving(root) as running:
        assert acme.folder.is_dir()
        yield running


def read_from(
    server: Server, written: str, *, hosts: str = "private:127.0.0.1:PORT", seconds: float | None = None
) -> PolicyText:
    settings = Settings(git_hosts=(hosts.replace("PORT", str(server.port)),))
    address = f"git+http://{server.host}/acme/policy.git@{written}"
    return git_source(settings, address, environment=ENVIRONMENT, seconds=seconds).read()


def _standing_for(*addresses: str) -> Resolve:
    return lambda _host, _port: addresses


def test_a_revision_is_fetched_without_history_and_nothing_is_left(
    server: Server, acme: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(Path(gettempdir()).glob("costguard-git-*"))
    monkeypatch.chdir(tmp_path)
    head, older = acme.git("rev-parse", "main"), acme.git("rev-parse", "main~1")

    branch, commit = read_from(server, "main#policy"), read_from(server, f"{older}#policy/costguard.yaml")

    assert branch.revision == head
    assert load_policy(branch).rule("nlp") is not None
    assert server.sent < len(LARGE)
    assert commit.revision == older
    assert load_policy(commit).rule("research") is not None
    assert set(Path(gettempdir()).glob("costguard-git-*")) == before
    assert list(tmp_path.iterdir()) == []


def test_errors_name_the_address(server: Server) -> None:
    for written, says in (
        ("long", "@long#./owners.yaml:1:1: the file is longer than 64 KiB"),
        ("linked", "@linked#./owners.yaml: a link"),
        ("main#gone", "@main#gone: no such file or folder in commit"),
    ):
        with pytest.raises(InvalidInputError) as raised:
            read_from(server, written)
        assert f"http://{server.host}/acme/policy.git{says}" in str(raised.value)
    with pytest.raises(UnavailableError, match="@gone: not fetched: git fetch: couldn't find remote ref gone"):
        read_from(server, "gone")


@pytest.mark.parametrize("hosts", ["", "github.com", "127.0.0.1", "private:127.0.0.1", "private:127.0.0.1:1"])
def test_a_host_that_is_not_listed_is_not_asked(server: Server, hosts: str) -> None:
    with pytest.raises(InvalidInputError, match="the host is not allowed; set COSTGUARD_GIT_HOSTS") as raised:
        read_from(server, "main#policy", hosts=hosts)

    assert f"such as {server.host}" in str(raised.value)
    assert server.asked == []


def test_a_listed_host_whose_address_is_private_is_not_asked(server: Server) -> None:
    settings = Settings(git_hosts=(f"git.example.com:{server.port}",))
    for address in ("127.0.0.1", "10.0.0.1", "192.168.1.1", "::1", "fd00::1", "169.254.169.254", "64:ff9b::a00:1"):
        source = git_source(
            settings,
            f"git+https://git.example.com:{server.port}/acme/policy.git@main",
            environment=ENVIRONMENT,
            resolve=_standing_for("93.184.215.14", address),
        )
        with pytest.raises(InvalidInputError, match=f"write private:git.example.com:{server.port} there"):
            source.read()
    assert server.asked == []


@pytest.mark.parametrize("address", ["169.254.169.254", "100.100.100.200", "fd00:ec2::254", "fe80::1"])
@pytest.mark.parametrize("transport", ["https", "ssh"])
def test_metadata_addresses_are_never_asked(address: str, transport: str) -> None:
    """Not even of a host whose addresses may be private."""
    source = git_source(
        Settings(git_hosts=("private:git.example.com",)),
        f"git+{transport}://git.example.com/acme/policy@main",
        environment=ENVIRONMENT,
        resolve=_standing_for(address),
    )

    with pytest.raises(InvalidInputError, match="not asked: its name stands for an address that is private"):
        source.read()


def test_plain_http_is_for_this_machine_alone() -> None:
    source = git_source(
        Settings(git_hosts=("private:git.example.com",)),
        "git+http://git.example.com/acme/policy@main",
        environment=ENVIRONMENT,
        resolve=_standing_for("10.0.0.1"),
    )

    with pytest.raises(InvalidInputError, match="only https and ssh"):
        source.read()


def test_a_redirect_is_not_followed(server: Server, root: Path) -> None:
    with serving(root) as other:
        for where in (f"http://{other.host}", "http://169.254.169.254", "http://10.0.0.1"):
            server.moved_to = where
            with pytest.raises(UnavailableError, match="not fetched"):
                read_from(server, "main#policy", seconds=10)
        assert other.asked == []
    assert len(server.asked) == 3


def test_a_persons_own_configuration_does_not_lead_elsewhere(server: Server, root: Path, tmp_path: Path) -> None:
    """It may rewrite addresses, follow redirects and name proxies, of any address shorter than the one judged."""
    with serving(root) as other:
        config = tmp_path / "gitconfig"
        config.write_text(
            f'[url "http://{other.host}/"]\n  insteadOf = http://{server.host}/\n'
            f'[http "http://{server.host}/"]\n  proxy = http://{other.host}\n  followRedirects = true\n',
            encoding="utf-8",
        )
        environment = {**ENVIRONMENT, "GIT_CONFIG_GLOBAL": str(config), "http_proxy": f"http://{other.host}"}
        settings = Settings(git_hosts=(f"private:{server.host}",))
        address = f"git+http://{server.host}/acme/policy.git@main#policy"

        assert git_source(settings, address, environment=environment).read().files
        server.moved_to = f"http://{other.host}"
        with pytest.raises(UnavailableError):
            git_source(settings, address, environment=environment).read()
        assert other.asked == []


@contextmanager
def answering_once(answer: bytes) -> Iterator[tuple[Server, list[bytes]]]:
    """A listener that takes one request, if there is one in time, and sends `answer`."""
    asked: list[bytes] = []
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        listener.settimeout(5)

        def listen() -> None:
            with suppress(TimeoutError), listener.accept()[0] as connection:
                asked.append(connection.recv(4096))
                connection.sendall(answer)

        thread = Thread(target=listen)
        thread.start()
        yield Server(listener.getsockname()[1]), asked
        thread.join()


def test_the_connection_is_made_to_the_address_that_was_judged() -> None:
    """The name exists nowhere: only who is told its address finds the listener."""
    with answering_once(b"") as (there, asked):
        source = git_source(
            Settings(git_hosts=(f"private:git.example.com:{there.port}",)),
            f"git+https://git.example.com:{there.port}/acme/policy@main",
            environment=ENVIRONMENT,
            resolve=_standing_for("127.0.0.1"),
        )
        with pytest.raises(UnavailableError, match="not fetched"):
            source.read()
    assert len(asked) == 1
    assert b"git.example.com" in asked[0]  # the name that TLS is asked for


def test_a_server_that_does_not_answer_is_left_in_time() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        silent = Server(listener.getsockname()[1])
        with pytest.raises(UnavailableError, match=r"git did not end within 0.2 seconds"):
            read_from(silent, "main", seconds=0.2)


def test_nobody_is_asked_for_a_password() -> None:
    refusal = b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with answering_once(refusal) as (there, asked):
        with pytest.raises(UnavailableError, match=r"could not read Username .*: terminal prompts disabled"):
            read_from(there, "main", seconds=10)
        assert len(asked) == 1


def test_ssh_is_held_to_the_address_and_asks_nobody(acme: Repository, tmp_path: Path) -> None:
    """`ssh` is a stand-in that tells what it was called with, and then does what a server would."""
    called = tmp_path / "called"
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {called}\nexec git upload-pack {acme.folder}\n', encoding="utf-8"
    )
    program.chmod(stat.S_IRWXU)
    environment = {**ENVIRONMENT, "PATH": f"{program.parent}{os.pathsep}{ENVIRONMENT['PATH']}"}

    text = git_source(
        Settings(git_hosts=("private:git.example.com:2222",)),
        "git+ssh://git.example.com:2222/acme/policy.git@main#policy",
        environment={**environment, "GIT_SSH_COMMAND": "false"},
        resolve=_standing_for("127.0.0.1"),
    ).read()

    assert load_policy(text).rule("nlp") is not None
    arguments = called.read_text(encoding="utf-8").splitlines()
    assert arguments[-2:] == ["git@git.example.com", "git-upload-pack '/acme/policy.git'"]
    assert {"HostName=127.0.0.1", "HostKeyAlias=[git.example.com]:2222", "BatchMode=yes"} <= set(arguments)
    assert {"StrictHostKeyChecking=yes", "ProxyCommand=none"} <= set(arguments)
