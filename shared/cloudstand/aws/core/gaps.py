"""Where moto is not AWS: the only place from which it is patched, and only while a sandbox runs.

Each patch says why it exists, in `reason`; a test beside it shows what moto does unpatched and fails when moto closes
the gap. Most gaps have one cure: the handler asks the world, which knows the semantics and the time. The handlers
stand in `compute` (what only costs time, in `hastening`), `network` and `iam`.
"""

from __future__ import annotations

from moto import settings
from moto.iam import models as iam

from cloudstand.aws.compute.changes import acting
from cloudstand.aws.compute.hastening import hastening
from cloudstand.aws.compute.measuring import measuring
from cloudstand.aws.compute.reading import reading
from cloudstand.aws.core.patching import Patch, Wire
from cloudstand.aws.core.seeding import accounts_of, in_organisation
from cloudstand.aws.iam.policies import attaching
from cloudstand.aws.network.changes import mending
from cloudstand.aws.network.vpcs import networking


def before_seeding() -> tuple[Patch, ...]:
    """Needed before a backend is made."""
    return (
        Patch(
            settings,
            "ec2_load_default_amis",
            lambda: False,
            "a backend loads 1,300 images and their snapshots, slowly, and shows them as one's own",
        ),
    )


def while_running(wire: Wire) -> tuple[Patch, ...]:
    """Every other gap."""
    # the last keeps the names of handlers, so it comes after those that add some
    of_machines = (*acting(wire), *reading(wire), *measuring(wire))
    return (*of_machines, *networking(wire), *mending(wire), *attaching(), *_identifying(wire), *hastening())


def _identifying(wire: Wire) -> tuple[Patch, ...]:
    issued = iam.get_account_id_from
    accounts = accounts_of(wire.world)

    def get_account_id_from(access_key: str) -> str:
        account = issued(access_key)
        return account if account in accounts or in_organisation(account) else accounts[0]

    return (Patch(iam, "get_account_id_from", get_account_id_from, "unknown keys belong to account 123456789012"),)
