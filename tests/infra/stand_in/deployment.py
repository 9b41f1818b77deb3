"""The checks of infra/alibaba and infra/tencent that Terraform makes, with the stand-in for their provider."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from tests.infra.aws_terraform import ROOT, NotPossibleError, Ran, Workshop, workshop
from tests.infra.parity_published import Cloud, against_published
from tests.infra.stand_in.agreement import disagreements
from tests.infra.stand_in.schema import Field, Published, published
from tests.infra.stand_in.workshop import cli_config

from costguard.settings import VARIABLES

_DRIFT: Final = 2  # `terraform plan -detailed-exitcode`: something would change
_HARMLESS: Final = ({"no-op"}, {"create"}, {"update"}, {"read"})
_LONGEST: Final = 4000  # of Terraform's words, the last
_PROGRESS: Final = re.compile(
    r"^.*(?:Refreshing state|Reading|Read complete|Still \w+|\w+ complete after).*\n", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Deployment:
    """One cloud's modules, what they are given here, and what must not pass."""

    cloud: Cloud
    variables: Mapping[str, Any]
    enforcing: Mapping[str, Any]  # what is added where it acts, in further accounts too
    member: Mapping[str, Any]
    answers: Mapping[str, Mapping[str, Any]]  # what the cloud is made to say (STAND_IN_ANSWERS)
    ledger: str  # what `ledger` is then
    refused: str  # resources that the published provider does not take
    refusals: tuple[str, ...]  # what must be said of them, each
    kept_secrets: frozenset[str] = frozenset()  # TYPE.ARGUMENT that stands in the state, and opens nothing

    @property
    def module(self) -> str:
        """Its folder."""
        return f"infra/{self.cloud.folder}"


def by_names(one: Deployment) -> list[str]:
    """What can be said without Terraform: words that the provider does not publish, pages that its source denies."""
    return [*against_published(one.cloud), *disagreements(one.cloud)]


def checked(one: Deployment, *, apply: bool) -> list[str]:
    """What is wrong, a line each; `apply` sets both modules up with the stand-in, and takes them down again.

    Raises:
        NotPossibleError: there is no Terraform here, or not what the stand-in is made with.
    """
    wrong = by_names(one)
    try:
        return wrong + _by_terraform(one, apply=apply)
    except NotPossibleError as err:
        if not wrong:
            raise
        return [*wrong, f"the rest is not checked: {err}"]


def _by_terraform(one: Deployment, *, apply: bool) -> list[str]:
    wrong: list[str] = []
    with _shop(one) as shop:
        wrong += _misformatted(one, shop)
        for module in (one.module, f"{one.module}/member"):
            shop.ready(module)
            wrong += _invalid(one, shop, module)
        wrong += _let_pass(one, shop)
        if apply and not wrong:
            wrong += _Stage(one, shop, published(one.cloud.prefix)).checked()
    return wrong


@contextmanager
def _shop(one: Deployment) -> Iterator[Workshop]:
    with workshop((one.module, "infra/modules", "functions")) as shop:
        config = cli_config(shop.root / "stand-in")
        yield replace(shop, environment={**shop.environment, "TF_CLI_CONFIG_FILE": str(config)})


def _misformatted(one: Deployment, shop: Workshop) -> Iterator[str]:
    ran = shop.run(one.module, "fmt", "-check", "-recursive")
    if ran.status:
        yield f"terraform fmt would change {' '.join(ran.text.split())}"


def _invalid(one: Deployment, shop: Workshop, module: str) -> Iterator[str]:
    said = _validated(shop, module)
    if said:
        yield from (f"terraform validate in {module}: {words}" for words in said)
        return
    bundles = ("-var", f"bundles={shop.bundles}") if module == one.module else ()
    tested = shop.run(module, "test", "-no-color", *bundles)
    if tested.status:
        # after a failure Terraform lists all that its stand-in had made
        left = re.compile(r"Terraform left the following resources.*?(?=^tests/|\Z)", re.DOTALL | re.MULTILINE)
        yield f"terraform test in {module}:\n{left.sub('', tested.text)}"


