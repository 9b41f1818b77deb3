"""Everything the program does in a cloud, each part with exactly the documents of the role that does it."""

from __future__ import annotations

import io
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from moto.dynamodb.models import dynamodb_backends
from moto.s3.models import s3_backends
from moto.secretsmanager.models import secretsmanager_backends
from moto.ses.models import ses_backends
from tests.contract.cloud_worlds import environment_of
from tests.permissions.bucket_judge import BucketJudge
from tests.permissions.place import DOCTOR, MEMBERS, Place, Record, documents, place

from cloudstand.fleets import ALIBABA_ACCOUNT, GUANGZHOU, HANGZHOU, PRODUCT, RESEARCH, TENCENT_ACCOUNT
from cloudstand.wire.authority import Authority
from costguard.bootstrap import open_memory, run_function
from costguard.cli.main import run as run_command
from costguard.cli.program import Program
from costguard.connections.objects import open_objects
from costguard.connections.people import notifier_over
from costguard.connections.secrets import open_secret_store
from costguard.domain.actions import Verb
from costguard.engine.answers.answers import snooze
from costguard.engine.ledger.codec import value_of
from costguard.engine.ledger.intents import Intent
from costguard.guards.rules.common import KEEP_TAG
from costguard.ports import Message, Put, VersionCheck
from costguard.ports import Record as Row
from costguard.providers.aws.core.store import open_dynamodb
from costguard.settings import Secret, SecretReference, Settings

POLICY = Path(__file__).with_name("policy")
EAST = "us-east-1"
MANY = 1000
_CHOSEN_BY_AWS = "p-chosenbyaws"
_MANY_MEMBERS = """\
version: 1
mode: enforce
accounts:
  - cloud: aws
    id: "111122223333"
    regions: [us-east-1]
    organisation: true
    role: costguard
    external_id: costguard-sandbox
notify:
  default: "slack:#gpu-costs"
  answers: {slack_team: T0SANDBOX, approvers: [U0PLATFM1, U0FINOPS1]}
"""
_QUARTER, _DAY = timedelta(minutes=15), timedelta(days=1)
_SCANS = ("scan-idle_gpu", "scan-budget", "scan-kms_rotation", "scan-network_audit")
_ASKED = {"idle_gpu": ("keep_tag", "start"), "kms_rotation": ("succeed",), "budget": ("freeze", "freeze-organisation")}
_PERSON = ("members", *_SCANS)


def settings_of(at: Place, folder: Path) -> Settings:
    """As each function and command here has them; the policy names the id that the cloud gave the freezing one."""
    policy = Path(shutil.copytree(POLICY, folder / "policy", dirs_exist_ok=True))
    written = policy / "costguard.yaml"
    written.write_text(written.read_text("utf-8").replace(_CHOSEN_BY_AWS, at.policy), "utf-8")
    return at.settings(Settings(policy=str(policy), ledger=Secret(f"sqlite:///{folder}/ledger.sqlite3")))


def live(at: Place, settings: Settings, days: Sequence[Sequence[str]]) -> None:
    """Day by day, the functions that run on each."""
    for functions in days:
        for function in functions:
            with at.as_function(function, *_ASKED.get(function, ())):
                run_function(function, f"{function} {at.sandbox.clock.now()}", None, settings, at.sandbox.clock)
            at.sandbox.advance(_QUARTER)
        at.sandbox.advance(_DAY - len(functions) * _QUARTER)


def ladder(at: Place, folder: Path) -> None:
    """Machines and budgets for two weeks: notices, stops, freezes, snapshots and ends; some of it is taken back."""
    settings, both = settings_of(at, folder), ("idle_gpu", "budget")
    live(at, settings, (both, both, both, both))
    taking_back(at, settings)
    live(at, settings, ((), (), (), (), (), ("idle_gpu",), ("idle_gpu",), ("idle_gpu",), ("idle_gpu", "digest")))
    for freeze in ("aws-member", "aws-group", "alibaba-member", "alibaba-group", "tencent-member", "tencent-group"):
        with at.with_roles("thaw", ()):
            command(at, settings, "budgets", "thaw", freeze, "--reason", "it is over", "--by", "platform")
    live(at, settings, (("budget",), ("budget",)))


