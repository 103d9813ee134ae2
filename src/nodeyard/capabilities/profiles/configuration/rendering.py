"""The drop-in files that a node's service reads, in their order, and their hash.

    01-nova-defaults.conf     what the node, or its role, has for the service (`nova.customServiceConfig`)
    02-nova-profile.conf      the profile's configuration
    03-nova-custom.conf       what the user added on the service object

oslo.config reads them by name, and the later one wins, option by option. Every file is somebody's text byte for byte:
nothing is generated, merged or normalised, and an empty part leaves no file. In particular no `host` is written: nova
takes a compute whose host changes for another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.configuration import judgement
from nodeyard.capabilities.profiles.configuration.judgement import Judgement
from nodeyard.capabilities.profiles.snapshot import Profile, Service
from nodeyard.kube.names import label_value_faults, subdomain_faults

DEFAULTS: Final = "01-{service}-defaults.conf"
PROFILE: Final = "02-{service}-profile.conf"
CUSTOM: Final = "03-{service}-custom.conf"
MOST_BYTES: Final = 1024 * 1024
"""What a ConfigMap or a Secret holds, names of files not counted."""

_DIGITS: Final = 16


@dataclass(frozen=True)
class Rendered:
    files: Mapping[str, str] = field(default_factory=dict)
    """By name, in the order in which they are read."""
    hash: str = ""
    faults: tuple[str, ...] = ()
    """Why it cannot be deployed; what is deployed stays as it is."""
    warnings: tuple[str, ...] = ()


def render(service: Service, node_name: str, profile: Profile | None, custom: str, defaults: str = "") -> Rendered:
    """What a node's service reads: its defaults, its profile, and the custom part of its service object."""
    files = files_of(service, defaults, profile.config if profile else "", custom)
    judged = judgement.of_node(service, node_name, profile, custom, defaults) + _limits(service, node_name, files)
    return Rendered(files, hash_of(files), judged.faults, judged.warnings)


def files_of(service: Service, defaults: str, config: str, custom: str) -> Mapping[str, str]:
    parts = {DEFAULTS: defaults, PROFILE: config, CUSTOM: custom}
    return {name.format(service=service.name): text for name, text in parts.items() if text}


def hash_of(files: Mapping[str, str]) -> str:
    """The same for the same names and bytes, whoever computes it; each is counted with its length in front."""
    digest = sha256()
    for name, text in sorted(files.items()):
        for part in (name.encode(), text.encode()):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:_DIGITS]


def profile_hash(service: Service, config: str) -> str:
    """Of a profile's own configuration: that of a node which has nothing else."""
    return hash_of({PROFILE.format(service=service.name): config} if config else {})


def _limits(service: Service, node: str, files: Mapping[str, str]) -> Judgement:
    """What the server would refuse."""
    name = names.config_name(node, service.name)
    faults = [f"the name of the configuration, {name!r}: {fault}" for fault in subdomain_faults(name)]
    faults += [f"{names.NODE_KIND}/{node}: its name as a label: {fault}" for fault in label_value_faults(node)]
    size = sum(len(text.encode()) for text in files.values())
    if size > MOST_BYTES:
        faults.append(
            f"{names.NODE_KIND}/{node}: the configuration of {service.name} has {size:,} bytes in "
            f"{' and '.join(files)}; a ConfigMap or Secret holds {MOST_BYTES:,}, shorten it"
        )
    return Judgement(tuple(faults))
