"""Forms of ids and answers as the vendors' providers make them, for the types of resources used here.

In a text, {name} is an argument of the resource or one of: account, region, letters (13), eight, number, long, uuid.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

NAMED_BY: Final = (
    "name", "instance_name", "function_name", "db_instance_name", "role_name", "policy_name", "bucket", "topic_name",
    "queue_name", "project_name", "logstore_name", "alarm_contact_name", "alert_name", "vpc_name", "vswitch_name",
)  # fmt: skip
"""Arguments by which a resource is called in the answers' file, the first given."""

_UIN, _APP_ID = "100000000001", "1250000000"
ALIBABA_ACCOUNT = "1234567890123456"

DATA: Final[Mapping[str, Mapping[str, Any]]] = {
    "alicloud_account": {"id": ALIBABA_ACCOUNT},
    "alicloud_db_zones": {
        "ids": ["{region}-h", "{region}-i", "{region}-k"],
        "zones": [{"id": "{region}-h", "multi_zone_ids": []}, {"id": "{region}-k", "multi_zone_ids": []}],
    },
    "alicloud_fc_zones": {
        "ids": ["{region}-k", "{region}-j"],
        "zones": [{"id": "{region}-k"}, {"id": "{region}-j"}],
    },
    "tencentcloud_user_info": {"owner_uin": _UIN, "uin": "100000000009", "app_id": _APP_ID, "name": "deployer"},
    "tencentcloud_postgresql_zones": {
        "zone_set": [
            {
                "zone": f"{{region}}-{number}",
                "zone_id": 100000 + number,
                "zone_name": f"{{region}} zone {number}",
                "zone_state": state,
                "zone_support_ipv6": 0,
                "standby_zone_set": [],
            }
            for number, state in ((2, "SELLOUT"), (6, "AVAILABLE"), (7, "AVAILABLE"))
        ],
    },
    "tencentcloud_postgresql_db_instance_classes": {
        "class_info_set": [
            {"spec_code": code, "cpu": cpu, "memory": memory, "min_storage": 10, "max_storage": most, "qps": qps}
            for code, cpu, memory, most, qps in (
                ("pg.it.small2", 1, 2048, 3000, 1800),
                ("pg.it.medium4", 2, 4096, 6000, 3600),
                ("pg.it.large8", 4, 8192, 6000, 6800),
            )
        ],
    },
    "tencentcloud_scf_triggers": {
        "triggers": [
            {
                "type": "http",
                "trigger_name": "http",
                "enable": 1,
                "qualifier": "$LATEST",
                "available_status": "Available",
                "bind_status": "off",
                "add_time": "2026-01-05 09:30:00",
                "mod_time": "2026-01-05 09:30:00",
                "custom_argument": "",
                "resource_id": "",
                "trigger_attribute": "",
                # where its address stands is known from the console alone: infra/tencent/http.tf
                "trigger_desc": '{{"AuthType": "NONE", "NetConfig": {{"EnableExtranet": true, "ExtranetUrl": '
                f'"https://{_APP_ID}-a1b2c3d4e5.scf.example.com/"}}}}}}}}',
            }
        ],
    },
}
"""Data source → what it answers."""

_FUNCTION = "acs:fc:{region}:{account}:functions/{function_name}"