def _validated(shop: Workshop, module: str) -> list[str]:
    """Each error that Terraform finds."""
    said = json.loads(shop.run(module, "validate", "-json").text)
    return [f"{one['summary']} {one['detail']}" for one in said["diagnostics"] if one["severity"] == "error"]


def _let_pass(one: Deployment, shop: Workshop) -> Iterator[str]:
    """A stand-in that takes everything would show nothing: it refuses what the published provider refuses."""
    folder = shop.root / "infra" / "refused"
    folder.mkdir()
    known = published(one.cloud.prefix)
    needed = f'{one.cloud.prefix} = {{ source = "{known.source}", version = "{known.version}" }}'
    text = f"terraform {{\n  required_providers {{\n    {needed}\n  }}\n}}\n{one.refused}"
    (folder / "main.tf").write_text(text, "utf-8")
    shop.ready("infra/refused")
    said = _validated(shop, "infra/refused")
    yield from (
        f"the stand-in lets pass: {words}" for words in one.refusals if not any(words in refusal for refusal in said)
    )
    if len(said) > len(one.refusals):
        yield f"the stand-in refuses more than it should: {said}"


@dataclass(frozen=True, slots=True)
class _Stage:
    one: Deployment
    shop: Workshop
    known: Published

    def checked(self) -> Iterator[str]:
        """Apply, look, plan again, take down; ends at what makes the rest senseless."""
        given = {**self.one.variables, "bundles": str(self.shop.bundles)}
        answers = self.shop.root / "answers.json"
        answers.write_text(json.dumps(self.one.answers), "utf-8")
        made = self._run(self.one.module, given, "apply", "-auto-approve", more={"STAND_IN_ANSWERS": str(answers)})
        if made.status:
            yield f"apply: {_gist(made)}"
            return
        yield from self._told()
        yield from self._secrets()
        yield from self._unmoved(self.one.module, given)
        yield from self._in_place({**given, **self.one.enforcing})
        yield from self._removed(given)
        yield from self._member()

    def _run(self, module: str, given: Mapping[str, Any], *words: str, more: Mapping[str, str] | None = None) -> Ran:
        said = [
            part
            for name, value in given.items()
            for part in ("-var", f"{name}={value if isinstance(value, str) else json.dumps(value)}")
        ]
        return self.shop.run(module, *words, "-no-color", "-input=false", *said, more=more)

    def _told(self) -> Iterator[str]:
        """What the page of the deployment reads from the outputs."""
        told = json.loads(self.shop.run(self.one.module, "output", "-json").text)
        outputs = {name: output["value"] for name, output in told.items()}
        functions = {path.parent.name for path in (ROOT / "functions").glob("*/function.yaml")}
        for name in ("functions", "roles", "logs"):
            if set(outputs[name]) != functions or not all(outputs[name].values()):
                yield f"output {name} is not one for each function: {outputs[name]}"
        if not outputs["answer_url"].startswith("https://"):
            yield f"answer_url is {outputs['answer_url']!r}"
        if outputs["ledger"] != self.one.ledger:
            yield f"ledger is {outputs['ledger']!r}, and not {self.one.ledger!r}"
        if not outputs["alarms"]["names"] or not outputs["alarms"]["topic"] or not outputs["alarms"]["dead_man"]:
            yield f"nobody is told: {outputs['alarms']}"

    def _secrets(self) -> Iterator[str]:
        """No value of a secret stands in the state: secrets go by name, and what the provider calls secret is empty."""
        state = json.loads((self.shop.root / self.one.module / "terraform.tfstate").read_text("utf-8"))
        secret = {variable.name for variable in VARIABLES if variable.secret}
        found: set[str] = set()
        for resource in state["resources"]:
            kind = self.known.resources.get(resource["type"])
            for instance in resource["instances"] if kind is not None and resource["mode"] == "managed" else ():
                attributes = instance["attributes"]
                found |= {f"{resource['type']}.{name}" for name in _sensitive(kind.fields if kind else {}, attributes)}
                given = attributes.get("environment_variables") or attributes.get("environment") or {}
                shown = sorted(name for name in secret & set(given) if not given[name].startswith("secret:"))
                if shown:
                    yield f"{resource['type']}.{resource['name']} is given {', '.join(shown)} itself, not its name"
        if found != self.one.kept_secrets:
            yield f"secrets in the state: {sorted(found)}, and not {sorted(self.one.kept_secrets)}"

    def _unmoved(self, module: str, given: Mapping[str, Any]) -> Iterator[str]:
        again = self._run(module, given, "plan", "-detailed-exitcode")
        if again.status:
            says = "would change things" if again.status == _DRIFT else "fails"
            yield f"a second plan of {module} {says}: {_gist(again)}"

    def _in_place(self, given: Mapping[str, Any]) -> Iterator[str]:
        """From looking to acting, with new code: every function gets it, and nothing but the old code is taken down."""
        for bundle in self.shop.bundles.glob("*.zip"):
            bundle.write_bytes(bundle.read_bytes() + b"another")
        plan = self._run(self.one.module, given, "plan", "-out=enforcing.tfplan")
        if plan.status:
            yield f"plan to enforce: {_gist(plan)}"
            return
        shown = json.loads(self.shop.run(self.one.module, "show", "-json", "enforcing.tfplan").text)
        changes = {change["address"]: set(change["change"]["actions"]) for change in shown["resource_changes"]}
        lost = sorted(address for address, actions in changes.items() if actions not in _HARMLESS)
        if kept := [address for address in lost if not address.partition(".")[2].startswith("bundle[")]:
            yield f"to enforce, these are made anew: {', '.join(kept)}"
        functions = [address for address in changes if re.match(r"\w+_function\.", address)]
        if old := [address for address in functions if changes[address] != {"update"}]:
            yield f"with new code, these are not changed: {', '.join(old)}"
        if not functions or len(lost) - len(kept) != len(functions):
            yield f"new code is not brought for every function: {', '.join(lost)}"

    def _removed(self, given: Mapping[str, Any]) -> Iterator[str]:
        """As the deploy page has it: what is kept is let go first, then destroyed."""
        kept = self._run(self.one.module, given, "destroy", "-auto-approve", f"-target={self._ledger()}")
        if not kept.status:
            yield "the ledger may be destroyed by anybody"
        unprotected = {**given, "deletion_protection": False}
        for words in (("apply", "-auto-approve"), ("destroy", "-auto-approve")):
            ran = self._run(self.one.module, unprotected, *words)
            if ran.status:
                yield f"{words[0]} without protection: {_gist(ran)}"
                return
        yield from self._gone(self.one.module)

    def _ledger(self) -> str:
        listed = self.shop.run(self.one.module, "state", "list").text.split()
        return next(address for address in listed if re.fullmatch(r"\w+_instance\.ledger", address))

    def _member(self) -> Iterator[str]:
        """A guarded account: looking, then acting, then gone."""
        module = f"{self.one.module}/member"
        for given in (self.one.member, {**self.one.member, "acting": True}):
            made = self._run(module, given, "apply", "-auto-approve")
            if made.status:
                yield f"apply of {module}: {_gist(made)}"
                return
            yield from self._unmoved(module, given)
        gone = self._run(module, self.one.member, "destroy", "-auto-approve")
        if gone.status:
            yield f"destroy of {module}: {_gist(gone)}"
        yield from self._gone(module)

    def _gone(self, module: str) -> Iterator[str]:
        left = self.shop.run(module, "state", "list").text.strip()
        if left:
            yield f"left behind in {module}: {left}"


def _gist(ran: Ran) -> str:
    return _PROGRESS.sub("", ran.text)[-_LONGEST:]


def _sensitive(fields: Mapping[str, Field], attributes: Mapping[str, Any]) -> Iterator[str]:
    """Whatever the provider calls secret and has a value."""
    for name, field in fields.items():
        value = attributes.get(name)
        if field.said.get("sensitive") and value:
            yield name
        if isinstance(field.of, Mapping):
            inner = field.of
            yield from (f"{name}.{found}" for one in value or [] for found in _sensitive(inner, one))
