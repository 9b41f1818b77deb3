"""The one tag that Costguard writes on a machine of AWS: until when people keep it."""

from __future__ import annotations

from costguard.domain.actions import Receipt
from costguard.domain.refs import ResourceRef
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.kit.compute.keep_tagger import KeepTagger


class AwsKeepTagger(KeepTagger[AwsSession]):
    """For one partition of AWS. API: EC2 CreateTags, which overwrites the value of a key that is there."""

    def _write(self, machine: ResourceRef, key: str, value: str) -> Receipt:
        tags = [{"Key": key, "Value": value}]
        return self._session.change(machine.shard, "ec2", "CreateTags", Resources=[machine.native_id], Tags=tags)
