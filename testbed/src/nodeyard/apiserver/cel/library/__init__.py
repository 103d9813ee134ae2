"""The functions of CEL in Kubernetes, one module for each library.

They are the environment of Kubernetes 1.36: the standard library, the strings (version 2), lists (version 3), sets,
optional and two-variable extensions, and the Kubernetes libraries. `authorizer` is in
`admission/authorizer_library.py`, because it needs the authorizer.
"""

from __future__ import annotations

from nodeyard.apiserver.cel.declarations import Functions
from nodeyard.apiserver.cel.library import (
    arithmetic,
    conversions,
    formats,
    lists,
    network,
    optionals,
    quantities,
    regex,
    strings,
    times,
    urls,
    versions,
)
from nodeyard.apiserver.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    list_of,
    map_of,
    optional_of,
    parse_type,
)

FUNCTIONS = Functions(
    arithmetic.OVERLOADS,
    conversions.OVERLOADS,
    strings.OVERLOADS,
    regex.OVERLOADS,
    times.OVERLOADS,
    lists.OVERLOADS,
    optionals.OVERLOADS,
    quantities.OVERLOADS,
    urls.OVERLOADS,
    network.OVERLOADS,
    formats.OVERLOADS,
    versions.OVERLOADS,
)

TYPE_NAMES = {
    "bool": BOOL,
    "bytes": BYTES,
    "double": DOUBLE,
    "google.protobuf.Duration": DURATION,
    "google.protobuf.Timestamp": TIMESTAMP,
    "int": INT,
    "list": list_of(DYN),
    "map": map_of(DYN, DYN),
    "null_type": NULL,
    "optional_type": optional_of(DYN),
    "string": STRING,
    "type": TYPE,
    "uint": UINT,
    "net.CIDR": parse_type("net.CIDR"),
    "net.IP": parse_type("net.IP"),
}
