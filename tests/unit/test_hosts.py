"""Which hosts no address of a policy may name, in whatever form they are written."""

from __future__ import annotations

import ipaddress

import pytest

from costguard.domain.hosts import DISGUISED, KEPT, is_kept, refused_host

KEPT_HOSTS = (
    *("169.254.169.254", "169.254.0.23", "169.254.170.2", "100.100.100.200", "168.63.129.16", "0.0.0.0"),  # noqa: S104
    *("fe80::1", "[fe80::1]", "fe80::1%eth0", "fd00:ec2::254", "[FD00:EC2::254]", "fd20:ce::254", "::"),
    *("2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "0xa9.0xfe.0xa9.0xfe", "169.254.43518", "169.16689662"),
    *("0251.254.0xa9.254", "::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "64:ff9b::a9fe:a9fe", "::169.254.169.254"),
    *("2002:a9fe:a9fe::1", "169.254.169.254.", "169.254.169.254..", "0xA9FEA9FE."),
    *("metadata.google.internal", "Metadata.Google.Internal.", "metadata.tencentyun.com", "metadata", "instance-data"),
)


@pytest.mark.parametrize("host", KEPT_HOSTS)
def test_what_clouds_keep_for_their_machines_is_refused_in_every_form(host: str) -> None:
    assert refused_host(host) == KEPT


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "0300.0250.0.1", "010.0.0.1", "134744072"])
def test_an_address_in_another_form_is_refused_wherever_it_leads(host: str) -> None:
    assert refused_host(host) == DISGUISED


@pytest.mark.parametrize(
    "host",
    [
        *("prometheus.example.com", "prometheus", "10.0.0.1", "127.0.0.1", "localhost", "::1", "[fd12::1]", "8.8.8.8"),
        *(
            "0xcafe.example.com",
            "169.254.169.254.example.com",
            "metadata.example.com",
            "1e3",
            "256.1.1.1.1",
            "99999999999",
        ),
    ],
)
def test_other_hosts_are_not(host: str) -> None:
    assert refused_host(host) == ""


@pytest.mark.parametrize("address", ["::1", "10.0.0.1", "fd12::1", "2001:db8::1"])
def test_addresses_of_ones_own_are_not_kept(address: str) -> None:
    assert not is_kept(ipaddress.ip_address(address))
