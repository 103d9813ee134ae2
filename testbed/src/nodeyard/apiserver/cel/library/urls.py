"""The URL library, with Go's parsing: `url('https://example.com:8443/a').getPort()`.

A URL must be absolute or an absolute path; it is then parsed a second time, because only that parse knows fragments.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote as escape
from urllib.parse import unquote, unquote_to_bytes

from nodeyard.apiserver.cel.declarations import Overload, function, member
from nodeyard.apiserver.cel.errors import EvaluationError
from nodeyard.apiserver.cel.library.netip_errors import explain
from nodeyard.apiserver.cel.values import Opaque
from nodeyard.kube.goformat import quote

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):", re.ASCII)
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_HOST_ESCAPE = re.compile(r"%(?!25)[0-7][0-9A-Fa-f]")
_NOT_IN_HOST = re.compile(r"[^A-Za-z0-9$&+,=:;@!'()*\-._~\[\]<>\"%\u0080-\U0010ffff]")
_USERINFO = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", re.ASCII)
_PORT = re.compile(r"(?::\d*)?", re.ASCII)
_UNESCAPED_IN_PATH = "$&+,/:;=@-_.~"
_KEPT_IN_PATH = re.compile(r"[A-Za-z0-9$&+,/:;=@\-_.~!'()*\[\]%]*", re.ASCII)


class _Malformed(Exception):
    pass


@dataclass(frozen=True, slots=True)
class URL(Opaque):
    text: str
    scheme: str = ""
    host: str = ""
    path: str = ""
    """The escaped form."""
    query: str = ""
    type_name = "kubernetes.URL"

    @property
    def hostname(self) -> str:
        return self._split_host()[0]

    @property
    def port(self) -> str:
        return self._split_host()[1]

    def _split_host(self) -> tuple[str, str]:
        host, colon, port = self.host.rpartition(":")
        if not colon or "]" in port:
            host, port = self.host, ""
        if host.startswith("[") and "]" in host:
            host = host[1 : host.index("]")]
        return host, port

    def equals(self, other: object) -> bool:
        return isinstance(other, URL) and self.text == other.text


def fault(text: str) -> str:
    """Return the error of a URL, or an empty string."""
    try:
        _split(text, "request")
        _lenient(text)
    except _Malformed as error:
        return f"parse {quote(text)}: {error}"
    return ""


def parse(text: str) -> URL:
    wrong = fault(text)
    if wrong:
        raise EvaluationError(f"URL parse error during conversion from string: {wrong}")
    return _lenient(text)


def _lenient(text: str) -> URL:
    without_fragment, _, fragment = text.partition("#")
    url = _split(without_fragment, "reference")
    _check_escapes(fragment)
    return URL(text, url.scheme, url.host, url.path, url.query)


def _split(text: str, how: Literal["request", "reference"]) -> URL:
    if _CONTROL.search(text):
        raise _Malformed("net/url: invalid control character in URL")
    if not text and how == "request":
        raise _Malformed("empty url")
    if text == "*":
        return URL(text, path="*")
    scheme, rest = _scheme(text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return URL(text, scheme, query=query)
        raise _Malformed("invalid URI for request")
    host = ""
    if rest.startswith("//") and (scheme or (how == "reference" and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        host, rest = _authority(scheme, authority), slash + path
    return URL(text, scheme, host, _escaped_path(rest), query)


def _scheme(text: str) -> tuple[str, str]:
    if text.startswith(":"):
        raise _Malformed("missing protocol scheme")
    found = _SCHEME.match(text)
    return (found[1].lower(), text[found.end() :]) if found else ("", text)


def _authority(scheme: str, authority: str) -> str:
    userinfo, at, host = authority.rpartition("@")
    host = _host(scheme, host)
    if at:
        if not _USERINFO.fullmatch(userinfo):
            raise _Malformed("net/url: invalid userinfo")
        _check_escapes(userinfo)
    return host


def _host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise _Malformed("invalid IP-literal")
    if bracket == 0:
        return _literal_host(host)
    if ":" in host:
        # A list of hosts with ports is accepted for schemes other than http and https.
        start = host.index(":") if scheme in ("http", "https") else host.rindex(":")
        _check_port(host[start:])
    return _unescaped_host(host)


def _literal_host(host: str) -> str:
    """Parse a host in brackets, such as `[::1]:80`."""
    end = host.rfind("]")
    if end < 0:
        raise _Malformed("missing ']' in host")
    _check_port(host[end + 1 :])
    address = _unescaped_host(host[1:end])
    try:
        version = ipaddress.ip_address(address).version
    except ValueError:
        raise _Malformed(f"invalid host: {explain(address)}") from None
    if version == 4:
        raise _Malformed("invalid IP-literal")
    return f"[{address}]{host[end + 1 :]}"


def _check_port(port: str) -> None:
    if not _PORT.fullmatch(port):
        raise _Malformed(f"invalid port {quote(port)} after host")


def _unescaped_host(host: str) -> str:
    _check_escapes(host)
    ascii_escape = _HOST_ESCAPE.search(host)
    if ascii_escape:
        raise _Malformed(f"invalid URL escape {quote(ascii_escape[0])}")
    forbidden = _NOT_IN_HOST.search(host)
    if forbidden:
        raise _Malformed(f"invalid character {quote(forbidden[0])} in host name")
    return unquote(host)


def _check_escapes(text: str) -> None:
    broken = _ESCAPE.search(text)
    if broken:
        raise _Malformed(f"invalid URL escape {quote(broken[0])}")


def _escaped_path(path: str) -> str:
    """Return the path as written if it is a valid encoding, else escaped again."""
    _check_escapes(path)
    if _KEPT_IN_PATH.fullmatch(path):
        return path
    return escape(unquote_to_bytes(path), safe=_UNESCAPED_IN_PATH)


def _query(url: URL) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for part in url.query.split("&"):
        if not part or ";" in part or _ESCAPE.search(part):
            continue
        name, _, value = part.replace("+", " ").partition("=")
        values.setdefault(unquote(name), []).append(unquote(value))
    return values


OVERLOADS: list[Overload] = [
    function("url", "string -> kubernetes.URL", parse),
    function("isURL", "string -> bool", lambda text: not fault(text)),
    member("getScheme", "kubernetes.URL -> string", lambda url: url.scheme),
    member("getHost", "kubernetes.URL -> string", lambda url: url.host),
    member("getHostname", "kubernetes.URL -> string", lambda url: url.hostname),
    member("getPort", "kubernetes.URL -> string", lambda url: url.port),
    member("getEscapedPath", "kubernetes.URL -> string", lambda url: url.path),
    member("getQuery", "kubernetes.URL -> map(string, list(string))", _query),
]
