"""Tools that `python -m nodeyard.testing.build` builds: one Go module each, so their dependencies do not conflict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nodeyard.testing import assets, versions

MODULES = Path(__file__).with_name("go")


@dataclass(frozen=True)
class Tool:
    """A Go module of ours (`go/<name>`), the module that it pins and the binaries that it builds."""

    name: str
    module: str
    version: str
    packages: dict[str, str]
    stamps: dict[str, str]

    @property
    def folder(self) -> Path:
        return assets.folder(self.name, self.version)

    @property
    def linker_flags(self) -> str:
        """Return flags that strip symbols and set the version, which is v0.0.0 otherwise."""
        return " ".join(["-s", "-w", *(f"-X {variable}={value}" for variable, value in self.stamps.items())])


def all_tools() -> tuple[Tool, ...]:
    return (etcd(), kubernetes(), cluster_api(), kwok(), helm())


def of(binary: str) -> Tool:
    """Return the tool that a binary belongs to."""
    return next(tool for tool in all_tools() if binary in tool.packages)


def binaries() -> Iterator[tuple[Tool, str]]:
    for tool in all_tools():
        for binary in tool.packages:
            yield tool, binary


def etcd() -> Tool:
    return Tool(
        name="etcd",
        module="go.etcd.io/etcd/server/v3",
        version=versions.ETCD,
        packages={"etcd": "go.etcd.io/etcd/server/v3"},
        stamps={"go.etcd.io/etcd/api/v3/version.GitSHA": versions.ETCD},
    )


def kubernetes() -> Tool:
    version = versions.kubernetes()
    parsed = versions.pinned(version)
    names = ("kube-apiserver", "kubectl", "kube-controller-manager", "kube-scheduler")
    values = {"gitVersion": version, "gitMajor": parsed.major, "gitMinor": parsed.minor, "gitTreeState": "clean"}
    homes = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return Tool(
        name="kubernetes",
        module="k8s.io/kubernetes",
        version=version,
        packages={name: f"k8s.io/kubernetes/cmd/{name}" for name in names},
        stamps={f"{home}.{variable}": str(value) for home in homes for variable, value in values.items()},
    )


def cluster_api() -> Tool:
    return Tool(
        name="clusterapi",
        module="sigs.k8s.io/cluster-api",
        version=versions.CLUSTER_API,
        packages={"cluster-api-core": "sigs.k8s.io/cluster-api/core"},
        stamps={"sigs.k8s.io/cluster-api/version.gitVersion": versions.CLUSTER_API},
    )


def kwok() -> Tool:
    return Tool(
        name="kwok",
        module="sigs.k8s.io/kwok",
        version=versions.KWOK,
        packages={"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
        stamps={"sigs.k8s.io/kwok/pkg/consts.Version": versions.KWOK},
    )


def helm() -> Tool:
    return Tool(
        name="helm",
        module="helm.sh/helm/v4",
        version=versions.HELM,
        packages={"helm": "helm.sh/helm/v4/cmd/helm"},
        stamps={"helm.sh/helm/v4/internal/version.version": versions.HELM},
    )
