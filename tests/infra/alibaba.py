"""infra/alibaba against what its provider publishes, and set up with a stand-in for it."""

from __future__ import annotations

from tests.infra.parity_published import Cloud
from tests.infra.stand_in.deployment import Deployment, by_names, checked

_REFUSED = """
resource "alicloud_vpc" "unknown" {
  cidr_block = "10.213.0.0/24"
  colour     = "green"
}
resource "alicloud_oss_bucket_versioning" "among" {
  bucket = "policies"
  status = "Perhaps"
}
resource "alicloud_ram_role" "together" {
  role_name                   = "one"
  name                        = "one"
  assume_role_policy_document = "{}"
}
resource "alicloud_ram_policy" "json" {
  policy_name     = "one"
  policy_document = "{"
}
resource "alicloud_fcv3_function" "range" {
  function_name = "one"
  handler       = "handler.handler"
  runtime       = "python3.10"
  cpu           = 0.01
}
resource "alicloud_fcv3_function" "runtime" {
  function_name = "two"
  handler       = "handler.handler"
  runtime       = "python9.9"
}
resource "alicloud_vswitch" "one_of" {
  vpc_id     = "vpc-1"
  cidr_block = "10.213.0.0/24"
}
resource "alicloud_db_backup_policy" "required" {
}
resource "alicloud_sls_alert" "blocks" {
  alert_name   = "one"
  display_name = "one"
  project_name = "one"
  configuration {}
}
resource "alicloud_message_service_queue" "type" {
  queue_name = "one"
  tags       = "none"
}
"""

_HERE = Deployment(
    Cloud("alibaba", "alicloud"),
    variables={
        "region": "cn-hangzhou",
        "alarm_mail": "cost@example.com",
        "secrets": {
            "COSTGUARD_LEDGER": "costguard/ledger",
            "COSTGUARD_SLACK_TOKEN": "costguard/slack#token",
            "COSTGUARD_SLACK_SIGNING_SECRET": "costguard/slack#signing",
        },
        "secret_keys": ["key-hzz-0001"],
    },
    enforcing={"enforce": True, "member_accounts": ["2234567890123456"]},
    member={"hub_account": "1234567890123456", "external_id": "a-word"},
    answers={"alicloud_db_instance.costguard-ledger": {"connection_string": "127.0.0.1", "port": 15432}},
    ledger="postgresql://costguard@127.0.0.1:15432/costguard",
    refused=_REFUSED,
    refusals=(
        'An argument named "colour" is not expected here.',
        "status: 'Perhaps' is none of Enabled, Suspended",
        "name: conflicts with role_name",
        "role_name: conflicts with name",
        "policy_document: is not JSON",
        "cpu: 0.01 is not between 0.05 and 16",
        "runtime: 'python9.9' is none of",
        "zone_id: one of availability_zone, zone_id must be given, not 0",
        'The argument "instance_id" is required',
        'At least 1 "schedule" blocks are required',
        'Inappropriate value for attribute "tags"',
    ),
)


def check(*, apply: bool = False) -> list[str]:
    """What is wrong, a line each; none where all is well."""
    return checked(_HERE, apply=apply)


def check_names() -> list[str]:
    """What is wrong as far as names go, without Terraform."""
    return by_names(_HERE)
