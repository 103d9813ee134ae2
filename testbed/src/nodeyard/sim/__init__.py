"""Simulation of a fleet on any API server: kubelets, a scheduler, Cluster API, Flux, failures.

    stages/*.yaml, reconcilers ──▶ StageSet ──▶ Engine ◀──list/watch── client/
                                                   └── an object matches: wait, then act ──▶ client/

Behaviour is data in stage files (docs/sim.md), or a reconciler in Python. The engine runs on any clock. The same seed
gives the same sequence of events.
"""
