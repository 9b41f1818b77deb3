"""What several of the documents users write are made of. Imported only while a policy is loaded: it needs pydantic."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationInfo, field_validator, model_validator
from typing_extensions import Self

from costguard.guards.rules.common import Limits
from costguard.policy.documents import fields as f
from costguard.policy.syntax.problems import BadValueError
from costguard.policy.syntax.values import ALL, nonempty

_LIMITS = Limits()


class Document(BaseModel):
    """Strict and frozen; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class MatchDocument(Document):
    """What something must match: of every key but `tags` a list of which one does. It may not be empty."""

    @field_validator("*", mode="before")
    @classmethod
    def _a_list(cls, raw: Any, info: ValidationInfo) -> Any:
        if info.field_name != "tags" and isinstance(raw, str):
            raise BadValueError("expected a list", f'write ["{raw}"]')
        return raw

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise BadValueError("an empty mapping matches nothing", ALL)
        return self


class SelectorDocument(MatchDocument):
    """Which instances: every key given must match."""

    clouds: f.CloudPatterns | None = None
    accounts: f.AccountPatterns | None = None
    regions: f.RegionPatterns | None = None
    instance_types: f.TypePatterns | None = None
    billing: f.BillingWords | None = None
    tags: f.TagPatterns | None = None
    resources: f.ResourceIds | None = None
    resource_groups: f.GroupPatterns | None = None


SelectorDocuments = Annotated[
    tuple[SelectorDocument, ...], AfterValidator(nonempty("leave the key out to except nothing"))
]


class LimitsDocument(Document):
    """`safety` of what stops at most."""

    actions_per_day: f.Count = _LIMITS.actions_per_day
    fleet_share_per_day: f.Share = _LIMITS.fleet_share_per_day
    hourly_cost_stopped_per_day: f.Caps = _LIMITS.hourly_cost_stopped_per_day
    local_disk: f.ConsentWord = _LIMITS.local_disk