_PASSES = (  # means, days, and which keys
    ("successor", 7, ", applies_when_all: {aliases: [artefact-signing, customer-uploads, ad-features]}"),
    ("on_demand", 3, ""),
    ("automatic", 3, ""),
)


def rotating(at: Place, folder: Path) -> None:
    """Keys: a successor made, its alias moved there and back, rotation set, rotated on demand. One rule at a time."""
    settings, sandbox = settings_of(at, folder), at.sandbox
    assert sandbox.alibaba is not None
    assert sandbox.tencent is not None
    sandbox.alibaba.kms.unopened.add(MEMBERS["alibaba"])
    sandbox.tencent.key_desk.unopened.add(MEMBERS["tencent"])
    for number, (means, days, which) in enumerate(_PASSES):
        policy = Path(shutil.copytree(settings.policy, folder / f"{number}"))
        rule = f"{{name: {means}, mode: enforce, rotate_every: 90d, wait: 1h, means: [{means}]{which}}}"
        (policy / "policies" / "keys.yaml").write_text(f"kms_rotation: [{rule}]\n", encoding="utf-8")
        changed = replace(settings, policy=str(policy))
        live(at, changed, [("kms_rotation",)] * days)
        if which:
            taking_back(at, changed)


def mending(at: Place, folder: Path) -> None:
    """Networks: narrowed, detached, released, recorded, and put back."""
    settings = settings_of(at, folder)
    live(at, settings, [("network_audit",)] * 3)
    taking_back(at, settings)


def alone(at: Place, folder: Path) -> None:
    """The budget guard with nobody before it: it looks closer, asks the trail, and stops."""
    assert at.sandbox.tencent is not None
    at.sandbox.tencent.desk.pay_themselves = frozenset({MEMBERS["tencent"]})
    live(at, settings_of(at, folder), [("budget",)] * 3)


def entering(at: Place, folder: Path) -> None:
    """A thousand members of one organisation are entered: by one pattern, and by their numbers in several policies."""
    settings = settings_of(at, folder)
    (Path(settings.policy) / "costguard.yaml").write_text(_MANY_MEMBERS, "utf-8")
    (Path(settings.policy) / "policies" / "budgets.yaml").unlink()
    for listed in ((), (PRODUCT, *at.sandbox.more)):
        at.listed = listed
        with at.as_function("idle_gpu"):
            figures = run_function("idle_gpu", f"entering {at.sandbox.clock.now()}", None, settings, at.sandbox.clock)
        assert figures["gaps"] == 0, figures
        entered = {account for account, name in at.judge.asked if name == "ec2:DescribeInstances"}
        assert entered == {RESEARCH, PRODUCT, *at.sandbox.more}, len(entered)
        at.judge.asked.clear()
        at.sandbox.advance(_DAY)


def taking_back(at: Place, settings: Settings) -> None:
    """People undo one action of each kind on each cloud."""
    person = (*_PERSON, "undo", "fix_network", "succeed")
    tried: set[tuple[str, str, str]] = set()
    for intent in list(_intents(settings)):
        mend = intent.action.mend.kind.value if intent.action.mend is not None else ""
        kind = (intent.action.subject.cloud, intent.action.verb.value, mend)
        if kind in tried:
            continue
        with at.with_roles("undo", person, ("member-scan", "member-act", "undo", "succeed")):
            undone = command(
                at, settings, "undo", intent.action.action_id, "--yes", "--reason", "needed", "--by", "platform"
            )
        if undone == 0:
            tried.add(kind)


def looking(at: Place, folder: Path) -> None:
    """People ask whether it is safe to enforce, and what the console's budgets say."""
    settings = settings_of(at, folder)
    acting = ("act-idle_gpu", "undo", "freeze", "freeze-organisation")
    with at.with_roles(DOCTOR, (*_PERSON, *acting), ("member-scan", "member-act", "undo")):
        command(at, settings, "doctor", "--json")
    with at.with_roles("budgets", (*_PERSON, "console-budgets"), ("member-scan", "console-budgets")):
        command(at, settings, "budgets", "adopt")


