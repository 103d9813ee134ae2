"""The format library: `format.dns1123Label().validate(self.name)` is none, or a list of errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from nodeyard.apiserver.cel.declarations import Overload, function, member
from nodeyard.apiserver.cel.errors import no_such_overload
from nodeyard.apiserver.cel.library import urls
from nodeyard.apiserver.cel.timestamps import parse_date
from nodeyard.apiserver.cel.values import NONE, Opaque, Optional
from nodeyard.kube.names import (
    dns_1035_faults,
    label_faults,
    label_value_faults,
    qualified_name_faults,
    subdomain_faults,
)

Faults = Callable[[str], list[str]]

_UUID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_CLOCK = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")


@dataclass(frozen=True, slots=True)
class Format(Opaque):
    name: str
    faults: Faults
    type_name = "kubernetes.NamedFormat"

    def equals(self, other: Any) -> bool:
        if not isinstance(other, Format):
            raise no_such_overload()
        return self.name == other.name

    def validate(self, text: str) -> Optional:
        found = self.faults(text)
        return Optional(found) if found else NONE


def _prefix(faults: Faults) -> Faults:
    """Validate a name that something is appended to: it may end with a dash."""

    def of_prefix(name: str) -> list[str]:
        return faults(name[:-2] + "a" if len(name) > 1 and name.endswith("-") else name)

    return of_prefix


def _unless(holds: Callable[[str], bool], complaint: str) -> Faults:
    return lambda text: [] if holds(text) else [complaint]


def is_date_time(text: str) -> bool:
    date, separator, clock = text.lower().partition("t")
    found = _CLOCK.fullmatch(clock)
    if not separator or parse_date(date) is None or found is None:
        return False
    return found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def _uri_faults(text: str) -> list[str]:
    wrong = urls.fault(text)
    return [wrong] if wrong else []


FORMATS: dict[str, Format] = {
    name: Format(name, faults)
    for name, faults in {
        "dns1123Label": label_faults,
        "dns1123Subdomain": subdomain_faults,
        "dns1035Label": dns_1035_faults,
        "qualifiedName": qualified_name_faults,
        "dns1123LabelPrefix": _prefix(label_faults),
        "dns1123SubdomainPrefix": _prefix(subdomain_faults),
        "dns1035LabelPrefix": _prefix(dns_1035_faults),
        "labelValue": label_value_faults,
        "uri": _uri_faults,
        "uuid": _unless(lambda text: bool(_UUID.fullmatch(text)), "does not match the UUID format"),
        "byte": _unless(lambda text: bool(_BASE64.fullmatch(text)), "invalid base64"),
        "date": _unless(lambda text: parse_date(text) is not None, "invalid date"),
        "datetime": _unless(is_date_time, "invalid datetime"),
    }.items()
}


def _named(name: str) -> Optional:
    found = FORMATS.get(name)
    return Optional(found) if found else NONE


def _constant(named: Format) -> Callable[[], Format]:
    return lambda: named


def _overloads() -> Iterator[Overload]:
    yield function("format.named", "string -> optional(kubernetes.NamedFormat)", _named)
    yield member("validate", "kubernetes.NamedFormat, string -> optional(list(string))", Format.validate)
    for name, named in FORMATS.items():
        yield function(f"format.{name}", "-> kubernetes.NamedFormat", _constant(named))


OVERLOADS: list[Overload] = list(_overloads())
