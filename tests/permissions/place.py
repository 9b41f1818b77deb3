"""Three clouds where every role has exactly its generated policies, and what each role used or was refused is kept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from moto.iam.models import iam_backends
from moto.organizations.models import organizations_backends
from tests.permissions.aws_judge import AwsJudge

from cloudstand.aws.core.seeding import join_organisation
from cloudstand.clouds import STARTS_AT
from cloudstand.demo.fleet import demo_fleet
from cloudstand.demo.keys import demo_keys
from cloudstand.demo.networks import demo_networks
from cloudstand.fleets import (
    ALIBABA_ACCOUNT,
    PRODUCT,
    RESEARCH,
    TENCENT_ACCOUNT,
    alibaba_machine,
    aws_machine,
    tencent_machine,
)
from cloudstand.wire.authority import Authority, Wish
from cloudstand.world import workload
from cloudstand.world.fleet import Disk, MachineSpec
from cloudstand.world.keys import WorldKey
from costguard.cli.sandbox.running import ROLE, Sandbox
from costguard.providers.aws.iam import policy_documents as aws
from costguard.providers.kit.iam.policy_documents import FUNCTIONS, Narrowing
from costguard.settings import Access, AccessKey, Secret, Settings

DOCTOR = "doctor"
_ONE_ROLE_FOR_ALL = ("member-scan", "member-act")  # the sums of what the functions' roles in members have
POLICIES = Path(__file__).parents[2] / "infra"
CLOUDS = ("aws", "alibaba", "tencent")
_IN_ONE = 350  # accounts in one policy, as in infra/aws/roles.tf
_FIRST_MORE = 600000000000
MEMBERS = {"alibaba": "9876543210987654", "tencent": "100087654321"}
_NOTHING = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Action": "x:y", "Resource": "*"}]})


def document(cloud: str, purpose: str) -> dict[str, Any] | None:
    """As the file in infra/ says it; None where the cloud has none."""
    path = POLICIES / cloud / "policies" / f"{purpose}.json"
    return json.loads(path.read_text("utf-8")) if path.is_file() else None


def documents(cloud: str, purposes: Iterable[str]) -> list[dict[str, Any]]:
    """Those of them that the cloud has, as their files say."""
    return [found for found in (document(cloud, purpose) for purpose in purposes) if found is not None]


@dataclass
class Record:
    """What came of each cloud's documents in all that was walked: what was allowed by them, and what by nothing."""

    used: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    refused: list[tuple[str, str, Wish]] = field(default_factory=list)

    def add(self, called: str, cloud: str, purposes: Iterable[str], authorities: Sequence[Authority]) -> None:
        """What a role did, in its own account and in members: it counts for each of its documents that grants it.

        What the doctor asks shows no need: it asks for all that it might find missing.
        """
        used = set() if called == DOCTOR else {name for one in authorities for name in one.used}
        for purpose in purposes:
            known = self.used.setdefault((cloud, purpose), set())
            known |= used & granted(cloud, purpose)
        self.refused += [(cloud, called, wish) for one in authorities for wish in one.refused]

    def join(self, other: Record) -> None:
        """What came of another walk, too."""
        for document, names in other.used.items():
            self.used.setdefault(document, set()).update(names)
        self.refused += other.refused

    def unused(self) -> dict[str, frozenset[str]]:
        """What no walk needed, by `cloud/purpose`, of every file in infra/."""
        found = {}
        for cloud in CLOUDS:
            for path in sorted((POLICIES / cloud / "policies").glob("*.json")):
                left = granted(cloud, path.stem) - self.used.get((cloud, path.stem), frozenset())
                if left:
                    found[f"{cloud}/{path.stem}"] = left
        return found


def granted(cloud: str, purpose: str) -> frozenset[str]:
    """Every action that a file allows."""
    found = document(cloud, purpose)
    return frozenset() if found is None else Authority([found]).granted


class Place:
    """A sandbox whose doors ask documents. Only one at a time, as of any sandbox."""

    def __init__(self, sandbox: _Peopled, judge: AwsJudge) -> None:
        self.sandbox, self.judge = sandbox, judge
        self.record = Record()
        self.listed: tuple[str, ...] = ()
        """Accounts that are entered by their numbers; without any, those of the organisation are."""

    @property
    def policy(self) -> str:
        """The id of the policy that freezes the organisation: AWS's own choice."""
        return self.sandbox.frozen_by

    def documents(self, cloud: str, purposes: Iterable[str]) -> list[dict[str, Any]]:
        """Those of them that the cloud has, with the ids that Terraform puts in: only a deployment knows them."""
        if cloud != "aws":
            return documents(cloud, purposes)
        organisation = organizations_backends[RESEARCH]["aws"].org
        assert organisation is not None
        made = aws.documents(Narrowing(organisation=organisation.id, freezing_policies=(self.policy,)))
        wanted = [made[purpose] for purpose in purposes if purpose in made]
        return wanted if not self.listed else [part for one in wanted for part in _by_number(one, self.listed)]

    def settings(self, bare: Settings) -> Settings:
        """Every address and key, AWS by the judge's door."""
        credentials = self.sandbox.credentials
        key = AccessKey(credentials.access_key_id, Secret(credentials.secret_access_key))
        made = self.sandbox.settings(bare)
        return replace(made, aws=Access(endpoint_url=self.judge.url, key=key))

    @contextmanager
    def as_function(self, name: str, *asked: str) -> Iterator[None]:
        """Everybody's keys are the role of this function that enforces, with what it is asked for besides.

        The role in members is the function's own there: what it reads and does, and no more.
        """
        needs = FUNCTIONS[name]
        own = (*needs.always, *needs.enforcing, *needs.members, *asked)
        scans = [purpose for purpose in needs.always if purpose.startswith("scan-")]
        with self.with_roles(name, own, (*scans, *needs.enforcing, "deny", *asked)):
            yield

    @contextmanager
    def with_roles(self, called: str, own: Sequence[str], member: Sequence[str] = ()) -> Iterator[None]:
        """The documents of these purposes are all that the callers, and the role in members, may do."""
        authorities = {
            (cloud, role): Authority(self.documents(cloud, purposes))
            for cloud in CLOUDS
            for role, purposes in (("", own), (ROLE, member))
        }
        self._enforce(authorities)
        try:
            yield
        finally:
            self._enforce({})
            for cloud in CLOUDS:
                both = [authorities[cloud, ""], authorities[cloud, ROLE]]
                self.record.add(called, cloud, {*own, *member, *_ONE_ROLE_FOR_ALL}, both)

    def _enforce(self, authorities: Mapping[tuple[str, str], Authority]) -> None:
        self.judge.authorities.clear()
        for account in (RESEARCH, PRODUCT, *self.sandbox.more):
            authority = authorities.get(("aws", "" if account == RESEARCH else ROLE))
            if authority is not None:
                self.judge.authorities[account] = authority
        for cloud, leader in (("alibaba", ALIBABA_ACCOUNT), ("tencent", TENCENT_ACCOUNT)):
            emulator = self.sandbox.alibaba if cloud == "alibaba" else self.sandbox.tencent
            assert emulator is not None
            emulator.authorities.clear()
            for (of, role), authority in authorities.items():
                if of == cloud:
                    emulator.authorities[MEMBERS[cloud] if role else leader, role] = authority


