"""What is attached where: organization 2021-03-31 and cam 2019-01-16."""

from __future__ import annotations

from cloudstand.tencent.core.parameters import TEXT, Table, Text, Whole

_ID = Whole(0)
_KIND = Text(("SERVICE_CONTROL_POLICY", "TAG_POLICY"))
_PAGE: Table = {"Page": Whole(1, 200), "Rp": Whole(1, 200), "Keyword?": TEXT}

LIST_POLICIES_FOR_TARGET: Table = {"TargetId!": _ID, "PolicyType": _KIND, **_PAGE}
ATTACH_POLICY: Table = {"TargetId!": _ID, "TargetType!": Text(("NODE", "MEMBER")), "PolicyId!": _ID, "Type": _KIND}
DETACH_POLICY = ATTACH_POLICY
LIST_ATTACHED_GROUP_POLICIES: Table = {"TargetGroupId!": _ID, **_PAGE}
ATTACH_GROUP_POLICY: Table = {"PolicyId!": _ID, "AttachGroupId!": _ID}
DETACH_GROUP_POLICY: Table = {"PolicyId!": _ID, "DetachGroupId!": _ID}
