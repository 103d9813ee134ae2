"""Which kinds of an infrastructure provider are written, and in which version: what the server has decides.

Providers rename kinds and change shapes between releases. The Docker kinds give way to the Dev kinds, which are taken
where both are there; Proxmox has two versions of different shape. Only versions whose shape is known here are written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.generation.unfit import Unfit
from nodeyard.capabilities.pools.snapshot import Served
from nodeyard.capabilities.pools.types import LatticeCluster
from nodeyard.kube.json import Object

CURRENT: Final = "v1beta2"
PROXMOX_CURRENT: Final = "v1alpha2"
PROXMOX_OLD: Final = "v1alpha1"


class Unserved(Exception):
    """The server has none of the kinds that the provider could be written in."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


@dataclass(frozen=True)
class Family:
    """Kinds of one provider that belong together."""

    cluster: str
    machine_template: str
    versions: tuple[str, ...]
    """Those whose shape is known, the best first."""

    def version(self, served: Served) -> str:
        """The best version that the server has of both kinds; empty if none."""
        both = set(served.of(self.cluster)) & set(served.of(self.machine_template))
        return next((version for version in self.versions if version in both), "")


@dataclass(frozen=True)
class Choice:
    """A family in the version it is written in."""

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
"""By provider, the preferred one first."""
_PRODUCTS: Final = {"docker": "CAPD", "aws": "CAPA", "proxmox": "CAPMOX"}


def choose(lc: LatticeCluster, served: Served) -> Choice:
    """The kinds for this cluster. Raises Unserved, and Unfit where no single provider is configured."""
    provider = lc.spec.provider.config.name
    if provider not in FAMILIES:
        raise Unfit(
            "spec.provider.config",
            f"spec.provider.config must name exactly one provider; supported: {', '.join(sorted(FAMILIES))}",
        )
    for family in FAMILIES[provider]:
        version = family.version(served)
        if version:
            return Choice(provider, family, version)
    raise Unserved(FAMILIES[provider][0].cluster, _missing(provider))


def kept(served: Served, kind: str) -> Served:
    """The same, without the other families of a provider whose infrastructure cluster or template of `kind` exists.

    A cluster that was made of Docker kinds stays one for as long as they are served: its machines and its
    infrastructure have to be of one family.
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
    """Whether it is the Docker kinds, whose fields are those of a Dev kind's docker backend."""
    return choice.family is _DOCKER


def reference(group: str, kind: str, name: str) -> Object:
    """As Cluster API refers to objects: by group, without a version."""
    return {"apiGroup": group, "kind": kind, "name": name}


def _has(family: Family, kind: str) -> bool:
    return kind in (family.cluster, family.machine_template)


def _missing(provider: str) -> str:
    wanted = " or ".join(
        f"{family.cluster} and {family.machine_template} ({', '.join(family.versions)})"
        for family in FAMILIES[provider]
    )
    return f"provider {provider}: the server has no {wanted}; install {_PRODUCTS[provider]} and its definitions"
