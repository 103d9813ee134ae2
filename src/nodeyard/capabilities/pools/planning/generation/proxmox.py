"""Machines as Proxmox VMs with CAPMOX v1alpha1 and v1alpha2.

v1alpha2 lists network devices, v1alpha1 has a default one. In both a machine is cloned either from a VM template id on
a source node, or from the template with a tag on any node; never from both. The control plane endpoint must be served
by a load balancer or virtual IP outside the cluster.
"""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.pools.planning.generation.kinds import PROXMOX_OLD, Choice, InvalidSpec
from nodeyard.capabilities.pools.planning.generation.metadata import drop_empty
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
"""Proxmox requires memory to be a multiple of this."""
_MIN_MIB: Final = 128
"""Smaller amounts are rejected: they are usually MiB written without a unit."""
_CONFIG: Final = "spec.provider.config.proxmox"
_CLASS: Final = "spec.providers.proxmox"


def infrastructure(lc: LatticeCluster, choice: Choice) -> Object:
    """Return the spec of the ProxmoxCluster. Raises InvalidSpec without DNS servers, addresses or a gateway."""
    config, credentials = _config(lc), lc.spec.provider.credentials_secret_ref
    _require(config)
    spec = drop_empty(
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
        spec["credentialsRef"] = drop_empty(name=credentials.name, namespace=credentials.namespace or None)
    return spec


def control_plane(lc: LatticeCluster) -> Object:
    config = _config(lc)
    return drop_empty(
        **_source(config, ProxmoxClass()),
        **_network(config),
        sockets=config.cp_sockets,
        cores=config.cp_cores,
        memoryMiB=_round_up_mib(config.cp_memory_mib, f"{_CONFIG}.cpMemoryMib"),
        diskSizeGb=config.cp_disk_size_gb,
    )


def worker(lc: LatticeCluster, entry: ProxmoxClass | None) -> Object:
    config, wanted = _config(lc), entry or ProxmoxClass()
    memory = _memory(wanted.memory)
    return drop_empty(
        **_source(config, wanted),
        **_network(config),
        sockets=_first_set(wanted.sockets, config.worker_sockets),
        cores=_first_set(wanted.cores, config.worker_cores),
        memoryMiB=_first_set(memory, _round_up_mib(config.worker_memory_mib, f"{_CONFIG}.workerMemoryMib")),
        diskSizeGb=_first_set(wanted.disk_size_gb, config.worker_disk_size_gb),
    )


def machine(inputs: Object, choice: Choice, is_control_plane: bool) -> Object:
    size = inputs.get("diskSizeGb")
    bridge = inputs.get("bridge", BRIDGE)
    return drop_empty(
        sourceNode=inputs.get("sourceNode"),
        templateID=inputs.get("templateID"),
        templateSelector={"matchTags": [inputs["tag"]]} if "tag" in inputs else None,
        storage=inputs.get("storage"),
        numSockets=inputs.get("sockets"),
        numCores=inputs.get("cores"),
        memoryMiB=inputs.get("memoryMiB"),
        disks=None if size is None else {"bootVolume": {"disk": BOOT_DISK, "sizeGb": size}},
        network=_old_network(bridge) if choice.version == PROXMOX_OLD else _devices(bridge),
    )


def _devices(bridge: str) -> Object:
    return {"networkDevices": [{"name": "net0", "bridge": bridge, "model": MODEL, "defaultIPv4": True}]}


def _old_network(bridge: str) -> Object:
    return {"default": {"bridge": bridge, "model": MODEL}}


def _source(config: ProxmoxConfig, wanted: ProxmoxClass) -> Object:
    """Return the VM template to clone; the class takes precedence over the cluster."""
    if wanted.template and wanted.template_id is not None:
        raise InvalidSpec(_CLASS, f"{_CLASS} has both template and templateId; keep one of them")
    if wanted.template:
        return {"tag": wanted.template}
    template = _first_set(wanted.template_id, config.template_id)
    if template is None:
        raise InvalidSpec(
            f"{_CONFIG}.templateId", f"no VM template is set: set {_CONFIG}.templateId, or template in a class"
        )
    if not config.source_node:
        raise InvalidSpec(
            f"{_CONFIG}.sourceNode", f"VM template {template} has no source node: set {_CONFIG}.sourceNode"
        )
    return {"sourceNode": config.source_node, "templateID": template}


def _network(config: ProxmoxConfig) -> Object:
    return drop_empty(bridge=config.bridge or None, storage=config.storage or None)


def _memory(text: str) -> int | None:
    """Parse a quantity as MiB, rounded up to a multiple of 8."""
    if not text:
        return None
    field = f"{_CLASS}.memory"
    try:
        amount = parse(text).value()
    except QuantityError as error:
        raise InvalidSpec(field, f'{field} is "{text}": {error}; use a quantity such as 16Gi') from error
    if amount < _MIN_MIB * _MIB:
        raise InvalidSpec(field, f'{field} is "{text}", which is {amount} bytes; use a quantity such as 16Gi')
    return _round_up_mib(-(-amount // _MIB), field)


def _round_up_mib(mib: int | None, field: str) -> int | None:
    if mib is None:
        return None
    if mib <= 0:
        raise InvalidSpec(field, f"{field} is {mib}; use a positive number of MiB")
    return -(-mib // _STEP_MIB) * _STEP_MIB


def _require(config: ProxmoxConfig) -> None:
    needed = {
        "dnsServers": config.dns_servers,
        "ipv4Addresses": config.ipv4_addresses,
        "ipv4Gateway": config.ipv4_gateway,
    }
    missing = next((name for name, value in needed.items() if not value), "")
    if missing:
        raise InvalidSpec(f"{_CONFIG}.{missing}", f"{_CONFIG}.{missing} is empty; ProxmoxCluster requires it")


def _first_set(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _config(lc: LatticeCluster) -> ProxmoxConfig:
    return lc.spec.provider.config.proxmox or ProxmoxConfig()
