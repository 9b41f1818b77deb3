"""What VPC tells in one emulator beyond the networks of its world: a test sets it up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class NetworkDesk:
    """What the networks of a world do not say.

    A rule of a world names a template in `unresolved` (`ipm-…`, `ipmg-…`), or by its protocol (`ppm-…`, `ppmg-…`);
    here is what that holds: lines, and of groups the ids of templates. `quintuple` are access lists of five parts, by
    id; `near` is what their entries say of the near end (`SourcePort`, …), by the entry's id. `compact`: the list of
    gateways leaves out their forwards. `hides_plain`: interfaces do not tell plain public addresses. `cascades` are
    addresses that are released as soon as they are bound to nothing; `billed` how addresses are, by id: their
    InternetChargeType and Mbit/s. `short_regions`: how peering writes a region.
    """

    address_templates: dict[str, tuple[str, ...]] = field(default_factory=dict)
    address_groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    service_templates: dict[str, tuple[str, ...]] = field(default_factory=dict)
    service_groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    quintuple: set[str] = field(default_factory=set)
    near: dict[str, Mapping[str, str]] = field(default_factory=dict)
    compact: bool = False
    hides_plain: bool = False
    cascades: set[str] = field(default_factory=set)
    billed: dict[str, tuple[str, int]] = field(default_factory=dict)
    short_regions: dict[str, str] = field(default_factory=dict)
