"""The command line: one file per verb. What a verb needs is imported when it runs, so that help is quick."""

from __future__ import annotations


def main() -> None:
    """The console scripts `nodeyard` and `kubectl-nodeyard`."""
    from nodeyard.cli.app import run

    run()