def tagging(at: Place, folder: Path) -> None:
    """A Keep of one machine on each cloud is written on it, with the documents that the function has for that."""
    settings, kept = settings_of(at, folder), []
    with (Path(settings.policy) / "costguard.yaml").open("a", encoding="utf-8") as written:
        written.write("keep_as_tag: true\n")
    live(at, settings, [("idle_gpu",)])
    memory = open_memory(settings)
    with closing(memory.store):
        for cloud in ("aws", "alibaba", "tencent"):
            case = next(one for one in memory.cases.active("idle_gpu") if one.subject.cloud == cloud)
            snooze(memory, case.subject, 7 * _DAY, "vision", "needed", at.sandbox.clock.now())
            kept.append(case.subject.native_id)
    live(at, settings, [("idle_gpu",)])
    with at.sandbox.door.opened() as world:
        assert all(KEEP_TAG in world.machines[native_id].tags for native_id in kept)


def starting(at: Place, folder: Path) -> None:
    """A machine that was stopped on each cloud is started again, with the documents that the function has for that."""
    settings, asked = settings_of(at, folder), []
    with (Path(settings.policy) / "costguard.yaml").open("a", encoding="utf-8") as written:
        written.write("start_again: true\n")
    live(at, settings, [("idle_gpu",)] * 4)
    memory = open_memory(settings)
    with closing(memory.store):
        for cloud in ("aws", "alibaba", "tencent"):
            stopped = (one for one in memory.cases.active("idle_gpu") if one.climbed_at(Verb.STOP) is not None)
            case = next(one for one in stopped if one.subject.cloud == cloud)
            assert command(at, settings, "start", str(case.subject), "--by", "vision") == 0
            asked.append(case.subject.native_id)
    live(at, settings, [("idle_gpu",)] * 2)
    with at.sandbox.door.opened() as world:
        states = [world.machines[native_id].state.value for native_id in asked]
    assert states == ["running"] * 3, states


def keeping(at: Place, folder: Path) -> None:
    """What the functions keep and read beside the clouds they guard: ledger, reports, policies, secrets, mail."""
    settings = settings_of(at, folder)
    _ledger(at, settings)
    _reports(at, settings)
    _buckets(at, settings)
    _secrets(at, settings)
    _mail(at, settings)


