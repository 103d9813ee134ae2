"""`make chaos`: seeded faults under a running operator, and its invariants at every resourceVersion.

schedule ─▶ network faults (proxy), killed and paused processes, a full disk
scenario ─▶ load on the API server, and what must be true of each state that a watcher saw
"""
