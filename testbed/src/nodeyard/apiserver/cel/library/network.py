"""The IP and CIDR libraries: `ip('10.0.0.1')`, `cidr('10.0.0.0/8').containsIP('10.1.2.3')`."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from nodeyard.apiserver.cel.declarations import Overload, function, member
from nodeyard.apiserver.cel.errors import EvaluationError
from nodeyard.apiserver.cel.library.netip_errors import explain
from nodeyard.apiserver.cel.values import Opaque
from nodeyard.kube.goformat import quote
from nodeyard.schema.addresses import is_link_local_multicast

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_BITS = re.compile(r"0|[1-9]\d{0,2}", re.ASCII)
_BROADCAST = ipaddress.ip_address("255.255.255.255")


@dataclass(frozen=True, slots=True)
class IP(Opaque):
    address: Address
    type_name = "net.IP"


@dataclass(frozen=True, slots=True)
class CIDR(Opaque):
    """An address with a prefix length; the bits after the prefix need not be zero."""

    address: Address
    bits: int
    type_name = "net.CIDR"

    @property
    def prefix(self) -> int:
        return int(self.address) >> (self.address.max_prefixlen - self.bits)

    def covers(self, address: Address) -> bool:
        if address.version != self.address.version:
            return False
        return int(address) >> (address.max_prefixlen - self.bits) == self.prefix


def _parse_address(text: str) -> Address:
    """Parse an address as Go does, with zones and mapped addresses. Raises ValueError."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(explain(text)) from None


def _is_mapped(address: Address) -> bool:
    return address.version == 6 and address.ipv4_mapped is not None


def parse_ip(text: str) -> IP:
    try:
        address = _parse_address(text)
    except ValueError as error:
        raise EvaluationError(f"IP Address {quote(text)} parse error during conversion from string: {error}") from None
    if "%" in text:
        raise EvaluationError(f"IP address {quote(text)} with zone value is not allowed")
    if _is_mapped(address):
        raise EvaluationError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return IP(address)


def parse_cidr(text: str) -> CIDR:
    prefix = "network address parse error during conversion from string: "
    try:
        network = _parse_prefix(text)
    except ValueError as error:
        raise EvaluationError(f"{prefix}{prefix}netip.ParsePrefix({quote(text)}): {error}") from None
    if _is_mapped(network.address):
        raise EvaluationError(f"{prefix}IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return network


def _parse_prefix(text: str) -> CIDR:
    before, slash, bits = text.rpartition("/")
    if not slash:
        raise ValueError("no '/'")
    address = _parse_address(before)
    if "%" in before:
        raise ValueError("IPv6 zones cannot be present in a prefix")
    if not _BITS.fullmatch(bits):
        raise ValueError(f"bad bits after slash: {quote(bits)}")
    if int(bits) > address.max_prefixlen:
        raise ValueError("prefix length out of range")
    return CIDR(address, int(bits))


def _can(parse: Callable[[str], Opaque]) -> Callable[[str], bool]:
    """Make a predicate of a parser: whether it takes the text."""

    def is_valid(text: str) -> bool:
        try:
            parse(text)
        except EvaluationError:
            return False
        return True

    return is_valid


def masked(network: CIDR) -> CIDR:
    zeros = network.address.max_prefixlen - network.bits
    return CIDR(type(network.address)(network.prefix << zeros), network.bits)


def contains_ip(network: CIDR, ip: IP) -> bool:
    return network.covers(ip.address)


def contains_cidr(network: CIDR, other: CIDR) -> bool:
    return network.bits <= other.bits and network.covers(other.address)


def is_global_unicast(ip: IP) -> bool:
    address = ip.address
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
        or address == _BROADCAST
    )


OVERLOADS: list[Overload] = [
    function("ip", "string -> net.IP", parse_ip),
    function("isIP", "string -> bool", _can(parse_ip)),
    function("ip.isCanonical", "string -> bool", lambda text: str(parse_ip(text).address) == text),
    function("string", "net.IP -> string", lambda ip: str(ip.address)),
    member("family", "net.IP -> int", lambda ip: ip.address.version),
    member("isUnspecified", "net.IP -> bool", lambda ip: ip.address.is_unspecified),
    member("isLoopback", "net.IP -> bool", lambda ip: ip.address.is_loopback),
    member("isLinkLocalMulticast", "net.IP -> bool", lambda ip: is_link_local_multicast(ip.address)),
    member("isLinkLocalUnicast", "net.IP -> bool", lambda ip: ip.address.is_link_local),
    member("isGlobalUnicast", "net.IP -> bool", is_global_unicast),
    function("cidr", "string -> net.CIDR", parse_cidr),
    function("isCIDR", "string -> bool", _can(parse_cidr)),
    function("string", "net.CIDR -> string", lambda network: f"{network.address}/{network.bits}"),
    member("containsIP", "net.CIDR, string -> bool", lambda network, text: contains_ip(network, parse_ip(text))),
    member("containsIP", "net.CIDR, net.IP -> bool", contains_ip),
    member("containsCIDR", "net.CIDR, string -> bool", lambda network, text: contains_cidr(network, parse_cidr(text))),
    member("containsCIDR", "net.CIDR, net.CIDR -> bool", contains_cidr),
    member("ip", "net.CIDR -> net.IP", lambda network: IP(network.address)),
    member("prefixLength", "net.CIDR -> int", lambda network: network.bits),
    member("masked", "net.CIDR -> net.CIDR", masked),
]
