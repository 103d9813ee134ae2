"""Cluster API, played: what `stages/machines.yaml` and `stages/providers.yaml` call.

    Cluster ─▶ KubeadmControlPlane ─────────────┐
       └─────▶ MachineDeployment ─▶ MachineSet ─┴▶ Machine ─▶ KubeadmConfig, infrastructure machine ─▶ Node

Each procedure looks at one object as it stands, does what is missing, and is called again when anything changes: like
the controllers it stands for, it can be stopped and started anywhere. Decisions are pure functions beside them.
"""
