"""The made-up fleet of the benchmark: a tenth of the instances hold one GPU each, all of which report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from xml.sax.saxutils import escape

ACCOUNT = "111122223333"
REGION = "us-east-1"
NOW = datetime(2026, 3, 15, 9, 30, tzinfo=timezone.utc)
LOOKBACK = timedelta(days=14)
METRIC = "nvidia_smi_utilization_gpu"
NAMESPACE = "CWAgent"
GPU_SHARE = 10  # every tenth instance
GPU_TYPES = ("g5.xlarge", "g6.xlarge")
PLAIN_TYPES = ("m5.large", "c6i.xlarge", "r6g.2xlarge", "t3.medium")
KINDS = 16  # different histories, so that parsing is not one cached string
_EC2 = "http://ec2.amazonaws.com/doc/2016-11-15/"


def gpus(instances: int, gpu_every: int = GPU_SHARE) -> Sequence[str]:
    """Native ids of the instances with a GPU."""
    return [native_id(number) for number in range(0, instances, gpu_every)]


def native_id(number: int) -> str:
    """`i-` and 17 hexadecimal digits."""
    return f"i-{number:017x}"


def hours_between(start: datetime, end: datetime) -> Sequence[datetime]:
    """The whole hours in which there can be points."""
    first = start.replace(minute=0, second=0, microsecond=0)
    return [first + timedelta(hours=hour) for hour in range(-((first - end) // timedelta(hours=1)))]


def maximum(kind: int, hour: int) -> float:
    """Idle, spiky or busy by kind; percent."""
    if kind % 4 == 0:
        return 0.0
    return float((hour * (kind + 7)) % (6 if kind % 4 == 1 else 100))


def series(instances: int, gpu_every: int = GPU_SHARE) -> list[Mapping[str, object]]:
    """ListMetrics entries: one a card, with the dimensions the agent sends."""
    return [
        {
            "Namespace": NAMESPACE,
            "MetricName": METRIC,
            "Dimensions": [
                {"Name": name, "Value": value}
                for name, value in (
                    ("InstanceId", native),
                    ("ImageId", "ami-0123456789abcdef0"),
                    ("InstanceType", GPU_TYPES[number % len(GPU_TYPES)]),
                    ("name", "NVIDIA A10G"),
                    ("index", "0"),
                    ("arch", "Ampere"),
                    ("host", f"ip-10-0-{number // 250}-{number % 250}"),
                )
            ],
        }
        for number, native in enumerate(gpus(instances, gpu_every))
    ]


def instances_page(instances: int, first: int, size: int, gpu_every: int = GPU_SHARE) -> str:
    """One page of DescribeInstances, entries as full as EC2's own."""
    last = min(first + size, instances)
    token = f"<nextToken>{first // size + 1}</nextToken>" if last < instances else ""
    return instances_answer(range(first, last), token, gpu_every)


def instances_answer(numbers: Iterable[int], token: str = "", gpu_every: int = GPU_SHARE) -> str:
    """DescribeInstances of these."""
    entries = "".join(_reservation(number, gpu_every) for number in numbers)
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><DescribeInstancesResponse xmlns="{_EC2}"><requestId>r</requestId>'
        f"<reservationSet>{entries}</reservationSet>{token}</DescribeInstancesResponse>"
    )


