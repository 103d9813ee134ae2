"""`nodeyard demo`: a simulated fleet to look at."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    once: Annotated[
        bool, typer.Option("--once", help="Take the tour without pauses, print the summary and exit.")
    ] = False,
    fast: Annotated[
        bool, typer.Option("--fast", help="Take the tour without pauses, and approve its held plan.")
    ] = False,
    nodes: Annotated[int, typer.Option(help="How many nodes.", metavar="N", min=2, max=10000)] = 30,
    real: Annotated[bool, typer.Option("--real", help="On the real control plane (make controlplane).")] = False,
) -> None:
    """Show the operator at work on a simulated fleet, in a tour of about 90 seconds.

    A node fails, a pool drains, a leaf cluster goes silent and comes back, and a plan waits for your approval. The
    first lines have the dashboard's address. Without --once the fleet stays until Ctrl-C, with commands to try.
    """
    from nodeyard.cli.signals import run
    from nodeyard.demo.fleet import show
    from nodeyard.process import logs

    logs.configure(level="error")
    run(show(nodes, once=once, is_fast=fast or once, real=real))