def command(at: Place, settings: Settings, *arguments: str) -> int:
    """One command line, whose words nobody needs here; its exit status."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return run_command(arguments, program=Program(settings=lambda: settings, clock=at.sandbox.clock))


def _intents(settings: Settings) -> Iterator[Intent]:
    memory = open_memory(settings)
    with closing(memory.store):
        yield from (value_of(Intent, record) for record in memory.store.query("intent"))


def _ledger(at: Place, settings: Settings) -> None:
    key = settings.aws.key
    assert key is not None
    named = {"AWS_ACCESS_KEY_ID": key.key_id, "AWS_SECRET_ACCESS_KEY": key.secret.reveal()}
    url = f"dynamodb://costguard-ledger?region={EAST}&endpoint_url={at.judge.url}"
    with environment_of(named):
        ledger = open_dynamodb(url)
        ledger.create_table()
        for number, role in enumerate((("ledger", "deny"), ("clicks", "deny"))):
            with at.with_roles("ledger", role):
                kept = ledger.put(Row("case", f"one-{number}", {"a": 1}), 0)
                ledger.transact(
                    [Put(Row("case", f"two-{number}", {}), 0), VersionCheck("case", kept.key, kept.version)]
                )
                assert ledger.get("case", kept.key) is not None
                assert ledger.get_many("case", [kept.key, "none"]).keys() == {kept.key}
                assert len(list(ledger.query("case"))) == 2 * (number + 1)
                chain = f"run-{number}/a-shard"
                ledger.transact([Put(Row("audit", f"{chain}/1", {}), 0), Put(Row("audit_head", chain, {}), 0)])
                ledger.put(Row("audit_head", chain, {}), 1)
                assert ledger.get("audit_head", chain) is not None
                assert len(list(ledger.query("audit"))) == number + 1
        ledger.close()
    dynamodb_backends.pop(RESEARCH, None)


def _reports(at: Place, settings: Settings) -> None:
    s3_backends[RESEARCH]["aws"].create_bucket("costguard-files", EAST)
    for prefix, role in (("reports", ("reports", "deny")), ("policies", ("objects", "deny"))):
        objects = open_objects(
            replace(settings, reports=f"s3://costguard-files/{prefix}?region={EAST}"), at.sandbox.clock
        )
        assert objects is not None
        if prefix == "policies":
            objects.put("bundle.json", b"{}", "application/json")  # as CI publishes it, with a role of its own
        with at.with_roles("files", role):
            if prefix == "reports":
                objects.put("bundle.json", b"{}", "application/json")
            assert objects.get("bundle.json") == b"{}"


def _buckets(at: Place, settings: Settings) -> None:
    """OSS and COS answer here at an address of their own."""
    for cloud, scheme, bucket in (
        ("alibaba", "oss", "costguard-files"),
        ("tencent", "cos", "costguard-files-1250000000"),
    ):
        with BucketJudge(cloud) as judge:
            access = replace(getattr(settings, cloud), endpoint_url=judge.url)
            for prefix, role in (("reports", ("reports", "deny")), ("policies", ("objects", "deny"))):
                judge.kept[f"{bucket}/policies/bundle.json"] = b"{}"
                url = f"{scheme}://{bucket}/{prefix}?region=cn-hangzhou"
                objects = open_objects(replace(settings, reports=url, **{cloud: access}), at.sandbox.clock)
                assert objects is not None
                judge.authority = Authority(documents(cloud, role))
                if prefix == "reports":
                    objects.put("bundle.json", b"{}", "application/json")
                assert objects.get("bundle.json") == b"{}"
                at.record.add("files", cloud, role, [judge.authority])


def _secrets(at: Place, settings: Settings) -> None:
    sandbox, name = at.sandbox, "costguard-slack-token"
    assert sandbox.alibaba is not None
    assert sandbox.tencent is not None
    backend = secretsmanager_backends[RESEARCH][EAST]
    backend.create_secret(
        name=name,
        secret_string="xoxb",
        secret_binary=None,
        description=None,
        tags=[],
        kms_key_id="",
        client_request_token=None,
        replica_regions=[],
        force_overwrite=False,
    )
    sandbox.alibaba.kms.secrets[ALIBABA_ACCOUNT, HANGZHOU, name] = "xoxb"
    sandbox.tencent.key_desk.secrets[TENCENT_ACCOUNT, GUANGZHOU, name, "v1"] = "xoxb"
    for cloud, region, version in (("aws", EAST, ""), ("alibaba", HANGZHOU, ""), ("tencent", GUANGZHOU, "v1")):
        reference = SecretReference("COSTGUARD_SLACK_TOKEN", cloud, name, region=region, version=version)
        with at.with_roles("secrets", ("secrets", "deny")):
            assert open_secret_store(settings, reference, region).read(name, version) == "xoxb"


def _mail(at: Place, settings: Settings) -> None:
    sender = "costguard@example.com"
    ses_backends[RESEARCH][EAST].verify_email_identity(sender)
    for via in ("ses", "directmail"):
        mailing = replace(settings, mail_via=via, mail_from=sender, cloud="alibaba" if via == "directmail" else "aws")
        with at.with_roles("mail", ("mail", "deny")):
            notifier_over(mailing, at.sandbox.clock.now).send(Message("mailto:vision@example.com", "Title", "Text"))


WALKS: Mapping[str, Callable[[Place, Path], None]] = {
    one.__name__: one for one in (entering, ladder, rotating, mending, alone, looking, tagging, starting, keeping)
}


def walked(name: str) -> Record:
    """One walk in a place of its own."""
    # in the signing code of Tencent's SDK, on Python 3.12 and later
    warnings.filterwarnings("ignore", "datetime.datetime.utcfromtimestamp", DeprecationWarning)
    with tempfile.TemporaryDirectory(prefix="costguard-") as folder, place(MANY if name == "entering" else 0) as at:
        WALKS[name](at, Path(folder))
        return at.record
