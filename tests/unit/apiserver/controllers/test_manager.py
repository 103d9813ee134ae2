import pytest
from structlog.testing import capture_logs

from nodeyard.apiserver.controllers import NAMES, chosen
from nodeyard.apiserver.controllers.garbage_collector import GarbageCollector


def test_a_star_means_all():
    assert chosen(["*"]) == list(NAMES)


def test_a_minus_takes_one_out():
    assert "namespace-controller" not in chosen(["*", "-namespace-controller"])
    assert len(chosen(["*", "-namespace-controller"])) == len(NAMES) - 1


def test_names_alone_mean_only_these():
    assert chosen(["garbage-collector-controller"]) == ["garbage-collector-controller"]
    assert chosen([]) == []


def test_a_name_wins_over_its_minus():
    assert chosen(["-disruption-controller", "disruption-controller"]) == ["disruption-controller"]


def test_the_short_names_of_old_still_work():
    assert chosen(["nodelifecycle", "-namespace", "garbagecollector"]) == [
        "garbage-collector-controller",
        "node-lifecycle-controller",
    ]


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match='"frobnicator" is not in the list of known controllers'):
        chosen(["*", "frobnicator"])


async def test_only_the_chosen_ones_run(idle_env):
    controllers = idle_env.server.controllers
    assert controllers.names == []
    await controllers.start(["*", "-taint-eviction-controller"])
    assert controllers.names == [name for name in NAMES if name != "taint-eviction-controller"]
    await controllers.stop()
    assert controllers.names == []


async def test_a_slow_watcher_does_not_slow_writers(env, monkeypatch):
    def stumble(self, resource, event):
        raise ValueError("what is this?")

    monkeypatch.setattr(GarbageCollector, "observe", stumble)
    with capture_logs() as logs:
        await env.config_map("one")
    assert [entry["controller"] for entry in logs] == ["garbage-collector-controller"]
    assert await env.get("/api/v1/namespaces/default/configmaps/one") is not None


async def test_stopping_ends_all_tasks(idle_env):
    controllers = idle_env.server.controllers
    await controllers.start()
    await idle_env.node("n1", ready="True")
    await controllers.stop()
    await idle_env.pass_time(600)
    node = await idle_env.get("/api/v1/nodes/n1")
    assert node["status"]["conditions"][0]["status"] == "True"