def _by_number(document: dict[str, Any], accounts: Sequence[str]) -> Iterator[dict[str, Any]]:
    """A document in parts, as infra/aws/roles.tf makes them: the accounts in place of their organisation."""
    if not any(one["Sid"] == "Assume" for one in document["Statement"]):
        yield document
        return
    for start in range(0, len(accounts), _IN_ONE):
        named = {"StringEquals": {"aws:ResourceAccount": list(accounts[start : start + _IN_ONE])}}
        statements = [{**one, "Condition": named} if one["Sid"] == "Assume" else one for one in document["Statement"]]
        yield {**document, "Statement": statements}


@contextmanager
def place(more: int = 0) -> Iterator[Place]:
    """The demo's clouds, with a member account on each; and `more` that have nothing, on AWS."""
    sandbox = _Peopled(_fleet(STARTS_AT), STARTS_AT)
    sandbox.more = tuple(f"{_FIRST_MORE + number:012d}" for number in range(more))
    with sandbox:
        sandbox.begin()
        judge = AwsJudge(sandbox.endpoint_url, sandbox.door)
        try:
            yield Place(sandbox, judge)
        finally:
            judge.close()


class _Peopled(Sandbox):
    """A sandbox with the demo's keys and networks below a fleet of our own."""

    frozen_by = ""
    more: tuple[str, ...] = ()

    def begin(self) -> None:
        self._world.networks = demo_networks(STARTS_AT)
        for key in demo_keys(STARTS_AT):
            self._world.keys.add(_fit(key))
        self._start()
        self._write_freezes()
        for account in self.more:
            join_organisation(organizations_backends[RESEARCH]["aws"], account)

    def _write_freezes(self) -> None:
        """The policies that a launch freeze attaches, as people would have written them, and whom to."""
        organisation = organizations_backends[RESEARCH]["aws"]
        written = organisation.create_policy(
            Name="freeze", Type="SERVICE_CONTROL_POLICY", Content=_NOTHING, Description="freeze", Tags=[]
        )
        self.frozen_by = written["Policy"]["PolicySummary"]["Id"]
        iam = iam_backends[RESEARCH]["aws"]
        iam.create_group("gpu-users")
        iam.create_policy("", "/", _NOTHING, "costguard-freeze", [])
        assert self.alibaba is not None
        assert self.tencent is not None
        self.alibaba.policies.control.add("cp-costguardfreeze")
        self.alibaba.policies.written.add((ALIBABA_ACCOUNT, "costguard-freeze"))
        self.alibaba.policies.groups[ALIBABA_ACCOUNT, "gpu-users"] = []
        self.tencent.policies.written.update({7001, 7002})
        self.tencent.policies.targets["member", int(MEMBERS["tencent"])] = [1]
        self.tencent.policies.groups[55] = []


def _fit(key: WorldKey) -> WorldKey:
    """The stand-in for KMS signs with few kinds of keys; and some key is to be due on demand on every cloud."""
    if key.spec == "RSA_4096":
        return replace(key, spec="RSA_2048")
    if {"click-logs", "game-saves"}.intersection(key.aliases):
        return replace(key, period_days=365, rotations=[])
    return key


def _fleet(at: datetime) -> tuple[MachineSpec, ...]:
    tags = {"team": "research", "owner": "vision"}
    since = at - timedelta(days=10)
    return (
        *demo_fleet(at),
        alibaba_machine("member-notebook", workload.idle(), since, account=MEMBERS["alibaba"], tags=tags),
        tencent_machine("member-notebook", workload.idle(), since, account=MEMBERS["tencent"], tags=tags),
        # copied while they run, each as one set
        *(
            aws_machine(
                "two-disks",
                "g4dn.xlarge",
                workload.idle(),
                since,
                account=account,
                tags={**tags, "copied": "running"},
                disks=(Disk(100), Disk(200, "/dev/sdf")),
            )
            for account in (RESEARCH, PRODUCT)
        ),
    )
