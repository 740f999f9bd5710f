"""Which addresses may be connected to, edge by edge."""

import pytest

from jobs.addresses import AddressPolicy

PUBLIC = AddressPolicy()

DENIED = [
    "0.0.0.0",
    "0.255.255.255",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.255",
    "168.63.129.16",
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:169.254.169.254",
    "::127.0.0.1",
    "::8.8.8.8",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a9fe:a9fe",
    "64:ff9b:1::808:808",
    "100::1",
    "100:0:0:1::1",
    "2001:0:7f00:1::",
    "2001:0:808:808::f7f7:f7f7",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::",
    "2002:0a00:0001::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "2606:4700::1111%eth0",
    "fec0::1",
    "ff02::1",
    "",
    "localhost",
    "127.1",
    "2130706433",
    "0x7f.0.0.1",
    "127.0.0.1.",
    "[::1]",
]

PERMITTED = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "168.63.129.15",
    "168.63.129.17",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.1",
    "192.0.1.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2606:4700::1111",
    "2a00::1",
]


@pytest.mark.parametrize("address", DENIED)
def test_an_address_that_is_not_public_is_denied(address):
    assert not PUBLIC.permits(address)


@pytest.mark.parametrize("address", PERMITTED)
def test_a_public_address_is_permitted(address):
    assert PUBLIC.permits(address)
    assert not PUBLIC.opens(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::ffff:127.0.0.1", "fd00::5"])
def test_an_opened_network_is_permitted(address):
    policy = AddressPolicy.of(["127.0.0.0/8", "fd00::/8"])
    assert policy.permits(address)
    assert policy.opens(address)


@pytest.mark.parametrize("address", ["128.0.0.1", "10.0.0.1", "::1", "fc00::1", "::127.0.0.1"])
def test_opening_a_network_opens_nothing_else(address):
    policy = AddressPolicy.of(["127.0.0.0/8", "fd00::/8"])
    assert not policy.opens(address)
    assert policy.permits(address) == (address == "128.0.0.1")


def test_a_closed_network_wins_over_an_opened_one():
    policy = AddressPolicy.of(["10.0.0.0/8"], deny_cidrs=["10.1.0.0/16", "8.8.8.0/24"])
    assert policy.permits("10.2.0.1")
    assert not policy.permits("10.1.0.1")
    assert not policy.permits("8.8.8.8")
    assert not policy.permits("64:ff9b::808:808")


@pytest.mark.parametrize("cidr", ["10.0.0.1/8", "nonsense", "10.0.0.0/33"])
def test_a_network_that_is_none_is_refused(cidr):
    with pytest.raises(ValueError, match=r".+"):
        AddressPolicy.of([cidr])
