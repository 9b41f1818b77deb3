"""The one tag that Costguard writes on a machine of Alibaba Cloud: until when people keep it."""

from __future__ import annotations

from costguard.domain.actions import Receipt
from costguard.domain.refs import ResourceRef
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.compute.keep_tagger import KeepTagger


class AlibabaKeepTagger(KeepTagger[AlibabaSession]):
    """For one site of Alibaba Cloud. API: ECS TagResources; a key that is there gets the new value."""

    def _write(self, machine: ResourceRef, key: str, value: str) -> Receipt:
        return self._session.change(
            machine.shard,
            "ecs",
            "TagResources",
            RegionId=machine.region,
            ResourceType="instance",
            ResourceId=[machine.native_id],
            Tag=[{"Key": key, "Value": value}],
        )
