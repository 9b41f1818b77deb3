"""Which policies and targets a launch freeze may name, by cloud and by where it is attached. Pure.

The vendors' own policies are of another form than those that people write, where they have a form at all: a freeze
never attaches or detaches one of them, for taking off what allows everything would lock everybody out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from costguard.domain.actions import FreezeVia, LaunchFreeze
from costguard.domain.refs import provider_of

APPROVED_TAG, APPROVED = "costguard-approved", "true"
"""The tag and its value that a machine is launched with to be let through a freeze."""


@dataclass(frozen=True, slots=True)
class Form:
    """What a policy and a target look like, with an example of each."""

    policy: re.Pattern[str]
    target: re.Pattern[str]
    policy_example: str
    target_example: str


@dataclass(frozen=True, slots=True)
class Misfit:
    """What of a freeze does not fit: the name of its field, why, and what to write."""

    field: str
    message: str
    fix: str


def _form(policy: str, target: str, policy_example: str, target_example: str) -> Form:
    return Form(re.compile(policy, re.ASCII), re.compile(target, re.ASCII), policy_example, target_example)


FORMS: Mapping[tuple[str, FreezeVia], Form] = MappingProxyType(
    {
        # AWS's own policies have capitals in their ids (p-FullAWSAccess); those that people write have none
        ("aws", FreezeVia.ORGANISATION): _form(
            r"p-[0-9a-z]{8,128}",
            r"\d{12}|r-[0-9a-z]{4,32}|ou-[0-9a-z]{4,32}-[0-9a-z]{8,32}",
            "p-a1b2c3d4",
            '"111122223333" or ou-ab12-34cd56ef',
        ),
        ("aws", FreezeVia.GROUP): _form(
            r"arn:(?P<cloud>aws|aws-cn|aws-us-gov):iam::(?P<account>\d{12}):policy/[\w+=,.@/-]{1,512}",
            r"[\w+=,.@-]{1,128}",
            "arn:aws:iam::111122223333:policy/costguard-freeze",
            "gpu-users",
        ),
        ("alibaba", FreezeVia.ORGANISATION): _form(
            r"cp-[0-9A-Za-z]{1,64}",
            r"\d{16}|(?:r|fd)-[0-9A-Za-z]{1,64}",
            "cp-jExXAqIYkwHN",
            '"1234567890123456" or fd-Ab12Cd34Ef',
        ),
        ("alibaba", FreezeVia.GROUP): _form(
            r"(?!Aliyun|AdministratorAccess$|ReadOnlyAccess$)[0-9A-Za-z-]{1,128}",
            r"[\w.-]{1,64}",
            "costguard-freeze",
            "gpu-users",
        ),
        # numbers of accounts and departments look alike, so the kind of the target is written
        ("tencent", FreezeVia.ORGANISATION): _form(
            r"[1-9]\d{0,18}", r"(?:member|node)/[1-9]\d{0,18}", '"1234567"', "member/100000000001 or node/10001"
        ),
        ("tencent", FreezeVia.GROUP): _form(r"[1-9]\d{0,18}", r"[1-9]\d{0,18}", '"1234567"', '"98765"'),
    }
)


def form_of(cloud: str, via: FreezeVia) -> Form:
    """What goes with this cloud and way."""
    return FORMS[provider_of(cloud), via]


def misfit(freeze: LaunchFreeze) -> Misfit | None:
    """What of `freeze` cannot be meant, None where it can."""
    form = form_of(freeze.cloud, freeze.via)
    what = f"a policy for {freeze.via.value} on {freeze.cloud}"
    matched = form.policy.fullmatch(freeze.policy)
    if matched is None:
        return Misfit("policy", f"{freeze.policy!r} is not {what} that people write", f"write {form.policy_example}")
    if form.target.fullmatch(freeze.target) is None:
        message = f"{freeze.target!r} is no target of {what}"
        return Misfit("target", message, f"write {form.target_example}")
    told = matched.groupdict()
    if told.get("cloud", freeze.cloud) != freeze.cloud:
        return Misfit("policy", f"it is of {told['cloud']}, and the freeze of {freeze.cloud}", "name one of this cloud")
    account = told.get("account")
    if account and freeze.account and account != freeze.account:
        message = f"it is in account {account}, and the freeze in {freeze.account}"
        return Misfit("policy", message, "a group and its policy are of one account: make the two the same")
    return None
