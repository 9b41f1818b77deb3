"""What a launch freeze of the demo attaches, and to what: written as people would have, and attached to nothing yet.

| cloud | via | policy | target |
|---|---|---|---|
| aws | organisation | `p-nonewgpus` | `444455556666` |
| aws | group | `arn:aws:iam::111122223333:policy/no-new-gpus` | `gpu-users` |
| alibaba | organisation | `cp-nonewgpus` | `fd-gpuTeams` |
| alibaba | group | `no-new-gpus` | `gpu-users` |
| tencent | organisation | `7001` | `node/20001` |
| tencent | group | `7002` | `55` |
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cloudstand.fleets import ALIBABA_ACCOUNT, RESEARCH

if TYPE_CHECKING:
    from cloudstand.alibaba.iam.desk import PolicyDesk as AlibabaDesk
    from cloudstand.tencent.iam.desk import PolicyDesk as TencentDesk

_NAME, _GROUP = "no-new-gpus", "gpu-users"
_DENIAL = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Deny",
            "Action": "ec2:RunInstances",
            "Resource": "arn:aws:ec2:*:*:instance/*",
            "Condition": {"StringLike": {"ec2:InstanceType": ["g*", "p*"]}},
        }
    ],
}


def freezes_on_aws() -> None:
    """A service control policy of the demo's organisation, and a policy for a group of its first account, in moto."""
    from moto.iam.models import iam_backends
    from moto.organizations.models import organizations_backends

    organisation, people = organizations_backends[RESEARCH]["aws"], iam_backends[RESEARCH]["aws"]
    content = json.dumps(_DENIAL)
    organisation.create_policy(Name=_NAME, Type="SERVICE_CONTROL_POLICY", Content=content, Description=_NAME, Tags=[])
    organisation.policies[-1].id = "p-nonewgpus"  # moto chooses one by chance
    people.create_policy("", "/", content, _NAME, [])
    people.create_group(_GROUP)


def freezes_on_alibaba(desk: AlibabaDesk) -> None:
    """A control policy and a folder, and a policy for a RAM group."""
    from cloudstand.alibaba.iam.desk import FULL_ACCESS

    desk.control.add("cp-nonewgpus")
    desk.targets["fd-gpuTeams"] = [FULL_ACCESS]
    desk.written.add((ALIBABA_ACCOUNT, _NAME))
    desk.groups[ALIBABA_ACCOUNT, _GROUP] = []


def freezes_on_tencent(desk: TencentDesk) -> None:
    """A service control policy and a department, and a policy for a CAM group."""
    from cloudstand.tencent.iam.desk import FULL_ACCESS

    desk.written |= {7001, 7002}
    desk.targets["node", 20001] = [FULL_ACCESS]
    desk.groups[55] = []
