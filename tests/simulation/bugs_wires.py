"""Bugs between a port and its cloud: in what a provider asks, and in what it makes of the answer."""

from __future__ import annotations

from tests.simulation.planting import Bug, Edit

_AWS = "costguard.providers.aws"
_ALIBABA = "costguard.providers.alibaba"
_TENCENT = "costguard.providers.tencent"
_HAND = "costguard.engine.guards.machines.run"
_ACT = "costguard.engine.run.act"

_SENT_AGAIN = Edit(  # nothing here calls twice; what stands behind it is there should that ever change
    _HAND,
    "        return self._executors[action.subject.cloud].execute(action)\n",
    "        from costguard.domain.errors import OutcomeUnknownError\n\n"
    "        try:\n"
    "            return self._executors[action.subject.cloud].execute(action)\n"
    "        except OutcomeUnknownError:\n"
    '            if action.subject.cloud != "tencent" or action.verb is not Verb.TERMINATE:\n'
    "                raise\n"
    "            return self._executors[action.subject.cloud].execute(action)\n",
)
_LOOK_BEFORE_THE_END = Edit(f"{_TENCENT}.compute.executor", "            self._look_before_the_end(action)\n", "")
_ENDED = Edit(f"{_TENCENT}.compute.executor", "            self._ended.add(native_id)\n", "            pass\n")
_EMPTY_BELIEVED = Edit(
    f"{_ALIBABA}.compute.source", "        if not reading.seen and not reading.gaps:\n", "        if False:\n"
)


def _failure_passed_over(cloud: str) -> Edit:
    return Edit(
        "costguard.providers.kit.compute.source",
        "        except ProviderError as err:\n"
        "            self._require_open(reading, err)\n"
        '            reading.gaps.append(self._gap(shard, "inventory", err))\n',
        "        except ProviderError as err:\n"
        f'            if shard.provider != "{cloud}":\n'
        "                self._require_open(reading, err)\n"
        '                reading.gaps.append(self._gap(shard, "inventory", err))\n',
    )


_STOPPING = (
    Bug(
        "aws-force",
        (5,),
        (
            Edit(
                f"{_AWS}.compute.executor",
                '        return self._change(action, "StopInstances", "StoppingInstances")\n',
                "        self._session.call(\n"
                '            action.resource.shard, "ec2", "StopInstances",\n'
                "            InstanceIds=[action.resource.native_id], Force=True,\n"
                "        )\n"
                "        return Receipt(request_id='forced')\n",
            ),
        ),
    ),
    Bug("alibaba-force-stop", (5,), (Edit(f"{_ALIBABA}.compute.executor", "ForceStop=False", "ForceStop=True"),)),
    Bug("tencent-hard-stop", (5,), (Edit(f"{_TENCENT}.compute.executor", 'StopType="SOFT"', 'StopType="HARD"'),)),
    Bug(
        "alibaba-stop-keeps-the-bill",
        (0,),
        (Edit(f"{_ALIBABA}.compute.executor", 'StoppedMode="StopCharging", ', ""),),
    ),
    Bug(
        "tencent-stop-keeps-the-bill",
        (0,),
        (Edit(f"{_TENCENT}.compute.executor", ', StoppedMode="STOP_CHARGING"', ""),),
    ),
    Bug(
        "aws-whole-shard-at-once",
        (6, 7),
        (
            Edit(
                f"{_AWS}.compute.executor",
                "operation, InstanceIds=[native_id])",
                "operation, InstanceIds=[\n"
                '            each["InstanceId"]\n'
                "            for page in self._session.pages(\n"
                '                action.resource.shard, "ec2", "DescribeInstances", "Reservations"\n'
                "            )\n"
                '            for group in page for each in group["Instances"]\n'
                "        ])",
            ),
        ),
    ),
)