def _type_of(number: int, gpu_every: int) -> str:
    if number % gpu_every == 0:
        return GPU_TYPES[number // gpu_every % len(GPU_TYPES)]
    return PLAIN_TYPES[number % len(PLAIN_TYPES)]


def _reservation(number: int, gpu_every: int) -> str:
    native, kind = native_id(number), _type_of(number, gpu_every)
    address = f"10.{number // 65_536}.{number // 256 % 256}.{number % 256}"
    tags = "".join(
        f"<item><key>{key}</key><value>{escape(value)}</value></item>"
        for key, value in {"Name": f"node-{number}", "team": f"team-{number % 12}", "env": "research"}.items()
    )
    attached = "<status>attached</status><attachTime>2026-01-04T08:00:00.000Z</attachTime>"
    volume = f"<volumeId>vol-{number:017x}</volumeId>{attached}<deleteOnTermination>true</deleteOnTermination>"
    return f"""<item><reservationId>r-{number:017x}</reservationId><ownerId>{ACCOUNT}</ownerId><groupSet/><instancesSet>
<item><instanceId>{native}</instanceId><imageId>ami-0123456789abcdef0</imageId>
<instanceState><code>16</code><name>running</name></instanceState>
<privateDnsName>ip-{address.replace(".", "-")}.ec2.internal</privateDnsName><dnsName/><reason/><keyName>ops</keyName>
<amiLaunchIndex>0</amiLaunchIndex><productCodes/><instanceType>{kind}</instanceType>
<launchTime>2026-01-04T08:00:00.000Z</launchTime>
<placement><availabilityZone>us-east-1a</availabilityZone><groupName/><tenancy>default</tenancy></placement>
<monitoring><state>disabled</state></monitoring><subnetId>subnet-1</subnetId><vpcId>vpc-1</vpcId>
<privateIpAddress>{address}</privateIpAddress><sourceDestCheck>true</sourceDestCheck>
<groupSet><item><groupId>sg-1</groupId><groupName>default</groupName></item></groupSet>
<architecture>x86_64</architecture><rootDeviceType>ebs</rootDeviceType><rootDeviceName>/dev/xvda</rootDeviceName>
<blockDeviceMapping><item><deviceName>/dev/xvda</deviceName><ebs>{volume}</ebs></item></blockDeviceMapping>
<virtualizationType>hvm</virtualizationType><clientToken>{number}</clientToken><tagSet>{tags}</tagSet>
<hypervisor>xen</hypervisor><networkInterfaceSet><item><networkInterfaceId>eni-{number:017x}</networkInterfaceId>
<subnetId>subnet-1</subnetId><vpcId>vpc-1</vpcId><description/><ownerId>{ACCOUNT}</ownerId><status>in-use</status>
<macAddress>02:00:00:00:00:00</macAddress><privateIpAddress>{address}</privateIpAddress>
<sourceDestCheck>true</sourceDestCheck><groupSet><item><groupId>sg-1</groupId><groupName>default</groupName></item></groupSet>
<attachment><attachmentId>eni-attach-{number}</attachmentId><deviceIndex>0</deviceIndex>{attached}
<deleteOnTermination>true</deleteOnTermination><networkCardIndex>0</networkCardIndex></attachment>
<privateIpAddressesSet><item><privateIpAddress>{address}</privateIpAddress><primary>true</primary></item>
</privateIpAddressesSet><ipv6AddressesSet/><interfaceType>interface</interfaceType></item></networkInterfaceSet>
<ebsOptimized>true</ebsOptimized><enaSupport>true</enaSupport>
<cpuOptions><coreCount>2</coreCount><threadsPerCore>2</threadsPerCore></cpuOptions>
<capacityReservationSpecification><capacityReservationPreference>open</capacityReservationPreference>
</capacityReservationSpecification><hibernationOptions><configured>false</configured></hibernationOptions>
<metadataOptions><state>applied</state><httpTokens>required</httpTokens><httpPutResponseHopLimit>2</httpPutResponseHopLimit>
<httpEndpoint>enabled</httpEndpoint></metadataOptions><enclaveOptions><enabled>false</enabled></enclaveOptions>
<platformDetails>Linux/UNIX</platformDetails><usageOperation>RunInstances</usageOperation></item>
</instancesSet></item>"""


def fixed_answers() -> Mapping[str, str]:
    """Answers that do not depend on the size of the fleet, by operation."""
    types = "".join(
        f"<item><instanceType>{name}</instanceType><instanceStorageSupported>true</instanceStorageSupported>"
        "<instanceStorageInfo><totalSizeInGB>250</totalSizeInGB></instanceStorageInfo>"
        "<gpuInfo><gpus><item><name>A10G</name><manufacturer>NVIDIA</manufacturer><count>1</count>"
        "<memoryInfo><sizeInMiB>24576</sizeInMiB></memoryInfo></item></gpus></gpuInfo></item>"
        for name in GPU_TYPES
    )
    region = (
        f"<item><regionName>{REGION}</regionName><regionEndpoint>ec2.{REGION}.amazonaws.com</regionEndpoint>"
        "<optInStatus>opt-in-not-required</optInStatus></item>"
    )
    identity = (
        '<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>'
        f"<Arn>arn:aws:iam::{ACCOUNT}:user/scan</Arn><UserId>AIDA</UserId><Account>{ACCOUNT}</Account>"
        "</GetCallerIdentityResult><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata>"
        "</GetCallerIdentityResponse>"
    )
    return {
        "GetCallerIdentity": identity,
        "DescribeRegions": _ec2("DescribeRegions", f"<regionInfo>{region}</regionInfo>"),
        "DescribeInstanceTypes": _ec2("DescribeInstanceTypes", f"<instanceTypeSet>{types}</instanceTypeSet>"),
        "DescribeReservedInstances": _ec2("DescribeReservedInstances", "<reservedInstancesSet/>"),
        "DescribeSpotInstanceRequests": _ec2("DescribeSpotInstanceRequests", "<spotInstanceRequestSet/>"),
        "DescribeSpotPriceHistory": _ec2("DescribeSpotPriceHistory", "<spotPriceHistorySet/>"),
    }


def price_list(instance_types: Sequence[str]) -> str:
    """GetProducts for those of the types that the fleet has."""
    products = [_product(name) for name in GPU_TYPES if name in instance_types]
    return json.dumps({"FormatVersion": "aws_v1", "PriceList": products})


def _ec2(operation: str, body: str) -> str:
    return f'<{operation}Response xmlns="{_EC2}"><requestId>r</requestId>{body}</{operation}Response>'


def _product(instance_type: str) -> str:
    about = {
        "instanceType": instance_type,
        "regionCode": REGION,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
    }
    rate = {"unit": "Hrs", "pricePerUnit": {"USD": "1.25"}}
    terms = {"OnDemand": {"S.T": {"priceDimensions": {"S.T.R": rate}}}}
    return json.dumps({"product": {"attributes": about}, "terms": terms})
