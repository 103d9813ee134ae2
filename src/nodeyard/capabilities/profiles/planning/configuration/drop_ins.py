"""Drop-in files of a service on a node, and their hash.

    01-nova-defaults.conf     configuration of the node or its role (`nova.customServiceConfig`)
    02-nova-profile.conf      configuration of the profile
    03-nova-custom.conf       configuration of the user on the service object

oslo.config reads the files by name; the last value of an option wins. Texts are kept byte for byte: nothing is
generated, merged or normalised, and an empty part has no file. In particular `host` is not written, because nova treats
a compute with a changed host as a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.planning.configuration import validation
from nodeyard.capabilities.profiles.planning.configuration.validation import ValidationResult
from nodeyard.capabilities.profiles.snapshot import Profile, Service
from nodeyard.kube.names import label_value_faults, subdomain_faults

DEFAULTS: Final = "01-{service}-defaults.conf"
PROFILE: Final = "02-{service}-profile.conf"
CUSTOM: Final = "03-{service}-custom.conf"
MOST_BYTES: Final = 1024 * 1024
"""Maximum size of a ConfigMap or Secret, without file names."""

_DIGITS: Final = 16


@dataclass(frozen=True)
class Rendered:
    files: Mapping[str, str] = field(default_factory=dict)
    """Files by name, in reading order."""
    hash: str = ""
    faults: tuple[str, ...] = ()
    """Faults that block the deployment; the deployed configuration is kept."""
    warnings: tuple[str, ...] = ()


def render(service: Service, node_name: str, profile: Profile | None, custom: str, defaults: str = "") -> Rendered:
    """Render defaults, profile and user configuration of a service on a node, and validate them."""
    files = files_of(service, defaults, profile.config if profile else "", custom)
    result = validation.validate_node(service, node_name, profile, custom, defaults) + _limits(
        service, node_name, files
    )
    return Rendered(files, hash_of(files), result.faults, result.warnings)


def files_of(service: Service, defaults: str, config: str, custom: str) -> Mapping[str, str]:
    parts = {DEFAULTS: defaults, PROFILE: config, CUSTOM: custom}
    return {name.format(service=service.name): text for name, text in parts.items() if text}


def hash_of(files: Mapping[str, str]) -> str:
    """Hash names and contents, each prefixed with its length; stable across processes."""
    digest = sha256()
    for name, text in sorted(files.items()):
        for part in (name.encode(), text.encode()):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:_DIGITS]


def profile_hash(service: Service, config: str) -> str:
    """Hash the configuration of a profile, as for a node without other configuration."""
    return hash_of({PROFILE.format(service=service.name): config} if config else {})


def _limits(service: Service, node: str, files: Mapping[str, str]) -> ValidationResult:
    """Return faults of names and sizes that the API server would reject."""
    name = names.config_name(node, service.name)
    faults = [f"name of the configuration object {name!r}: {fault}" for fault in subdomain_faults(name)]
    faults += [
        f"{names.NODE_KIND}/{node}: its name is not a valid label value: {fault}" for fault in label_value_faults(node)
    ]
    size = sum(len(text.encode()) for text in files.values())
    if size > MOST_BYTES:
        faults.append(
            f"{names.NODE_KIND}/{node}: the configuration of {service.name} has {size:,} bytes in "
            f"{' and '.join(files)}, more than the {MOST_BYTES:,} of a ConfigMap or Secret: shorten it"
        )
    return ValidationResult(tuple(faults))
