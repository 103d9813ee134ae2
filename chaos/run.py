"""One run: servers and operators as processes, a schedule drawn from the seed, and the verdict."""

from __future__ import annotations

import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any, Final

from chaos import schedule
from chaos.recording import Recorder
from chaos.schedule import Step
from chaos.spares import CAPABILITY, PATHS, TEMPLATES, Spares
from nodeyard.testing.api_process import ApiProcess
from nodeyard.testing.controlplane import ControlPlane
from nodeyard.testing.directories import Directory
from nodeyard.testing.faults import FaultProxy
from nodeyard.testing.processes import Process
from nodeyard.testing.wait import until

KILL_API: Final = "kill -9 of the API server"
KILL_ETCD: Final = "kill -9 of etcd"
FULL_DISK: Final = "full disk"
KILL_OPERATOR: Final = "kill -9 of an operator"
PAUSE_OPERATOR: Final = "paused operator"
_PROGRAM: Final = (sys.executable, "-c", "from nodeyard.cli import main; main()")
_ALONE: Final = ("--metrics-bind", "0", "--health-bind", "0")


class Cluster:
    """An API server, and two operators that reach it through a proxy."""

    def __init__(self, api: ApiProcess | ControlPlane, proxy: FaultProxy, folder: Any, random: Random) -> None:
        self.api = api
        self._proxy = proxy
        self._random = random
        self.operators = [Process(f"operator-{n}", folder / f"operator-{n}.log") for n in range(2)]

    @property
    def process_faults(self) -> tuple[str, ...]:
        last = KILL_ETCD if self.api.is_real else FULL_DISK
        return (KILL_API, KILL_OPERATOR, PAUSE_OPERATOR, last)

    def start_operator(self, operator: Process) -> None:
        capability = ("--capabilities", CAPABILITY, "--install-crds")
        operator.start([*_PROGRAM, "run", "--kubeconfig", self._proxy.kubeconfig, *capability, *_ALONE])

    def begin(self, step: Step) -> Callable[[], None]:
        """Begin a fault; return the function that ends it."""
        if step.fault is not None:
            method = step.where if step.where.isupper() else ""
            self._proxy.add(step.fault, method=method, path="" if method else step.where, chance=step.chance)
            return self._proxy.clear
        if step.name == FULL_DISK:
            return self._fill_disk()
        if step.name in (KILL_API, KILL_ETCD):
            if isinstance(self.api, ControlPlane):
                self.api.kill("etcd" if step.name == KILL_ETCD else "kube-apiserver")
            else:
                self.api.kill()
            return self._start_api
        operator = self._random.choice(self.operators)
        if step.name == PAUSE_OPERATOR:
            operator.signal(signal.SIGSTOP)
            return lambda: operator.signal(signal.SIGCONT)
        operator.kill()
        return lambda: self.start_operator(operator)

    def _start_api(self) -> None:
        self.api.start()

    def _fill_disk(self) -> Callable[[], None]:
        assert isinstance(self.api, ApiProcess)
        process = self.api.process.pid or 0
        size = max(self.api.data.glob("*.journal")).stat().st_size
        unlimited = resource.prlimit(process, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

        def empty() -> None:
            resource.prlimit(process, resource.RLIMIT_FSIZE, unlimited)

        return empty


@contextmanager
def started(*, real: bool, seed: int) -> Iterator[Cluster]:
    with ExitStack() as stack:
        controllers = ("namespace", "garbage-collector")
        api: ApiProcess | ControlPlane = ControlPlane(controllers=controllers) if real else ApiProcess()
        stack.enter_context(api)
        proxy = stack.enter_context(FaultProxy(api.url, api.authority.pem, api.admin_token, seed))
        folder = Directory()
        stack.callback(folder.close)
        cluster = Cluster(api, proxy, folder.path, Random(seed))
        for operator in cluster.operators:
            cluster.start_operator(operator)
            stack.callback(operator.kill)
        until(lambda: api.rest.status(TEMPLATES) == 200, "the operators have installed their kinds", 60)
        yield cluster


def run(seed: int, seconds: float, *, real: bool) -> list[str]:
    """Run the schedule of a seed; return what went wrong."""
    random = Random(seed)
    with started(real=real, seed=seed) as cluster:
        steps = schedule.draw(random, seconds, cluster.process_faults)
        spares = Spares(cluster.api.rest, random)
        recorder = Recorder(cluster.api, PATHS, must_resume=not real)
        faults: list[str] = []
        try:
            spares.begin()
            schedule.carry_out(steps, cluster.begin, spares.stir)
            spares.settle()
            recorder.wait()
        except TimeoutError as error:
            faults.append(str(error))
        recorder.close()
        faults += [*recorder.faults, *spares.violations(recorder.observed())]
        if faults:
            faults += [f"step {step}" for step in steps]
            faults += [f"{operator.name}: {line}" for operator in cluster.operators for line in _trouble(operator)]
        return faults


def _trouble(operator: Process) -> list[str]:
    return [line for line in operator.tail(200).splitlines() if '"level":"error"' in line or "Traceback" in line][-10:]