_ALIBABA: Mapping[str, Mapping[str, Any]] = {
    "alicloud_cms_alarm": {"id": "terraform-{letters}", "status": "OK"},
    "alicloud_cms_alarm_contact": {"id": "{alarm_contact_name}"},
    "alicloud_cms_alarm_contact_group": {"id": "{alarm_contact_group_name}"},
    "alicloud_db_backup_policy": {"id": "{instance_id}"},
    "alicloud_db_connection": {
        "id": "{instance_id}:{connection_prefix}",
        "connection_string": "{connection_prefix}.pg.rds.aliyuncs.com",
        "ip_address": "203.0.113.20",
    },
    "alicloud_db_database": {"id": "{instance_id}:{data_base_name}", "status": "Running", "name": "{data_base_name}"},
    "alicloud_db_instance": {
        "id": "pgm-bp1{letters}",
        "connection_string": "{id}.pg.rds.aliyuncs.com",
        "connection_string_prefix": "{id}",
        "port": "5432",
        "private_ip_address": "10.213.0.7",
        "status": "Running",
        "db_instance_type": "Primary",
    },
    "alicloud_fcv3_async_invoke_config": {
        "id": "{function_name}",
        "function_arn": _FUNCTION,
    },
    "alicloud_fcv3_function": {
        "id": "{function_name}",
        "function_arn": _FUNCTION,
        "function_id": "{uuid}",
        "state": "Active",
    },
    "alicloud_fcv3_trigger": {
        "id": "{function_name}:{trigger_name}",
        "trigger_id": "{uuid}",
        "target_arn": _FUNCTION,
        "http_trigger": [
            {
                "url_internet": "https://{letters}.{region}.fcapp.run",
                "url_intranet": "https://{letters}.{region}-vpc.fcapp.run",
            }
        ],
    },
    "alicloud_log_alert_resource": {"id": "alert_resource:{type}:{eight}"},
    "alicloud_log_project": {"id": "{project_name}", "name": "{project_name}", "status": "Normal"},
    "alicloud_log_resource_record": {"id": "{resource_name}:{record_id}"},
    "alicloud_log_store": {
        "id": "{project_name}:{logstore_name}",
        "project": "{project_name}",
        "name": "{logstore_name}",
    },
    "alicloud_log_store_index": {"id": "{project}:{logstore}"},
    "alicloud_message_service_queue": {"id": "{queue_name}"},
    "alicloud_oss_bucket": {
        "id": "{bucket}",
        "extranet_endpoint": "oss-{region}.aliyuncs.com",
        "intranet_endpoint": "oss-{region}-internal.aliyuncs.com",
        "location": "oss-{region}",
        "owner": "{account}",
    },
    "alicloud_oss_bucket_acl": {"id": "{bucket}"},
    "alicloud_oss_bucket_object": {"id": "{key}"},
    "alicloud_oss_bucket_policy": {"id": "{bucket}"},
    "alicloud_oss_bucket_public_access_block": {"id": "{bucket}"},
    "alicloud_oss_bucket_server_side_encryption": {"id": "{bucket}"},
    "alicloud_oss_bucket_versioning": {"id": "{bucket}"},
    "alicloud_ram_policy": {
        "id": "{policy_name}",
        "type": "Custom",
        "version_id": "v1",
        "default_version": "v1",
        "name": "{policy_name}",
        "document": "{policy_document}",
    },
    "alicloud_ram_role": {
        "id": "{role_name}",
        "arn": "acs:ram::{account}:role/{role_name}",
        "role_id": "3{number}{number}",
        "name": "{role_name}",
        "document": "{assume_role_policy_document}",
    },
    "alicloud_ram_role_policy_attachment": {"id": "role:{policy_name}:{policy_type}:{role_name}"},
    "alicloud_security_group": {"id": "sg-bp1{letters}"},
    "alicloud_sls_alert": {"id": "{project_name}:{alert_name}"},
    "alicloud_vpc": {"id": "vpc-bp1{letters}", "status": "Available", "region_id": "{region}"},
    "alicloud_vswitch": {"id": "vsw-bp1{letters}", "status": "Available"},
}

_TENCENT: Mapping[str, Mapping[str, Any]] = {
    "tencentcloud_cam_policy": {"id": "{number}"},
    "tencentcloud_cam_role": {"id": "{long}", "role_arn": f"qcs::cam::uin/{_UIN}:roleName/{{name}}"},
    "tencentcloud_cam_role_policy_attachment": {"id": "{role_id}#{policy_id}"},
    "tencentcloud_cam_user": {
        "id": "{name}",
        "uid": "{number}",
        "uin": "1000{number}",
        "password": "",
        "secret_id": "",
        "secret_key": "",
    },
    "tencentcloud_cls_alarm": {"id": "alarm-{uuid}"},
    "tencentcloud_cls_alarm_notice": {"id": "notice-{uuid}"},
    "tencentcloud_cls_index": {"id": "{topic_id}"},
    "tencentcloud_cls_logset": {"id": "{uuid}"},
    "tencentcloud_cls_topic": {"id": "{uuid}"},
    "tencentcloud_cos_bucket": {"id": "{bucket}", "cos_bucket_url": "{bucket}.cos.{region}.myqcloud.com"},
    "tencentcloud_cos_bucket_object": {"id": "{bucket}{key}"},
    "tencentcloud_cos_bucket_policy": {"id": "{bucket}"},
    "tencentcloud_postgresql_backup_plan_config": {"id": "{db_instance_id}"},
    "tencentcloud_postgresql_instance": {
        "id": "postgres-{eight}",
        "private_access_ip": "10.213.0.7",
        "private_access_port": 5432,
        "public_access_host": "postgres-{eight}.sql.tencentcdb.com",
        "public_access_port": 27001,
        "uid": 1234567,
    },
    "tencentcloud_postgresql_instance_ssl_config": {"id": "{db_instance_id}"},
    "tencentcloud_scf_function": {"id": "default+{name}", "function_id": "lam-{eight}", "status": "Active"},
    "tencentcloud_scf_trigger": {"id": "{function_name}#{namespace}#{eight}"},
    "tencentcloud_security_group": {"id": "sg-{eight}"},
    "tencentcloud_security_group_rule_set": {"id": "{security_group_id}", "version": "1"},
    "tencentcloud_subnet": {"id": "subnet-{eight}", "available_ip_count": 253},
    "tencentcloud_vpc": {"id": "vpc-{eight}"},
}

TOLD: Final[Mapping[str, Mapping[str, Any]]] = {**_ALIBABA, **_TENCENT}
"""Type of resource → what the cloud says of it; each may take what stands before it."""
