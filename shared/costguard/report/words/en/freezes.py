"""English: where launch freezes stand, and what the policies behind them leave open."""

from __future__ import annotations

from collections.abc import Mapping

FREEZES: Mapping[str, str] = {
    "freezes": "Launch freezes",
    "freeze_name": "Freeze",
    "freeze_state": "State",
    "freeze_since": "Since",
    "freeze_budget": "Budget",
    "freeze_target": "Target",
    "freeze_policy": "Policy",
    "freeze_is_off": "off",
    "freeze_is_announced": "announced, not yet in force",
    "freeze_is_attaching": "asked for; the next run sees whether it holds",
    "freeze_is_on": "in force",
    "freeze_is_detaching": "being taken off; the next run sees whether it is",
    "freeze_is_released": "released by people for {period}",
    "freeze_is_foreign": "attached by somebody else, who has to take it off",
    "freeze_thaw": "{name} is released for {period}, says {by}: {reason}. The next run takes it off.",
    "freeze_thaw_off": "{name} is released for {period}, says {by}: {reason}. It does not begin before the next one.",
    "freeze_thaw_foreign": (
        "{name} is released for {period}, says {by}: {reason}. Somebody else attached it: only they take it off."
    ),
    "freeze_limits": "What this policy leaves open:",
    "freeze_role_limits": "What this role could still do:",
    "freeze_limit_tag": "who may set the tag costguard-approved may launch: let only those set it who approve",
    "freeze_limit_existing": "machines that exist can still be started, and changed to another type",
    "freeze_limit_platforms": "platforms that run machines of their own (SageMaker, PAI, TI-ONE) launch on",
    "freeze_limit_aws_managed": "an organisation's policy does not bind its management account",
    "freeze_limit_aws_services": (
        "services that launch by a service-linked role (Auto Scaling, Spot Fleet) are not bound by one either"
    ),
    "freeze_limit_alibaba_managed": (
        "a control policy binds neither the management account nor roles of services, such as Auto Scaling's"
    ),
    "freeze_limit_alibaba_keys": (
        "that ECS tells RAM the type and the tags of a launch rests on its documents, and others have measured that it "
        "did not tell the type: try RunInstances with DryRun in one member first"
    ),
    "freeze_limit_alibaba_absent": (
        "RAM has no test for an absent tag, and its documents do not say that StringNotEquals holds for one: try it too"
    ),
    "freeze_limit_alibaba_role": (
        "its permissions name no control policy, so it may attach and detach any: keep its keys for this alone"
    ),
    "freeze_limit_tencent_keys": (
        "that CVM tells CAM the type and the tags of a launch rests on its documents: try RunInstances with DryRun in "
        "one member first"
    ),
    "freeze_limit_tencent_managed": "a service control policy binds neither the manager nor roles of services",
    "freeze_limit_tencent_role": (
        "its permissions name no policy, so it may attach and detach any: keep its keys for this alone"
    ),
}
