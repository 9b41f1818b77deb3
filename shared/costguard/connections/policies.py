"""Where policies are, as `COSTGUARD_POLICY` and commands say: files, a commit in git, or where they are published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from costguard.adapters.policy_sources.files import GitAddress, Remote, git_address, is_git
from costguard.connections.objects import open_objects
from costguard.domain.errors import InvalidInputError, NoticeError, RejectedNoticeError, UnavailableError

if TYPE_CHECKING:
    from costguard.adapters.notifiers.outward import Resolve
    from costguard.adapters.policy_sources.git import GitPolicySource
    from costguard.adapters.policy_sources.git_program import GitProgram
    from costguard.adapters.policy_sources.published import BundleShelf
    from costguard.ports import Clock, PolicySource
    from costguard.settings import Settings

_FOLDER = "published:"
_SCHEMES = ("s3://", "oss://", "cos://")


def is_published(address: str) -> bool:
    """Whether policies are published there; every other path holds the files themselves."""
    return address.startswith((_FOLDER, *_SCHEMES))


def open_bundles(settings: Settings, address: str, clock: Clock) -> BundleShelf:
    """The bundles at `address`; nothing is read or written yet. Requests go to the vendor's own hosts and nowhere else.

    Raises:
        InvalidInputError: no address where policies can be published.
    """
    from costguard.adapters.policy_sources.published import BundleShelf

    place = address.removeprefix(_FOLDER)
    try:
        objects = open_objects(replace(settings, reports=place), clock) if is_published(address) else None
    except InvalidInputError as err:
        # the same reader serves COSTGUARD_REPORTS, and names that
        raise InvalidInputError(str(err).replace("COSTGUARD_REPORTS", "the address of published policies")) from err
    if objects is None:
        message = (
            f"{address!r} is no place to publish to; expected published:FOLDER, s3://BUCKET/PREFIX?region=REGION, "
            "oss:// or cos:// (--to, or COSTGUARD_POLICY)"
        )
        raise InvalidInputError(message)
    return BundleShelf(objects, address)


def policy_source(settings: Settings, address: str) -> PolicySource:
    """The policy at a path, or at an address in git; nothing is read yet. Not for `is_published` addresses.

    Raises:
        InvalidInputError: an address in git that is wrong or not allowed here.
    """
    if is_git(address):
        return git_source(settings, address)
    from costguard.adapters.policy_sources.files import FilePolicySource

    return FilePolicySource(address)


def git_source(
    settings: Settings,
    address: str,
    *,
    environment: Mapping[str, str] | None = None,
    resolve: Resolve | None = None,
    seconds: float | None = None,
) -> GitPolicySource:
    """The policy at an address in git.

    `environment` stands in for this process's, `resolve` for this system's resolver; `seconds` limits a fetch.

    Raises:
        InvalidInputError: the address is wrong, its host is not allowed, or this is the host of a function.
    """
    from costguard.adapters.policy_sources.git import GitPolicySource, opened_here
    from costguard.adapters.policy_sources.git_program import FETCH_SECONDS, GitProgram, fetched
    from costguard.settings import process_environment

    if settings.host != "local":
        message = (
            f"a function on {settings.host} reads no policy from git; publish it, and set COSTGUARD_POLICY to that"
        )
        raise InvalidInputError(message)
    where = git_address(address)
    remote, around = where.remote, process_environment() if environment is None else environment
    if remote is None:
        return GitPolicySource(where, lambda: opened_here(GitProgram(around), where))
    if not remote.allowed(settings.git_hosts):
        allowed = ", ".join(settings.git_hosts) or "none"
        message = (
            f"{where.shown}: the host is not allowed; set COSTGUARD_GIT_HOSTS to the hosts that policies may be "
            f"read from, such as {remote.named} (it names {allowed})"
        )
        raise InvalidInputError(message)
    private = remote.may_be_private(settings.git_hosts)

    def opened() -> AbstractContextManager[tuple[GitProgram, str]]:
        addresses = _addresses(where, remote, resolve, private=private)
        return fetched(around, where, remote, addresses, seconds or FETCH_SECONDS)

    return GitPolicySource(where, opened)


def _addresses(where: GitAddress, remote: Remote, resolve: Resolve | None, *, private: bool) -> Sequence[str]:
    """Where the host may be reached: judged as the addresses of webhooks are, by the same code."""
    from costguard.adapters.notifiers.outward import OutwardAddress, judged, place_of, resolved

    try:
        if remote.transport == "ssh":
            place = OutwardAddress(tls=False, host=remote.host, port=remote.port, target=remote.path, shown=remote.url)
        else:
            place = place_of(remote.url, private=private)
    except RejectedNoticeError as err:
        message = f"{where.shown}: only https and ssh, or http to this machine where it is allowed as private"
        raise InvalidInputError(message) from err
    try:
        return judged(place, resolve or resolved, private=private)
    except RejectedNoticeError as err:
        advice = "" if private else f"; if it is one of your own network, write private:{remote.named} there"
        message = (
            f"{where.shown}: not asked: its name stands for an address that is private, or that clouds keep for their "
            f"machines, whatever COSTGUARD_GIT_HOSTS says of the name{advice}"
        )
        raise InvalidInputError(message) from err
    except NoticeError as err:
        message = f"{where.shown}: the name of its host cannot be looked up"
        raise UnavailableError(message, operation="git:resolve") from err
