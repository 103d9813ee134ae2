"""A simulated world on any API server: nodes that report, pods that start and end, things that fail.

    stages/*.yaml ──load──▶ Book ──▶ Engine ◀──list/watch── client/
                                       └── when something matches, wait, then act ──▶ client/

What the world does is data, in stage files (docs/sim.md); there is one engine, and it runs on any clock. With the same
seed the same things happen at the same moments.
"""
