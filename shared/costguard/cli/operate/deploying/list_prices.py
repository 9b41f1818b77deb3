"""List prices of what Costguard itself takes, each with the vendor's page and the date of the edition that was read.

In US dollars, before tax, without free tiers and discounts. What no page that could be read says stands nowhere here:
its line is then unknown, which is never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType

from costguard.estimates.upkeep import ListPrice


def _price(amount: str, source: str, as_of: str) -> ListPrice:
    return ListPrice(Decimal(amount), source, as_of)


_UNDATED = "undated"
_KNOWN = "2025-11"  # of AWS's pages, which carry no date: when they were last known
_LAMBDA = "https://aws.amazon.com/lambda/pricing/"
_WATCH = "https://aws.amazon.com/cloudwatch/pricing/"
_DYNAMO = "https://aws.amazon.com/dynamodb/pricing/on-demand/"
_S3 = "https://aws.amazon.com/s3/pricing/"

AWS_REGION = "us-east-1"
AWS: Mapping[str, ListPrice] = MappingProxyType(
    {
        "gib_second_x86_64": _price("0.0000166667", _LAMBDA, _KNOWN),
        "gib_second_arm64": _price("0.0000133334", _LAMBDA, _KNOWN),
        "call": _price("0.0000002", _LAMBDA, _KNOWN),
        "metric": _price("0.30", _WATCH, _KNOWN),
        "alarm": _price("0.10", _WATCH, _KNOWN),
        "metric_read": _price("0.00001", _WATCH, _KNOWN),  # GetMetricData: 0.01 for 1,000 metrics, none of them free
        "log_gb": _price("0.50", _WATCH, _KNOWN),
        "log_gb_month": _price("0.03", _WATCH, _KNOWN),
        "bill_read": _price("0.01", "https://aws.amazon.com/aws-cost-management/aws-cost-explorer/pricing/", _KNOWN),
        "secret": _price("0.40", "https://aws.amazon.com/secrets-manager/pricing/", _KNOWN),
        "secret_read": _price("0.000005", "https://aws.amazon.com/secrets-manager/pricing/", _KNOWN),
        "key": _price("1.00", "https://aws.amazon.com/kms/pricing/", "2024-04-12"),
        "write": _price("0.000000625", _DYNAMO, _KNOWN),
        "read": _price("0.000000125", _DYNAMO, _KNOWN),
        "ledger_gb_month": _price("0.25", _DYNAMO, _KNOWN),
        "backup_gb_month": _price("0.20", _DYNAMO, _KNOWN),
        "object_gb_month": _price("0.023", _S3, _KNOWN),
        "object_put": _price("0.000005", _S3, "2026-01-01"),
        "object_get": _price("0.0000004", _S3, "2026-01-01"),
        "start": _price("0.000001", "https://aws.amazon.com/eventbridge/pricing/", _KNOWN),  # EventBridge Scheduler
        "answer": _price("0.000001", "https://aws.amazon.com/api-gateway/pricing/", _KNOWN),  # an HTTP API
    }
)

_FC = "Function Compute, Pay-as-you-go"
_RDS = "ApsaraDB RDS for PostgreSQL, Serverless pricing"
_KMS = "Key Management Service, Pay-as-you-go"
_SLS = "https://alibabacloud.com/help/en/sls/product-overview/billing-examples"

ALIBABA: Mapping[str, ListPrice] = MappingProxyType(
    {
        "cu": _price("0.00002", _FC, "2024-11-19"),
        "kms_instance_day": _price("4.50", _KMS, "2024-08-15"),
        "kms_key_day": _price("0.03", _KMS, "2024-08-15"),
        "kms_secret_day": _price("0.013", _KMS, "2024-08-15"),
        "kms_qps_day": _price("0.50", _KMS, "2024-08-15"),
        # Its second example: 18.6 GB a day, indexed whole, compressed to a fifth, kept three days, is 2.171985 a day.
        "log_gb": _price("0.117", _SLS, _UNDATED),
    }
)
ALIBABA_LEDGER: Mapping[str, tuple[ListPrice, ListPrice]] = MappingProxyType(
    {
        "cn": (_price("0.0497", _RDS, "2026-03-28"), _price("0.00024", _RDS, "2026-03-28")),
        "ap-southeast-1": (_price("0.0796", _RDS, "2026-03-28"), _price("0.0004", _RDS, "2026-03-28")),
    }
)
"""Region, or `cn` for mainland China, → an hour of a capacity unit (RCU), and of a GB of storage."""

_SCF = "https://www.tencentcloud.com/document/product/583/44254"
_CLS = "https://tencentcloud.com/document/product/614/68614"
_POSTGRES = "TencentDB for PostgreSQL, Billing Mode"
_SSM = "Secrets Manager, Billing Overview"

TENCENT: Mapping[str, ListPrice] = MappingProxyType(
    {
        "package": _price("1.80", _SCF, "2022-07-21"),
        # From the third tier on (after 15 days), a GB of memory and node; and a GB of storage.
        "ledger_gib_hour": _price("0.026", _POSTGRES, _UNDATED),
        "ledger_gb_hour": _price("0.0005", _POSTGRES, _UNDATED),
        "secret": _price("0.40", _SSM, "2024-01-02"),
        "secret_read": _price("0.000005", _SSM, "2024-01-02"),
        "log_gb_written": _price("0.032", _CLS, _UNDATED),  # compressed to a quarter, as the page's example is
        "log_gb_indexed": _price("0.062", _CLS, _UNDATED),
        "log_gb_day": _price("0.0024", _CLS, _UNDATED),
        "log_partition_day": _price("0.007", _CLS, _UNDATED),
    }
)
TENCENT_PACKAGE_GIB_SECONDS, TENCENT_PACKAGE_CALLS = 100_000, 500_000
"""What SCF's basic package of a month holds ("Billing Overview", 2023-02-01)."""
TENCENT_LEDGER_REGION = "ap-guangzhou"

FREE_METRIC_CALLS = 1_000_000
"""Calls a month that CloudMonitor and Monitor ask nothing for (docs/signals.md)."""
