"""The installed `git`: asked without a shell, without questions back, and without running what a repository brings.

Who calls has seen to it that the host may be asked, and at which addresses; git is held to those. It resolves names by
itself, so that a name which means something else a moment later (DNS rebinding) would lead it elsewhere.

Reading objects runs no hook, no filter and no text conversion. What git would do beyond that is shut: the file system
monitor and hooks are programs that a repository's configuration may name, a missing object may be fetched from where it
says, replacements may show other bytes under a hash.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

from costguard.adapters.policy_sources.files import GitAddress, Remote
from costguard.domain.errors import InvalidInputError, RefusedError, UnavailableError
from costguard.policy.syntax.problems import MAX_BYTES

FETCH_SECONDS = 60.0
_PINS = (2, 37)  # the first version with http.curloptResolve; an older one passes it over in silence
_NAME = "costguard"
_REF = "refs/costguard/policy"


@contextmanager
def fetched(
    environment: Mapping[str, str], address: GitAddress, remote: Remote, addresses: Sequence[str], seconds: float
) -> Iterator[tuple[GitProgram, str]]:
    """The repository with that one commit, without its history and without files longer than a policy's.

    Raises:
        InvalidInputError: git is missing, or too old to be held to an address.
        UnavailableError: not fetched in time, or the server refuses, or has no such revision.
    """
    with TemporaryDirectory(prefix="costguard-git-", ignore_cleanup_errors=True) as folder:
        git = GitProgram(environment, Path(folder))
        if remote.transport != "ssh" and git.version() < _PINS:
            message = f"git {'.'.join(map(str, _PINS))} or newer is needed to read a policy over {remote.transport}"
            raise InvalidInputError(message)
        git.run("init", "--quiet", "--bare", "--template=", folder)
        fresh = (Path(folder) / "config").read_bytes()
        try:
            git.run(
                "fetch",
                "--quiet",
                "--depth=1",
                "--no-tags",
                "--no-recurse-submodules",
                "--no-auto-maintenance",
                "--no-write-fetch-head",
                f"--filter=blob:limit={MAX_BYTES + 1}",  # git keeps what is shorter than the limit
                _NAME,
                f"+{address.revision}:{_REF}",
                settings=_settings(remote, addresses),
                environment=_environment(remote, addresses),
                seconds=seconds,
            )
        except RefusedError as err:
            message = f"{address.shown}: not fetched: {err}"
            raise UnavailableError(message, operation="git:fetch", code="refused") from err
        # as it was before: else git would fetch what the filter left out, one by one, when it is asked for
        (Path(folder) / "config").write_bytes(fresh)
        yield git, _REF


def _settings(remote: Remote, addresses: Sequence[str]) -> tuple[str, ...]:
    """Each under the whole address: what a person's own configuration says of a shorter one gives way."""
    named = f"http.{remote.url}"
    where = ",".join(f"[{each}]" if ":" in each else each for each in addresses)
    over_http = (
        f"{named}.curloptResolve={remote.host}:{remote.port}:{where}",
        f"{named}.followRedirects=false",
        f"{named}.proxy=",
        f"{named}.sslVerify=true",
    )
    return (
        f"remote.{_NAME}.url={remote.url}",
        f"url.{remote.url}.insteadOf={remote.url}",
        "credential.interactive=false",
        *(over_http if remote.transport != "ssh" else ()),
    )


def _environment(remote: Remote, addresses: Sequence[str]) -> dict[str, str]:
    allowed = {"GIT_ALLOW_PROTOCOL": remote.transport}
    if remote.transport != "ssh":
        return allowed
    # Git reads this by a shell: what is of the address in it is one of `git_address`'s host names, or an IP address.
    # The host's key is looked up under its name, as `ssh HOST` would.
    alias = remote.host if remote.host == remote.named else f"[{remote.host}]:{remote.port}"
    options = (
        f"HostName={addresses[0]}",
        f"HostKeyAlias={alias}",
        "BatchMode=yes",
        "StrictHostKeyChecking=yes",
        "ProxyCommand=none",
        "ControlPath=none",
        "ClearAllForwardings=yes",
        "PermitLocalCommand=no",
    )
    return {
        **allowed,
        "GIT_SSH_VARIANT": "ssh",
        "GIT_SSH_COMMAND": shlex.join(["ssh", *(part for option in options for part in ("-o", option))]),
    }


_LOCAL_SECONDS = 30.0
_MOST_BYTES = 80 * 1024 * 1024  # more than a thousand files of a policy, each as long as may be
_LONGEST_SAID = 300
_KEPT = ("GIT_CONFIG_", "GIT_EXEC_PATH", "GIT_SSL_CA")
"""Of git's own variables: where the person's configuration is, which knows their credentials, and whom it trusts."""

