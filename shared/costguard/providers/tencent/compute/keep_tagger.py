"""The one tag that Costguard writes on a machine of Tencent Cloud: until when people keep it."""

from __future__ import annotations

from costguard.domain.actions import Receipt
from costguard.domain.errors import RefusedError
from costguard.domain.refs import ResourceRef
from costguard.providers.kit.compute.keep_tagger import KeepTagger
from costguard.providers.kit.core.changes import after_sending
from costguard.providers.kit.core.fields import named, parts
from costguard.providers.tencent.core.session import TencentSession

_API = "tag:TagResources"


class TencentKeepTagger(KeepTagger[TencentSession]):
    """For one site of Tencent Cloud. API: Tag TagResources, which tells what failed inside a success."""

    def _write(self, machine: ResourceRef, key: str, value: str) -> Receipt:
        name = f"qcs::cvm:{machine.region}:uin/{machine.account}:instance/{machine.native_id}"
        tags = [{"TagKey": key, "TagValue": value}]
        answer = self._session.call(machine.shard, "tag", "TagResources", ResourceList=[name], Tags=tags)
        with after_sending(_API):
            failed = parts(answer, "FailedResources")
            if not failed:
                return Receipt(request_id=named(answer, "RequestId"))
            code = named(failed[0], "Code")
        message = f"{_API}: {machine} was not tagged: {code}"
        raise RefusedError(message, operation=_API, code=code)
