"""Checks IP, CIDR, MAC, URI and e-mail addresses as Go's standard library does."""

from __future__ import annotations

import ipaddress
import re

_OCTET = "0*(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_SLOPPY_IPV4 = re.compile(rf"{_OCTET}(?:\.{_OCTET}){{3}}")
_LINK_LOCAL_MULTICAST = ipaddress.ip_network("224.0.0.0/24")
_MAC = re.compile(
    r"[0-9A-Fa-f]{2}(?P<sign>[:-])[0-9A-Fa-f]{2}(?:(?P=sign)[0-9A-Fa-f]{2}){4}"
    r"(?:(?:(?P=sign)[0-9A-Fa-f]{2}){2}|(?:(?P=sign)[0-9A-Fa-f]{2}){14})?"
    r"|[0-9A-Fa-f]{4}(?:\.[0-9A-Fa-f]{4}){2}(?:\.[0-9A-Fa-f]{4}|(?:\.[0-9A-Fa-f]{4}){7})?"
    r"|(?:[0-9A-Fa-f]{12}|[0-9A-Fa-f]{16}|[0-9A-Fa-f]{40})"
)

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):(.*)", re.DOTALL)
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_PORT = re.compile(r"(?::[0-9]*)?")
_ESCAPE_FAULT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:\[\]<>\"\x80-\U0010ffff]|%25|%[89A-Fa-f][0-9A-Fa-f])*")

_ATEXT = r"[!#-'*+\-/-9=?A-Z^-~\x80-\U0010ffff]"
_DOT_ATOM = rf"{_ATEXT}+(?:\.{_ATEXT}+)*"
_QUOTED = r'"(?:[\t !#-\[\]-~\x80-\U0010ffff]|\\[\t -~\x80-\U0010ffff])*"'
_SPEC = rf"[ \t]*(?:{_DOT_ATOM}|(?!\"\"){_QUOTED})@[ \t]*(?:{_DOT_ATOM}|\[(?P<ip>[^\[\]\\\s]*)\])"
# Possessive quantifiers: without them a long run of blanks or words would backtrack exponentially.
_COMMENTS = r"(?:[ \t]*+\((?:[^()\\]|\\.)*+\))*+[ \t]*+"
_PHRASE = rf"(?:[ \t]*(?:(?:{_ATEXT}|\.)++|{_QUOTED}){_COMMENTS})+"
_BARE_EMAIL = re.compile(rf"{_SPEC}{_COMMENTS}")
_NAMED_EMAIL = re.compile(rf"(?:{_PHRASE})?[ \t]*<{_SPEC}>{_COMMENTS}")


def is_ip(text: str) -> bool:
    """Return whether a text is an IPv4 or IPv6 address without a zone."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def is_ipv4(text: str) -> bool:
    """Return whether a text is an IPv4 address; leading zeros and IPv4-mapped IPv6 addresses are accepted, as in Go."""
    return "." in text and (_SLOPPY_IPV4.fullmatch(text) is not None or _is_sloppy_ipv6(text))


def is_ipv6(text: str) -> bool:
    return ":" in text and is_ip(text)


def is_cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    if not slash or not length.isascii() or not length.isdigit():
        return False
    # Python refuses to read very long numbers.
    bits = int(length) if len(length) <= 9 else 999
    if _SLOPPY_IPV4.fullmatch(address):
        return bits <= 32
    return _is_sloppy_ipv6(address) and bits <= 128


def _is_sloppy_ipv6(text: str) -> bool:
    groups, colon, last = text.rpartition(":")
    if not colon:
        return False
    if _SLOPPY_IPV4.fullmatch(last):
        return is_ip(f"{groups}:0.0.0.0")
    return is_ip(text)


def is_link_local_multicast(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    if address.version == 4:
        return address in _LINK_LOCAL_MULTICAST
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


def is_mac(text: str) -> bool:
    """Return whether a text is a MAC address of six, eight or twenty octets."""
    return _MAC.fullmatch(text) is not None


def is_request_uri(text: str) -> bool:
    """Return whether a text is an absolute URI or an absolute path."""
    if not text or any(char < " " or char == "\x7f" for char in text):
        return False
    if text == "*":
        return True
    if text.startswith(":"):
        return False
    found = _SCHEME.fullmatch(text)
    scheme, rest = (found[1].lower(), found[2]) if found else ("", text)
    rest = rest.partition("?")[0]
    if not rest.startswith("/"):
        return bool(scheme)
    if scheme and rest.startswith("//"):
        authority, slash, rest = rest[2:].partition("/")
        if not _is_authority(scheme, authority):
            return False
        rest = slash + rest
    return not _ESCAPE_FAULT.search(rest)


def _is_authority(scheme: str, authority: str) -> bool:
    user, _, host = authority.rpartition("@")
    if not _USER.fullmatch(user) or _ESCAPE_FAULT.search(user):
        return False
    bracket = host.rfind("[")
    if bracket > 0:
        return False
    if bracket == 0:
        return _is_ip_literal(host)
    if ":" in host:
        # Only http and https require a single colon; database URLs list several hosts.
        colon = host.find(":") if scheme in ("http", "https") else host.rfind(":")
        if not _PORT.fullmatch(host[colon:]):
            return False
    return _HOST.fullmatch(host) is not None


def _is_ip_literal(host: str) -> bool:
    literal, bracket, port = host[1:].rpartition("]")
    address = literal.partition("%25")[0]
    return bool(bracket) and _PORT.fullmatch(port) is not None and is_ipv6(address)


def is_email(text: str) -> bool:
    """Return whether a text is an e-mail address or `Name <address>`."""
    found = _BARE_EMAIL.fullmatch(text) or _NAMED_EMAIL.fullmatch(text)
    return found is not None and (found["ip"] is None or is_ip(found["ip"]))
