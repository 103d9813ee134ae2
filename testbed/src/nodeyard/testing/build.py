"""`python -m nodeyard.testing.build` (`make controlplane`): build the real control plane.

Binaries that exist or fit on the PATH are not built. An interrupted run continues where it stopped.
"""

from __future__ import annotations

import sys
import time
from functools import cached_property

from nodeyard.testing import assets, binaries, go_modules, golang, third_party_crds, versions
from nodeyard.testing.golang import Go, GoError
from nodeyard.testing.tools import Tool, all_tools

MEGABYTE = 1_000_000


class Build:
    """A build; it needs Go only if a step is left to do."""

    def __init__(self) -> None:
        self._steps = sum(len(tool.packages) for tool in all_tools()) + len(third_party_crds.SOURCES)
        self._step = 0
        self._done_now = 0
        self._started = time.monotonic()

    def run(self) -> None:
        for tool in all_tools():
            for binary in tool.packages:
                self._binary(tool, binary)
        for source in third_party_crds.SOURCES.values():
            self._source(source)
        took = f", {time.monotonic() - self._started:.0f} s" if self._done_now else ""
        print(f"the control plane is complete in {assets.root()} (Kubernetes {versions.kubernetes()}{took})")

    @cached_property
    def _go(self) -> Go:
        go = golang.find(say)
        say(f"Go {go.version} from {go.path} ({go.origin}), into {assets.root()}")
        return go

    def _binary(self, tool: Tool, binary: str) -> None:
        self._step += 1
        result = binaries.search(binary)
        for skipped in result.skipped:
            self._report(f"{binary}: {skipped}")
        if result.found is None:
            self._build(tool, binary)
        elif result.found.origin != "built":
            self._report(f"{binary} {result.found.version}: {result.found.path} ({result.found.origin}) fits")

    def _build(self, tool: Tool, binary: str) -> None:
        go, what = self._go, f"{binary} {tool.version}"
        started = time.monotonic()
        self._report(f"{what}: building")

        def report_progress(seconds: float) -> None:
            self._report(f"{what}: still building, {seconds:.0f} s")

        module = go_modules.folder(tool, go, report_progress)
        place = tool.folder / binary
        with assets.scratch(place) as made:
            go.run(
                "build",
                "-trimpath",
                f"-ldflags={tool.linker_flags}",
                f"-o={made / binary}",
                tool.packages[binary],
                folder=module,
                on_heartbeat=report_progress,
            )
            size = (made / binary).stat().st_size / MEGABYTE
            assets.publish(made / binary, place)
        self._done_now += 1
        self._report(f"{what}: built in {time.monotonic() - started:.0f} s, {size:.0f} MB")

    def _source(self, source: third_party_crds.Source) -> None:
        self._step += 1
        if source.file.exists():
            return
        count = third_party_crds.fetch(source, self._go)
        self._done_now += 1
        self._report(f"{source.name}: {count} documents from {source.module} {source.version}")

    def _report(self, text: str) -> None:
        say(f"[{self._step:>2}/{self._steps}] {text}")


def say(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    try:
        Build().run()
    except (GoError, ValueError) as error:
        print(f"nodeyard.testing.build: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("nodeyard.testing.build: interrupted; the next run continues here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