_OURS = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",  # set and empty: no other program is asked either
    "SSH_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "GIT_ALLOW_PROTOCOL": "none",  # nothing is fetched, unless the caller says by what
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
    "LANGUAGE": "",
}
_ALWAYS = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "protocol.ext.allow=never",
    "protocol.file.allow=never",
)
_USERINFO = re.compile(r"//[^/\s@]*@")
_VERSION = re.compile(rb"git version (\d+)\.(\d+)")


class GitProgram:
    """Runs git with an environment like `environment`, in which its own variables are ours.

    In `repository`, a bare one; without, in the repository that the current folder is in.

    Raises:
        InvalidInputError: git is not installed.
    """

    def __init__(self, environment: Mapping[str, str], repository: Path | None = None) -> None:
        found = shutil.which("git", path=environment.get("PATH", os.defpath))
        if found is None:
            message = "git is not installed, or not on PATH; policies in git are read with it, others without"
            raise InvalidInputError(message)
        self._program = found
        self._folder = repository
        named = {} if repository is None else {"GIT_DIR": str(repository)}
        kept = {name: value for name, value in environment.items() if _inherited(name)}
        self._environment = {**kept, **_OURS, **named}

    def version(self) -> tuple[int, int]:
        """Its version; (0, 0) where it says none."""
        found = _VERSION.match(self.run("version"))
        return (int(found[1]), int(found[2])) if found else (0, 0)

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        settings: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        seconds: float = _LOCAL_SECONDS,
    ) -> bytes:
        """What one command of git prints. `settings` are `name=value` of its configuration.

        Raises:
            RefusedError: it ended with an error; says what git says.
            UnavailableError: it took too long, or could not be started.
        """
        named = [part for each in (*_ALWAYS, *settings) for part in ("-c", each)]
        command = [self._program, "--no-pager", *named, *arguments]
        with TemporaryFile() as out, TemporaryFile() as err:  # of any length, and never in memory
            status = self._ended(command, stdin, (out, err), {**self._environment, **(environment or {})}, seconds)
            if status:
                message = f"git {arguments[0]}: {_said(_head(err))}"
                raise RefusedError(message, operation=f"git:{arguments[0]}")
            if out.seek(0, os.SEEK_END) > _MOST_BYTES:
                message = f"git answers with more than {_MOST_BYTES >> 20} MiB; give the folder of the policy itself"
                raise InvalidInputError(message)
            return _head(out)

    def _ended(
        self,
        command: Sequence[str],
        stdin: bytes,
        files: tuple[IO[bytes], IO[bytes]],
        environment: Mapping[str, str],
        seconds: float,
    ) -> int:
        try:
            running = subprocess.Popen(  # noqa: S603 - a list; what came from outside is in no place of an option
                command,
                stdin=subprocess.PIPE,
                stdout=files[0],
                stderr=files[1],
                cwd=self._folder,
                env=environment,
                start_new_session=True,  # no terminal to ask at, and one group to end
            )
        except OSError as err:
            message = f"git cannot be started: {err.strerror}"
            raise UnavailableError(message, operation="git:start", code=type(err).__name__) from err
        with running:
            try:
                running.communicate(stdin, timeout=seconds)
            except subprocess.TimeoutExpired as err:
                message = f"git did not end within {seconds:g} seconds"
                raise UnavailableError(message, operation="git:run", code="Timeout") from err
            finally:
                if running.poll() is None:
                    _end(running)
            return running.returncode


def _end(running: subprocess.Popen[bytes]) -> None:
    """With everything that it started: a transport is a process of its own."""
    with suppress(OSError):
        os.killpg(running.pid, signal.SIGKILL)
    running.kill()
    running.wait()


def _inherited(name: str) -> bool:
    """Not what names another repository, program or trace, nor a proxy, which would resolve names anew."""
    upper = name.upper()
    if upper.startswith("GIT_"):
        return upper.startswith(_KEPT) and upper != "GIT_CONFIG_PARAMETERS"
    return not upper.endswith("_PROXY")


def _head(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read(_MOST_BYTES)


def _said(raw: bytes) -> str:
    """Its last error, fit to print: a server has a say in it, and an address may have a password."""
    lines = [line for line in raw.decode("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("fatal:", "error:"))]
    last = (errors or lines or ["nothing"])[-1].removeprefix("fatal: ").removeprefix("error: ")
    shown = "".join(char if char.isprintable() else " " for char in _USERINFO.sub("//…@", last))
    return shown[:_LONGEST_SAID]
