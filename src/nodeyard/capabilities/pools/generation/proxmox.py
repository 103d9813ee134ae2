"""Machines that are Proxmox VMs: CAPMOX, in both of its shapes.

v1alpha2 lists network devices, v1alpha1 has one by default. In both a machine is cloned either from the VM template of
an id on a source node, or from the one that has a tag, wherever that is; never from both. The control plane's address
is expected to be answered for by a load balancer or virtual address outside the cluster.
"""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.pools.generation.kinds import PROXMOX_OLD, Choice
from nodeyard.capabilities.pools.generation.metadata import given
from nodeyard.capabilities.pools.generation.unfit import Unfit
from nodeyard.capabilities.pools.types import LatticeCluster, ProxmoxClass, ProxmoxConfig
from nodeyard.kube.json import Object
from nodeyard.kube.quantity import QuantityError, parse

API_SERVER_PORT: Final = 6443
PREFIX: Final = 24
BRIDGE: Final = "vmbr0"
MODEL: Final = "virtio"
BOOT_DISK: Final = "scsi0"
_MIB: Final = 1024 * 1024
_STEP_MIB: Final = 8
"""Proxmox takes memory in steps of this."""
_LEAST_MIB: Final = 128
"""Nothing boots in less: such an amount is a number that was meant as MiB."""
_CONFIG: Final = "spec.provider.config.proxmox"
_CLASS: Final = "spec.providers.proxmox"


def infrastructure(lc: LatticeCluster, choice: Choice) -> Object:
    """The spec of the ProxmoxCluster. Raises Unfit without name servers, addresses or a gateway."""
    config, credentials = _config(lc), lc.spec.provider.credentials_secret_ref
    _require(config)
    spec = given(
        dnsServers=list(config.dns_servers),
        allowedNodes=list(config.allowed_nodes),
        ipv4Config={
            "addresses": list(config.ipv4_addresses),
            "gateway": config.ipv4_gateway,
            "prefix": PREFIX if config.ipv4_prefix is None else config.ipv4_prefix,
        },
    )
    if config.control_plane_endpoint:
        spec["controlPlaneEndpoint"] = {"host": config.control_plane_endpoint, "port": API_SERVER_PORT}
    if credentials and credentials.name:
        spec["credentialsRef"] = given(name=credentials.name, namespace=credentials.namespace or None)
    return spec


def control_plane(lc: LatticeCluster) -> Object:
    config = _config(lc)
    return given(
        **_source(config, ProxmoxClass()),
        **_network(config),
        sockets=config.cp_sockets,
        cores=config.cp_cores,
        memoryMiB=_stepped(config.cp_memory_mib, f"{_CONFIG}.cpMemoryMib"),
        diskSizeGb=config.cp_disk_size_gb,
    )


def worker(lc: LatticeCluster, entry: ProxmoxClass | None) -> Object:
    config, wanted = _config(lc), entry or ProxmoxClass()
    memory = _memory(wanted.memory)
    return given(
        **_source(config, wanted),
        **_network(config),
        sockets=_first(wanted.sockets, config.worker_sockets),
        cores=_first(wanted.cores, config.worker_cores),
        memoryMiB=_first(memory, _stepped(config.worker_memory_mib, f"{_CONFIG}.workerMemoryMib")),
        diskSizeGb=_first(wanted.disk_size_gb, config.worker_disk_size_gb),
    )


def machine(asked: Object, choice: Choice, is_control_plane: bool) -> Object:
    size = asked.get("diskSizeGb")
    bridge = asked.get("bridge", BRIDGE)
    return given(
        sourceNode=asked.get("sourceNode"),
        templateID=asked.get("templateID"),
        templateSelector={"matchTags": [asked["tag"]]} if "tag" in asked else None,
        storage=asked.get("storage"),
        numSockets=asked.get("sockets"),
        numCores=asked.get("cores"),
        memoryMiB=asked.get("memoryMiB"),
        disks=None if size is None else {"bootVolume": {"disk": BOOT_DISK, "sizeGb": size}},
        network=_old_network(bridge) if choice.version == PROXMOX_OLD else _devices(bridge),
    )


def _devices(bridge: str) -> Object:
    return {"networkDevices": [{"name": "net0", "bridge": bridge, "model": MODEL, "defaultIPv4": True}]}


def _old_network(bridge: str) -> Object:
    return {"default": {"bridge": bridge, "model": MODEL}}


def _source(config: ProxmoxConfig, wanted: ProxmoxClass) -> Object:
    """What a machine is cloned from; the class goes before the cluster."""
    if wanted.template and wanted.template_id is not None:
        raise Unfit(_CLASS, f"{_CLASS} has both template and templateId; keep one of them")
    if wanted.template:
        return {"tag": wanted.template}
    template = _first(wanted.template_id, config.template_id)
    if template is None:
        raise Unfit(
            f"{_CONFIG}.templateId", f"no VM template is named: set {_CONFIG}.templateId, or template in a class"
        )
    if not config.source_node:
        raise Unfit(f"{_CONFIG}.sourceNode", f"VM template {template} is on no known host: set {_CONFIG}.sourceNode")
    return {"sourceNode": config.source_node, "templateID": template}


def _network(config: ProxmoxConfig) -> Object:
    return given(bridge=config.bridge or None, storage=config.storage or None)


def _memory(text: str) -> int | None:
    """In MiB, rounded up to what Proxmox takes."""
    if not text:
        return None
    field = f"{_CLASS}.memory"
    try:
        amount = parse(text).value()
    except QuantityError as error:
        raise Unfit(field, f'{field} is "{text}": {error}; write an amount such as 16Gi') from error
    if amount < _LEAST_MIB * _MIB:
        raise Unfit(field, f'{field} is "{text}", which is {amount} bytes; write an amount such as 16Gi')
    return _stepped(-(-amount // _MIB), field)


def _stepped(mib: int | None, field: str) -> int | None:
    if mib is None:
        return None
    if mib <= 0:
        raise Unfit(field, f"{field} is {mib}; write a positive number of MiB")
    return -(-mib // _STEP_MIB) * _STEP_MIB


def _require(config: ProxmoxConfig) -> None:
    needed = {
        "dnsServers": config.dns_servers,
        "ipv4Addresses": config.ipv4_addresses,
        "ipv4Gateway": config.ipv4_gateway,
    }
    missing = next((name for name, value in needed.items() if not value), "")
    if missing:
        raise Unfit(f"{_CONFIG}.{missing}", f"{_CONFIG}.{missing} is empty; a ProxmoxCluster must have it")


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _config(lc: LatticeCluster) -> ProxmoxConfig:
    return lc.spec.provider.config.proxmox or ProxmoxConfig()
