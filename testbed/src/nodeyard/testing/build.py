"""`python -m nodeyard.testing.build`: make the real control plane, and say what is going on.

Whatever is already there, or fits on the PATH, is not built; an interrupted run goes on where it was.
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
    """One run: looks at each step whether it is still to be done, and asks for Go only when one is."""

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
        for passed_over in result.passed_over:
            self._report(f"{binary}: {passed_over}")
        if result.found is None:
            self._build(tool, binary)
        elif result.found.origin != "built":
            self._report(f"{binary} {result.found.version}: {result.found.path} ({result.found.origin}) fits")

    def _build(self, tool: Tool, binary: str) -> None:
        go, what = self._go, f"{binary} {tool.version}"
        started = time.monotonic()
        self._report(f"{what}: building")

        def still_there(seconds: float) -> None:
            self._report(f"{what}: still building, {seconds:.0f} s")

        module = go_modules.folder(tool, go, still_there)
        place = tool.folder / binary
        with assets.scratch(place) as made:
            go.run(
                "build",
                "-trimpath",
                f"-ldflags={tool.linker_flags}",
                f"-o={made / binary}",
                tool.packages[binary],
                folder=module,
                on_heartbeat=still_there,
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
        self._report(f"{source.name}: out of {source.module} {source.version}, documents: {count}")

    def _report(self, text: str) -> None:
        say(f"[{self._step:>2}/{self._steps}] {text}")


def say(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    try:
        Build().run()
    except (GoError, ValueError) as error:
        print(f"make controlplane: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("make controlplane: interrupted; the next run goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
