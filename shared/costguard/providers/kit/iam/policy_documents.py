"""Which policy documents there are, what each is for, and which function's role has which. Each cloud writes its own.

One document a purpose: a role gets just those of its function, and `deny` with whatever else it has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any

from costguard.domain.errors import InvalidInputError
from costguard.guards.rules.common import TAGS_DENIED_BY_ROLE
from costguard.providers.kit.iam.permissions import READING, Feature, Operation

Document = dict[str, Any]
Statement = dict[str, Any]

MOST_CHARACTERS = 6144
"""Of one managed policy without its white space ("IAM quotas"), of one custom policy (RAM, "Limitations").

Of CAM no page at hand tells: its documents are kept below the same.
"""

NAME = "costguard"
"""What the names of tables, buckets, secrets and freezing policies begin with, unless they are called otherwise."""

CONSOLE_BUDGETS = "console-budgets"
"""Of people: no function asks what budgets the console has."""

MEMBER_ROLE = "costguard"
"""What the role in a member account is called, unless it is called otherwise."""


class Lists(str, Enum):
    """The part of the inventory that a guard of something else than machines reads."""

    REGIONS = "regions"
    MACHINES = "machines"  # and regions, without the closer look before an action


@dataclass(frozen=True, slots=True)
class Purpose:
    """One policy document; `name` is its file's. `lists` adds a part of the inventory to its features."""

    name: str
    why: str
    features: frozenset[Feature] = frozenset()
    lists: Lists | None = None

    @property
    def is_of_parts(self) -> bool:
        """Whether it reads something else than its features as they are."""
        return self.lists is not None or Feature.BILLING in self.features


