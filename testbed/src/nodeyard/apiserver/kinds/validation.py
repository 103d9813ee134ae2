"""Validation of values that many kinds have: names, ports, percentages, enums, in the words of kube-apiserver.

Functions return the errors of one value in the order in which kube-apiserver finds them. Metadata is validated in
`nodeyard.apiserver.metadata`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import msgspec

from nodeyard.kube.fields import FieldError, FieldErrorType, invalid, required
from nodeyard.kube.json import Json, Object
from nodeyard.kube.names import label_faults, subdomain_faults
from nodeyard.schema.addresses import is_cidr, is_ip, is_ipv4, is_ipv6, is_link_local_multicast

NOT_NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"

_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_PERCENT = "[0-9]+%"

Faults = Callable[[str], list[str]]


def faults_at(path: str, value: str, faults: Faults) -> list[FieldError]:
    return [invalid(path, value, fault) for fault in faults(value)]


def label_errors_at(path: str, value: str) -> list[FieldError]:
    """Validate a required DNS label."""
    return faults_at(path, value, label_faults) if value else [required(path)]


def subdomain_errors_at(path: str, value: str) -> list[FieldError]:
    return faults_at(path, value, subdomain_faults)


def unsupported(path: str, value: Json, *choices: str) -> FieldError:
    """Return the error of a value that is none of the choices, listed in this order (`fields.not_supported` sorts)."""
    listed = ", ".join(f'"{choice}"' for choice in choices)
    return FieldError(FieldErrorType.NOT_SUPPORTED, path, value, f"supported values: {listed}")


def choice_errors(path: str, value: Json, *choices: str) -> list[FieldError]:
    return [] if value in choices else [unsupported(path, value, *choices)]


def required_choice_errors(path: str, value: str | None, *choices: str) -> list[FieldError]:
    return choice_errors(path, value, *choices) if value else [required(path)]


def not_negative_errors(path: str, obj: Mapping[str, Any], *names: str) -> list[FieldError]:
    """Return an error for each of these fields that is negative."""
    return [
        invalid(f"{path}.{name}", obj[name], NOT_NEGATIVE)
        for name in names
        if obj.get(name) is not None and obj[name] < 0
    ]


def range_fault(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


def port_number_errors(path: str, number: int) -> list[FieldError]:
    return [] if 1 <= number <= 65535 else [invalid(path, number, range_fault(1, 65535))]


def port_errors(path: str, port: int | str) -> list[FieldError]:
    """Validate a port number or name."""
    return port_number_errors(path, port) if isinstance(port, int) else faults_at(path, port, port_name_faults)


def port_name_faults(name: str) -> list[str]:
    faults = []
    if len(name) > 15:
        faults.append("must be no more than 15 characters")
    if not re.fullmatch("[-a-z0-9]+", name):
        faults.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
        return faults
    if not re.search("[a-z]", name):
        faults.append("must contain at least one letter (a-z)")
    if "--" in name:
        faults.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        faults.append("must not begin or end with a hyphen")
    return faults


def path_segment_faults(name: str) -> list[str]:
    """Validate a name that only has to fit between two slashes of a URL."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{char}'" for char in "/%" if char in name]


def config_key_faults(key: str) -> list[str]:
    faults = []
    if len(key) > 253:
        faults.append("must be no more than 253 characters")
    if not re.fullmatch(_CONFIG_KEY, key):
        faults.append(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            f"'KEY_NAME',  or 'key-name', regex used for validation is '{_CONFIG_KEY}')"
        )
    elif key in (".", ".."):
        faults.append(f"must not be '{key}'")
    elif key.startswith(".."):
        faults.append("must not start with '..'")
    return faults


def environment_name_faults(name: str) -> list[str]:
    if all(" " <= char <= "~" and char != "=" for char in name):
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def count_errors(path: str, value: int | str | None) -> list[FieldError]:
    """Validate a number or percentage that must not be negative."""
    if value is None:
        return []
    if isinstance(value, int):
        return [] if value >= 0 else [invalid(path, value, NOT_NEGATIVE)]
    if re.fullmatch(_PERCENT, value):
        return []
    detail = (
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used "
        f"for validation is '{_PERCENT}')"
    )
    return [invalid(path, value, detail)]


def at_most_all_errors(path: str, value: int | str | None) -> list[FieldError]:
    if isinstance(value, str) and re.fullmatch(_PERCENT, value) and int(value[:-1]) > 100:
        return [invalid(path, value, "must not be greater than 100%")]
    return []


def is_zero(value: int | str | None) -> bool:
    return value is not None and (value == 0 or (isinstance(value, str) and bool(re.fullmatch("0+%", value))))


def ip_errors(path: str, value: str, *, known: Collection[str] = ()) -> list[FieldError]:
    """Validate an IP address in canonical form; `known` values, those of the old object, may have any form."""
    if not (is_ipv4(value) or is_ipv6(value)):
        return [invalid(path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    if value in known:
        return []
    if not is_ip(value):
        return [invalid(path, value, "must not have leading 0s")]
    if _is_mapped(ipaddress.ip_address(value)):
        return [invalid(path, value, "must not be an IPv4-mapped IPv6 address")]
    return []


def special_ip_errors(path: str, value: str) -> list[FieldError]:
    """Refuse addresses that no Service can have."""
    if not is_ip(value):
        return []
    address = ipaddress.ip_address(value)
    if address.is_unspecified:
        return [invalid(path, value, f"may not be unspecified ({value})")]
    if address.is_loopback:
        return [invalid(path, value, "may not be in the loopback range (127.0.0.0/8, ::1/128)")]
    if address.is_link_local:
        return [invalid(path, value, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")]
    if is_link_local_multicast(address):
        return [invalid(path, value, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")]
    return []


def cidr_errors(path: str, value: str) -> list[FieldError]:
    """Validate a CIDR in canonical form."""
    if not is_cidr(value):
        return [invalid(path, value, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")]
    address, _, length = value.partition("/")
    if not is_ip(address) or str(int(length)) != length:
        return [invalid(path, value, "must not have leading 0s in IP or prefix length")]
    if _is_mapped(ipaddress.ip_address(address)):
        return [invalid(path, value, "must not have an IPv4-mapped IPv6 address")]
    if ipaddress.ip_network(value, strict=False).network_address != ipaddress.ip_address(address):
        return [invalid(path, value, "must not have bits set beyond the prefix length")]
    return []


def _is_mapped(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return address.version == 6 and address.ipv4_mapped is not None


def duplicates(values: Iterable[Any]) -> set[int]:
    """Return the indexes of values that occurred before."""
    seen: set[Any] = set()
    places: set[int] = set()
    for place, value in enumerate(values):
        if value in seen:
            places.add(place)
        seen.add(value)
    return places


def raw_json(value: Json) -> msgspec.Raw:
    """Encode a value as messages show it, with its fields in the given order."""
    return msgspec.Raw(msgspec.json.encode(value))


def selector_json(selector: Object | None) -> Json:
    """Encode a label selector in the field order of the Go struct."""
    if not selector:
        return selector
    order = ("matchLabels", "matchExpressions")
    shown: Object = {name: selector[name] for name in order if selector.get(name)}
    if "matchLabels" in shown:
        shown["matchLabels"] = dict(sorted(shown["matchLabels"].items()))
    if "matchExpressions" in shown:
        shown["matchExpressions"] = [
            {name: each[name] for name in ("key", "operator", "values") if name in each}
            for each in shown["matchExpressions"]
        ]
    return raw_json(shown)
