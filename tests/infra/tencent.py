"""infra/tencent against what its provider publishes, and set up with a stand-in for it."""

from __future__ import annotations

from tests.infra.parity_published import Cloud
from tests.infra.stand_in.deployment import Deployment, by_names, checked

_REFUSED = """
resource "tencentcloud_vpc" "unknown" {
  name       = "one"
  cidr_block = "10.213.0.0/24"
  colour     = "green"
}
resource "tencentcloud_cos_bucket" "among" {
  bucket = "policies-1250000000"
  acl    = "open"
}
resource "tencentcloud_scf_function" "name" {
  name = "ends-with-"
}
resource "tencentcloud_scf_function" "step" {
  name     = "one"
  mem_size = 200
}
resource "tencentcloud_cos_bucket_object" "together" {
  bucket  = "policies-1250000000"
  key     = "one"
  source  = "here"
  content = "there"
}
resource "tencentcloud_cls_alarm" "one_of" {
  name          = "one"
  alarm_period  = 15
  trigger_count = 1
  alarm_targets {
    logset_id         = "one"
    topic_id          = "one"
    query             = "*"
    number            = 1
    start_time_offset = -15
    end_time_offset   = 0
  }
  monitor_time {
    type = "Period"
    time = 15
  }
}
resource "tencentcloud_cls_index" "required" {
}
resource "tencentcloud_security_group_rule_set" "block" {
  security_group_id = "sg-1"
  ingress {
    action = "PERHAPS"
  }
}
resource "tencentcloud_subnet" "type" {
  name              = "one"
  vpc_id            = "vpc-1"
  cidr_block        = "10.213.0.0/24"
  availability_zone = "ap-guangzhou-6"
  tags              = "none"
}
"""

_HERE = Deployment(
    Cloud("tencent", "tencentcloud", (".", "member", "state")),
    variables={
        "region": "ap-guangzhou",
        "alarm_mail": "cost@example.com",
        "secrets": {
            "COSTGUARD_LEDGER": "costguard-ledger?version=v1",
            "COSTGUARD_SLACK_TOKEN": "costguard-slack?version=v1#token",
            "COSTGUARD_SLACK_SIGNING_SECRET": "costguard-slack?version=v1#signing",
        },
    },
    enforcing={"enforce": True, "member_accounts": ["100000000002"]},
    member={"hub_account": "100000000001", "external_id": "a-word"},
    answers={"tencentcloud_postgresql_instance": {"private_access_ip": "127.0.0.1", "private_access_port": 15432}},
    ledger="postgresql://costguard@127.0.0.1:15432/costguard?sslmode=require",
    refused=_REFUSED,
    refusals=(
        'An argument named "colour" is not expected here.',
        "acl: 'open' is none of",
        "name: 'ends-with-' does not match",
        "mem_size: 200 is no multiple of 128",
        "content: conflicts with source",
        "source: conflicts with content",
        "condition: one of condition, multi_conditions must be given, not 0",
        "multi_conditions: one of condition, multi_conditions must be given, not 0",
        "alarm_notice_ids: one of alarm_notice_ids, monitor_notice must be given, not 0",
        "monitor_notice: one of alarm_notice_ids, monitor_notice must be given, not 0",
        'The argument "topic_id" is required',
        "action: 'PERHAPS' is none of ACCEPT, DROP",
        'Inappropriate value for attribute "tags"',
    ),
    # a password of root that the page of the deployment resets before anything is stored: infra/tencent/ledger.tf
    kept_secrets=frozenset({"tencentcloud_postgresql_instance.root_password"}),
)


def check(*, apply: bool = False) -> list[str]:
    """What is wrong, a line each; none where all is well."""
    return checked(_HERE, apply=apply)


def check_names() -> list[str]:
    """What is wrong as far as names go, without Terraform."""
    return by_names(_HERE)