@dataclass(frozen=True, slots=True)
class Needs:
    """The purposes of one function's role.

    `always`; `enforcing` only where a rule enforces; `members` only where there are further accounts; `asked` each
    only where the policy or the settings ask for what it does.
    """

    always: tuple[str, ...]
    enforcing: tuple[str, ...] = ()
    members: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What narrows documents further; empty: everywhere, and whatever its tags.

    `tags` limit stopping, starting and terminating to machines that have one of the values for every key named.
    `kept_tags` are those that no machine may be stopped with. `name` begins the names of what Costguard keeps, and
    `account` is the one that the documents are for. `spot_may_end` leaves Spot machines out of the denials;
    `flow_log_roles` are handed to flow logs that go to a log group of AWS. `organisation` is the one whose accounts
    alone are entered; `freezing_policies` are the service control policies that freezes attach, by id.
    """

    regions: tuple[str, ...] = ()
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kept_tags: tuple[str, ...] = TAGS_DENIED_BY_ROLE
    name: str = NAME
    member_role: str = MEMBER_ROLE
    partition: str = "aws"
    account: str = ""
    spot_may_end: bool = False
    flow_log_roles: tuple[str, ...] = ()
    organisation: str = ""
    freezing_policies: tuple[str, ...] = ()


EVERYWHERE = Narrowing()

_MACHINES = frozenset({Feature.STOP, Feature.SNAPSHOT, Feature.TERMINATE})
_SCAN_BUDGET = READING | {Feature.BILLING}

PURPOSES: Mapping[str, Purpose] = MappingProxyType(
    {
        purpose.name: purpose
        for purpose in (
            Purpose("scan-idle_gpu", "reads machines, metrics, prices and who launched what", READING),
            Purpose("scan-budget", "reads bills, and what scan-idle_gpu reads", _SCAN_BUDGET),
            Purpose("scan-kms_rotation", "reads keys and their users", frozenset({Feature.KEYS}), Lists.REGIONS),
            Purpose(
                "scan-network_audit", "reads networks and who is in them", frozenset({Feature.NETWORK}), Lists.MACHINES
            ),
            Purpose("act-idle_gpu", "stops and terminates machines, and makes snapshots", _MACHINES),
            Purpose("act-budget", "stops machines", frozenset({Feature.STOP})),
            Purpose("rotate", "rotates keys", frozenset({Feature.ROTATE})),
            Purpose("succeed", "makes a key in another's place and moves its alias", frozenset({Feature.SUCCEED})),
            Purpose("keep_tag", "writes a Keep on its machine, as a tag", frozenset({Feature.KEEP_TAG})),
            Purpose("start", "starts again what it stopped, where the owner asks for it", frozenset({Feature.START})),
            Purpose("fix_network", "mends networks, and undoes that", frozenset({Feature.FIX_NETWORK})),
            Purpose("freeze", "attaches the one freezing policy to groups of people", frozenset({Feature.FREEZE})),
            Purpose(
                "freeze-organisation",
                "attaches the one freezing policy to accounts and units of the organisation",
                frozenset({Feature.FREEZE}),
            ),
            Purpose(
                CONSOLE_BUDGETS,
                "reads the budgets of the console: for people who run `costguard budgets`",
                frozenset({Feature.BILLING}),
            ),
            Purpose("undo", "starts again what was stopped: for people who undo", frozenset({Feature.START})),
            Purpose("clicks", "keeps people's answers in the ledger"),
            Purpose("ledger", "reads and writes the ledger"),
            Purpose("objects", "reads published policies", frozenset({Feature.OBJECTS})),
            Purpose("reports", "keeps reports and digests below reports/", frozenset({Feature.OBJECTS})),
            Purpose("secrets", "reads the settings' own secrets", frozenset({Feature.SECRETS})),
            Purpose("mail", "sends mail", frozenset({Feature.MAIL})),
            Purpose(
                "members",
                "lists the organisation's accounts and enters them by their role",
                frozenset({Feature.MEMBERS, Feature.ORGANISATION}),
            ),
            Purpose(
                "member-scan",
                "for the role in a member account: all that any function reads there",
                _SCAN_BUDGET | {Feature.KEYS, Feature.NETWORK},
            ),
            Purpose(
                "member-act",
                "for the role in a member account: all that any function does there, but successors and freezes",
                _MACHINES | {Feature.ROTATE, Feature.FIX_NETWORK},
            ),
            Purpose("deny", "denies, whatever else is attached, what no run may ever do"),
        )
    }
)

_KEPT = ("deny", "ledger", "secrets", "objects")

FUNCTIONS: Mapping[str, Needs] = MappingProxyType(
    {
        "idle_gpu": Needs(("scan-idle_gpu", *_KEPT), ("act-idle_gpu",), ("members",), ("mail", "keep_tag", "start")),
        "budget": Needs(
            ("scan-budget", *_KEPT), ("act-budget",), ("members",), ("mail", "freeze", "freeze-organisation")
        ),
        "kms_rotation": Needs(("scan-kms_rotation", *_KEPT), ("rotate",), ("members",), ("mail", "succeed")),
        "network_audit": Needs(("scan-network_audit", *_KEPT), ("fix_network",), ("members",), ("mail",)),
        "slack_actions": Needs(("clicks", "deny", "secrets", "objects")),
        "digest": Needs(_KEPT, asked=("mail", "reports")),
    }
)
"""What `needs.policies` of each function.yaml says; a purpose that a cloud does without has no document there."""


def purpose_named(name: str) -> Purpose:
    """The purpose of that name.

    Raises:
        InvalidInputError: there is none.
    """
    found = PURPOSES.get(name)
    if found is None:
        message = f"{name!r} is no purpose; expected one of {', '.join(PURPOSES)}"
        raise InvalidInputError(message)
    return found


_NOT_READ = frozenset({Feature.MEMBERS, Feature.SUCCEED, Feature.FREEZE, Feature.SECRETS})
"""Features whose reads are narrowed to what they are about, in statements of their own."""


def read_permissions(table: Iterable[Operation], features: Collection[Feature]) -> list[str]:
    """What reads of these features need."""
    wanted = (one for one in table if one.feature in features and one.feature not in _NOT_READ)
    return sorted({name for one in wanted if not one.changes_something for name in one.permissions})


@dataclass(frozen=True, slots=True)
class Maker:
    """How one cloud's documents are made of the purposes.

    `version` is that of its policy language, which writes its own words `small` or not. `granted` allows what features
    call, and `narrowed` is what one such statement becomes. Purposes in `own` are not made of features, those in
    `without` need no permission. `of_people` are actions that no function needs, `listed` the part of the inventory
    that a purpose lists.
    """

    version: str
    granted: Callable[[frozenset[Feature], Narrowing], list[Statement]]
    narrowed: Callable[[Statement, Narrowing], Iterable[Statement]]
    own: Mapping[str, Callable[[Narrowing], Iterable[Statement]]]
    of_people: Collection[str]
    listed: Mapping[Lists, Sequence[str]]
    without: Collection[str] = ()
    small: bool = False

    def documents(self, narrow: Narrowing = EVERYWHERE) -> dict[str, Document]:
        """The document of every purpose that has one, by its name."""
        version, statement = self._word("Version"), self._word("Statement")
        return {
            each.name: {version: self.version, statement: list(self._statements(each, narrow))}
            for each in PURPOSES.values()
            if each.name not in self.without
        }

    def _statements(self, purpose: Purpose, narrow: Narrowing) -> Iterable[Statement]:
        """What its features call, as permissions.py has it, if it is made of any; what is denied is `deny`'s."""
        if purpose.name in self.own:
            return self.own[purpose.name](narrow)
        allowed = self.granted(purpose.features, narrow)
        if purpose.is_of_parts:
            (read,) = allowed
            of_people = purpose.name == CONSOLE_BUDGETS
            mine = [name for name in read[self._word("Action")] if (name in self.of_people) is of_people]
            listed = self.listed[purpose.lists] if purpose.lists is not None else ()
            read[self._word("Action")] = sorted({*mine, *listed})
        return [done for one in allowed for done in self.narrowed(one, narrow)]

    def _word(self, word: str) -> str:
        return word.lower() if self.small else word


def file_text(document: Document) -> str:
    """As it stands in a file: a line for each statement, so that white space takes little of what a policy may hold."""
    lines = []
    for key, value in document.items():
        if isinstance(value, list):
            rows = ",\n".join(f"    {json.dumps(statement, ensure_ascii=False)}" for statement in value)
            lines.append(f'  "{key}": [\n{rows}\n  ]')
        else:
            lines.append(f'  "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def characters(document: Document) -> int:
    """How long it is without white space, which is what a cloud's limit counts at best."""
    return len(json.dumps(document, separators=(",", ":"), ensure_ascii=False))


def spellings(names: Iterable[str]) -> tuple[str, ...]:
    """Each name as people write it: `do-not-stop`, `do_not_stop`, `donotstop`."""
    forms = {form for name in names for form in (name, name.replace("-", "_"), name.replace("-", ""))}
    return tuple(sorted(forms))
