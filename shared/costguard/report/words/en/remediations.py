"""English: what a mend does, what people are told of it, and how it is taken back."""

from __future__ import annotations

from collections.abc import Mapping

MENDS: Mapping[str, str] = {
    "mend_set_rotation": "rotate it by itself every {days} days",
    "mend_rotate_key": "rotate it now",
    "mend_create_successor": "make a key to take its place; nothing uses it yet",
    "mend_move_alias": "move alias {alias} to its successor {successor}",
    "mend_restore_alias": "move alias {alias} back from {successor}",
    "mend_release_address": "release {ip}",
    "mend_detach_address": "take {ip} off it",
    "mend_revoke_rule": "revoke rule {rule_id}[ ({what})]",
    "mend_narrow_rule": "narrow rule {rule_id}[ ({what})] to {peers}",
    "mend_enable_flow_logs": "write flow logs to {destination}",
    "mend_require_imdsv2": "require session tokens for its metadata (IMDSv2)",
    "mend_attach_address": "put {ip} back",
    "mend_restore_rule": "put the rule back as it was",
    "mend_remove_flow_logs": "end flow log {flow_log}",
    "mend_allow_imdsv1": "allow metadata without session tokens again",
    "mend_subject_key": "Key",
    "mend_subject_security_group": "Security group",
    "mend_subject_security_rule": "Rule",
    "mend_subject_address": "Address",
    "mend_subject_nat_gateway": "NAT gateway",
    "mend_subject_vpc": "VPC",
    "mend_subject_subnet": "Subnet",
    "mend_subject_peering": "Peering",
    "mend_subject_interface": "Interface",
    "mend_subject_instance": "Instance",
    "mend_told": "{what} {name} is not as the policy asks: {why}",
    "mend_comes": "{what} {name}: Costguard will {mend}",
    "mend_done": "{what} {name}: done: {mend}",
    "mend_over": "{what} {name}: nothing more is done: {why}",
    "mend_refused": "{what} {name}: Costguard could not {mend}",
    "mend_refused_again": "Nothing was changed. It is tried again, and told again only where the error is another.",
    "mend_held": "{what} {name}: not done: {why}",
    "mend_when": "not before {at}",
    "mend_final": "There is no way back from this.",
    "mend_old_material": "What was encrypted before can still be decrypted: the cloud keeps the old material.",
    "mend_new_key": (
        "It gets the same policy and tags, costs what a key costs, and only its owner can delete it."
        " Of moving the alias you are told again."
    ),
    "mend_old_key": (
        "The old key stays enabled, and what it encrypted can still be decrypted. Programs that name it by its id go on"
        " using it; programs that name the alias to decrypt old data, and whoever verifies signatures with the old"
        " public key, need both keys."
    ),
    "mend_undo": "To take it back: costguard undo {action_id}",
    "mend_note": "What its vendor says of it: {note}.",
    "mend_cost": "A rotation costs: {cost}.",
    "mend_keep": "To keep it as it is: costguard snooze {subject} --for 7d",
    "mend_undo_done": "Taken back: {mend}. Left alone until {until}, so that no run does it again.",
    "mend_undo_plan": "Would take back: {mend}.",
    "mend_undo_start": "start {subject} again",
    "mend_undo_uncertain": (
        "Unknown: the answer to Costguard's stop of {asked} was lost. It is probably what stopped {subject}; that"
        " nobody else did is not proven."
    ),
}
