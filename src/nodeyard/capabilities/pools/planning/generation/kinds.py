"""Chooses the kinds and versions of an infrastructure provider from those that the API server serves.

Providers rename kinds and change schemas between releases. The Docker kinds are replaced by the Dev kinds, which are
preferred if both are served. Proxmox has two versions with different schemas. Only versions with a known schema are
written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.snapshot import Served
from nodeyard.capabilities.pools.types import LatticeCluster
from nodeyard.kube.json import Object

CURRENT: Final = "v1beta2"
PROXMOX_CURRENT: Final = "v1alpha2"
PROXMOX_OLD: Final = "v1alpha1"


class InvalidSpec(Exception):
    """A field of the class or of the cluster cannot be expressed for the provider."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


class NotServed(Exception):
    """The API server serves none of the provider's known kinds."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


@dataclass(frozen=True)
class Family:
    """Infrastructure cluster and machine template kinds that belong together."""

    cluster: str
    machine_template: str
    versions: tuple[str, ...]
    """Versions with a known schema, preferred version first."""

    def version(self, served: Served) -> str:
        """Return the preferred version that is served for both kinds; empty if none."""
        both = set(served.of(self.cluster)) & set(served.of(self.machine_template))
        return next((version for version in self.versions if version in both), "")


@dataclass(frozen=True)
class Choice:
    """A family and the version to write."""

    provider: str
    family: Family
    version: str

    @property
    def api_version(self) -> str:
        return f"{names.INFRASTRUCTURE_GROUP}/{self.version}"


_DEV = Family("DevCluster", "DevMachineTemplate", (CURRENT,))
_DOCKER = Family("DockerCluster", "DockerMachineTemplate", (CURRENT,))
_AWS = Family("AWSCluster", "AWSMachineTemplate", (CURRENT,))
_PROXMOX = Family("ProxmoxCluster", "ProxmoxMachineTemplate", (PROXMOX_CURRENT, PROXMOX_OLD))

FAMILIES: Final = {"docker": (_DEV, _DOCKER), "aws": (_AWS,), "proxmox": (_PROXMOX,)}
"""Families by provider, preferred family first."""
_PRODUCTS: Final = {"docker": "CAPD", "aws": "CAPA", "proxmox": "CAPMOX"}


def choose(lc: LatticeCluster, served: Served) -> Choice:
    """Choose the kinds for this cluster. Raises NotServed, and InvalidSpec unless exactly one provider is set."""
    provider = lc.spec.provider.config.name
    if provider not in FAMILIES:
        raise InvalidSpec(
            "spec.provider.config",
            f"spec.provider.config must set exactly one provider; supported: {', '.join(sorted(FAMILIES))}",
        )
    for family in FAMILIES[provider]:
        version = family.version(served)
        if version:
            return Choice(provider, family, version)
    raise NotServed(FAMILIES[provider][0].cluster, _missing_message(provider))


def keep_family(served: Served, kind: str) -> Served:
    """Remove the other families of the provider that has `kind` from the served kinds.

    A cluster with Docker kinds keeps them for as long as they are served: its machines and its infrastructure cluster
    must be of one family.
    """
    others = {
        each
        for families in FAMILIES.values()
        if any(_has(family, kind) and family.version(served) for family in families)
        for family in families
        if not _has(family, kind)
        for each in (family.cluster, family.machine_template)
    }
    return Served({each: versions for each, versions in served.versions.items() if each not in others})


def is_docker(choice: Choice) -> bool:
    """Return True for the Docker kinds; their fields are those of the Dev kinds' docker backend."""
    return choice.family is _DOCKER


def reference(group: str, kind: str, name: str) -> Object:
    """Return a Cluster API reference: group, kind and name, without a version."""
    return {"apiGroup": group, "kind": kind, "name": name}


def _has(family: Family, kind: str) -> bool:
    return kind in (family.cluster, family.machine_template)


def _missing_message(provider: str) -> str:
    wanted = " or ".join(
        f"{family.cluster} and {family.machine_template} ({', '.join(family.versions)})"
        for family in FAMILIES[provider]
    )
    return f"provider {provider}: the API server does not serve {wanted}; install {_PRODUCTS[provider]} and its CRDs"