_ONCE = (
    Bug(
        "tencent-ended-forgotten",
        (6,),
        (_SENT_AGAIN, _ENDED, _LOOK_BEFORE_THE_END),
    ),
    Bug(
        "aws-sdk-tries-again",
        (6,),
        (Edit(f"{_AWS}.core.transport", '"total_max_attempts": 1', '"total_max_attempts": 3'),),
    ),
    Bug(
        "changes-tried-again",
        (6,),
        (Edit("costguard.providers.kit.core.pacing", "if changes or attempt >=", "if attempt >="),),
    ),
    Bug(
        "aws-lost-answer-is-a-refusal",
        (6,),
        (Edit(f"{_AWS}.core.errors", "    if changes and sent and not never_sent:", "    if False:"),),
    ),
    Bug(
        "tencent-lost-answer-is-a-refusal",
        (6,),
        (Edit(f"{_TENCENT}.core.errors", "    if changes and err.sent:", "    if False:"),),
    ),
    Bug(
        "cap-released-after-unknown-outcome",
        (7,),
        (
            Edit(
                _ACT,
                "    if any(result.outcome is not Outcome.REFUSED for result in called):\n",
                "    if any(result.outcome is Outcome.UNKNOWN for result in called):\n"
                "        _release(action, case.guard, world.memory)\n"
                "    if any(result.outcome is not Outcome.REFUSED for result in called):\n",
            ),
        ),
    ),
)

_READING = (
    Bug(
        "alibaba-empty-list-believed",
        (3,),
        (_EMPTY_BELIEVED,),
    ),
    *(
        Bug(f"{cloud}-failed-list-is-short", (3,), (_failure_passed_over(cloud), *behind))
        for cloud, behind in (
            ("aws", ()),
            ("alibaba", (_EMPTY_BELIEVED,)),  # a dry run stands behind it
            ("tencent", ()),
        )
    ),
    Bug(
        "aws-first-volume-only",
        (4,),
        (Edit(f"{_AWS}.compute.source", "own = tuple(volumes[native_id])", "own = tuple(volumes[native_id])[:1]"),),
    ),
    Bug(
        "aws-never-as-a-set",
        (4,),
        (Edit(f"{_AWS}.compute.source", "copied_together=1 < len(own) <= COPIED_AT_ONCE", "copied_together=False"),),
    ),
    Bug(
        "alibaba-first-volume-only",
        (4,),
        (Edit(f"{_ALIBABA}.compute.source", "for disk in disks if not _is_local(disk))", "for disk in disks[:1])"),),
    ),
    Bug(
        "tencent-first-volume-only",
        (4,),
        (Edit(f"{_TENCENT}.compute.source", "own = tuple(volumes[native_id])", "own = tuple(volumes[native_id])[:1]"),),
    ),
    Bug(
        "tencent-first-page-only",
        (4,),
        (
            Edit(
                f"{_TENCENT}.core.session",
                "                if _is_last(operation, paging, items, seen, total, most):\n",
                "                if True:\n",
            ),
            Edit(f"{_TENCENT}.compute.source", "        if missing:\n", "        if False:\n"),
            Edit(
                f"{_TENCENT}.compute.source",
                "    for batch in batched(sorted(unseen), _IDS):\n",
                "    for batch in ():\n",
            ),
        ),
    ),
    Bug(
        "aws-protections-not-asked",
        (12,),
        (Edit(f"{_AWS}.compute.source", "        if value:\n", "        if False:\n"),),
    ),
    Bug(
        "aws-pending-copy-is-complete",
        (4,),
        (
            Edit(
                f"{_AWS}.compute.source",
                'text(item, "State"), SnapshotState.PENDING)',
                'text(item, "State"), SnapshotState.COMPLETED)',
            ),
        ),
    ),
    Bug(
        "tencent-pending-copy-is-complete",
        (4,),
        (
            Edit(
                f"{_TENCENT}.compute.source",
                'complete = state == "NORMAL" and whole(item, "Percent") == 100',
                "complete = True",
            ),
        ),
    ),
)

WIRES: tuple[Bug, ...] = tuple(
    Bug(bug.name, bug.rules, bug.edits, wires=True) for bug in (*_STOPPING, *_ONCE, *_READING)
)
