"""How moto is patched: what a patch is, how it is applied and undone, and what the new handlers ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError

from cloudstand.aws.compute.bridge import Bridge
from cloudstand.aws.compute.metrics import Metrics
from cloudstand.clock import Clock
from cloudstand.world.cloud import World
from cloudstand.world.records import Machine


@dataclass(frozen=True, slots=True)
class Patch:
    """One attribute of moto replaced while a sandbox runs."""

    owner: Any
    name: str
    replacement: Any
    reason: str


class Request:
    """One request as moto has parsed it; the underscored names are how moto's own handlers read it."""

    def __init__(self, response: Any) -> None:
        self._response = response

    @property
    def account(self) -> str:
        """Whom the keys belong to."""
        return str(self._response.current_account)

    @property
    def region(self) -> str:
        """Where it was sent."""
        return str(self._response.region)

    def refuse_dry_run(self) -> None:
        """Answer a dry run as EC2 does: with an error that says it would have worked."""
        self._response.error_on_dryrun()

    def parameter(self, name: str, default: Any = None) -> Any:
        """One parameter of the call."""
        return self._response._get_param(name, default)  # noqa: SLF001 - moto has no public way

    def parameters(self) -> Mapping[str, Any]:
        """All of them."""
        return cast("Mapping[str, Any]", self._response._get_params())  # noqa: SLF001 - moto has no public way

    def filters(self) -> Mapping[str, Sequence[str]]:
        """The filters of an EC2 call by name."""
        found = self._response._filters_from_querystring()  # noqa: SLF001 - moto has no public way
        return cast("Mapping[str, Sequence[str]]", found)

    def tags(self, kind: str) -> Mapping[str, str]:
        """The tags an EC2 call gives to what it creates."""
        found = self._response._parse_tag_specification()  # noqa: SLF001 - moto has no public way
        return cast("Mapping[str, str]", found.get(kind, {}))


@dataclass(slots=True)
class Pages:
    """How much a page of networks holds at most, however much is asked for."""

    most: int = 1000


@dataclass(frozen=True, slots=True)
class Wire:
    """What the patched handlers ask."""

    world: World
    clock: Clock
    metrics: Metrics
    bridge: Bridge
    closed_region: str  # listed as not opted in
    pages: Pages = field(default_factory=Pages)

    def machines(self, request: Request) -> Iterator[Machine]:
        """The machines that the account and region of this request show."""
        for machine in self.world.machines.values():
            here = (machine.spec.account, machine.spec.region) == (request.account, request.region)
            if here and self.world.is_listed(machine):
                yield machine

    def machine(self, request: Request, native_id: str) -> Machine:
        """One of them.

        Raises:
            EC2ClientError: not there.
        """
        found = next((machine for machine in self.machines(request) if machine.native_id == native_id), None)
        if found is None:
            raise EC2ClientError("InvalidInstanceID.NotFound", f"The instance ID '{native_id}' does not exist")
        return found


def asking(wire: Wire, answer: Callable[[Wire, Request], ActionResult]) -> Callable[[Any], ActionResult]:
    """A handler for moto's response classes that has the wire at hand."""

    def handler(response: Any) -> ActionResult:
        return answer(wire, Request(response))

    return handler


@contextmanager
def applied(patches: Sequence[Patch]) -> Iterator[None]:
    """Moto with these patches, and as it was before once the block ends."""
    before: list[tuple[Patch, Any]] = []
    try:
        for patch in patches:
            before.append((patch, vars(patch.owner).get(patch.name)))
            setattr(patch.owner, patch.name, patch.replacement)
        yield
    finally:
        for patch, original in reversed(before):
            if original is None:  # it was inherited: uncover it
                delattr(patch.owner, patch.name)
            else:
                setattr(patch.owner, patch.name, original)
