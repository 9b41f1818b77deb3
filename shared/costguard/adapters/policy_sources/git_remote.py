"""One revision of a repository on another machine, fetched into a folder that is gone afterwards.

Who calls has seen to it that the host may be asked, and at which addresses; git is held to those. It resolves names by
itself, so that a name which means something else a moment later (DNS rebinding) would lead it elsewhere.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from costguard.adapters.policy_sources.git_address import GitAddress, Remote
from costguard.adapters.policy_sources.git_program import GitProgram
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
