"""Simulated Cluster API: reconcilers for the stages `machines` and `providers`.

    Cluster ─▶ KubeadmControlPlane ─────────────┐
       └─────▶ MachineDeployment ─▶ MachineSet ─┴▶ Machine ─▶ KubeadmConfig, infrastructure machine ─▶ Node

Like the controllers they stand for, reconcilers are level-triggered: each compares one object with what it should be,
does what is missing, and can be stopped and started at any point. Their decisions are pure functions.
"""
