"""Rehearsal of a change: a twin of the cluster, with simulated machines, in virtual time.

    bundle or scenario ─▶ Twin (API server, simulation, operator) ─▶ Recorder ─▶ Timeline ─▶ text, JSON, HTML

Everything runs on one event loop whose time jumps to the next timer, so hours take seconds and the same seed gives the
same timeline.
"""
