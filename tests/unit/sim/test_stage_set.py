"""Stage files are parsed, or refused with file, stage and reason."""

import textwrap

import pytest

from nodeyard.apiserver.server import Server
from nodeyard.process.clock import VirtualClock
from nodeyard.sim.embedded import connect
from nodeyard.sim.seeded_random import SeededRandom
from nodeyard.sim.stage_format import Kind, seconds
from nodeyard.sim.stage_set import SHIPPED, StageError, load_stages, parse_stages
from nodeyard.sim.world import World

STAGE = """
stages:
- name: one
  for: {apiVersion: v1, kind: Pod}
  do: [{delete: {}}]
"""


def stage_set(text):
    return parse_stages([("a.yaml", textwrap.dedent(text))])


def test_all_shipped_stages_can_be_loaded_together():
    clock = VirtualClock()
    world = World(connect(Server(clock)), clock, stages=(*SHIPPED, "chaos"))
    names = [stage.name for stage in world.engine.stages.stages]
    assert len(names) == len(set(names))
    assert {"node-lease", "pod-start", "pod-schedule", "drain-evict", "node-crash"} <= set(names)


def test_files_of_ones_own_join_those_shipped(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(STAGE)
    assert load_stages("pods", extra=[path]).stages[-1].name == "one"


def test_an_unknown_file_is_named():
    with pytest.raises(StageError, match='no stages "ships"; there are: nodes'):
        load_stages("ships")


def test_kinds_to_watch_come_from_stages_and_relations():
    assert load_stages("nodes").kinds == [Kind("coordination.k8s.io/v1", "Lease"), Kind("v1", "Node")]


def test_relations_that_conditions_follow_are_known():
    assert load_stages("nodes", "drains").notify_referrers == {"lease-of-node"}


def test_a_stage_that_another_leads_to_does_not_start_itself():
    stages = {stage.name: stage for stage in load_stages("chaos").stages}
    assert stages["node-crash"].starts_itself
    assert not stages["node-return"].starts_itself


def test_an_owner_is_the_controller_of_the_kind_named():
    relation = stage_set(
        """
        relations:
          machines:
            of: {apiVersion: x/v1, kind: Machine}
            to: {apiVersion: x/v1, kind: Set}
        stages: []
        """
    ).relations["machines"]
    owners = [{"kind": "Other", "uid": "1", "controller": True}, {"kind": "Set", "uid": "2", "controller": True}]
    assert relation.key_of({"metadata": {"ownerReferences": owners}}) == "2"
    assert relation.key_of({"metadata": {}}) is None
    assert relation.id_of({"metadata": {"uid": "2"}}) == "2"


@pytest.mark.parametrize(
    ("delay", "shortest", "longest"),
    [("250ms", 0.25, 0.25), (3, 3, 3), ("[1s, 3s]", 1, 3), ("{path: spec.wait, default: 5m}", 300, 300)],
)
def test_delays(delay, shortest, longest):
    (stage,) = stage_set(STAGE + f"  delay: {delay}\n").stages
    delays = [stage.delay({"spec": {}}, SeededRandom(1), "x", times) for times in range(50)]
    assert shortest <= min(delays) <= max(delays) <= longest
    if shortest != longest:
        assert len(set(delays)) == 50


def test_a_delay_may_come_from_the_object_up_to_a_limit():
    (stage,) = stage_set(STAGE + "  delay: {path: spec.wait, at_most: 10s}\n").stages
    assert stage.delay({"spec": {"wait": 4}}, SeededRandom(1), "x", 0) == 4
    assert stage.delay({"spec": {"wait": "30s"}}, SeededRandom(1), "x", 0) == 10


def test_durations_have_units():
    assert [seconds(text) for text in ("250ms", "1.5s", "2m", "1h", 3)] == [0.25, 1.5, 120, 3600, 3]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("stages: [", "a.yaml: "),
        ("stagse: []", "a.yaml: Object"),
        (STAGE + "  dely: 1s\n", "unknown field `dely`"),
        (STAGE + "  chance: 2\n", "a.yaml, stage one: chance: 2.0 is not above 0 and at most 1"),
        (STAGE + "  delay: soon\n", '"soon" is not a duration'),
        (STAGE + "  delay: [1s]\n", "a range has two ends"),
        (STAGE + "  repeat: true\n", "repeat: needs a delay"),
        (STAGE + "  labels: 'a=b=c'\n", "stage one: "),
        (STAGE + "  where: [{path: a, like: b}]\n", 'stage one: "like" is none of'),
        (STAGE + "  where: [{related: node}]\n", 'no relation "node"'),
        (STAGE + "  where: [{count: pods, is: 1}]\n", 'no count "pods"'),
        (STAGE + "  next: two\n", 'next: no stage "two"'),
        (STAGE.replace("delete: {}", "each: pods, delete: {}"), 'no relation "pods"'),
        (STAGE.replace("delete: {}", "delete: {}, evict: {}"), "this has delete, evict"),
        (STAGE.replace("delete: {}", "where: []"), "this has none"),
        (STAGE.replace("delete: {}", "each: a, at: b, delete: {}"), "each or at, not both"),
        (STAGE.replace("delete: {}", "create: {a: '${b..c}'}"), "is not a path"),
        ("counts: {c: {relation: r}}\nstages: []", 'no relation "r"'),
        ("counts: {c: {relation: r, where: [{related: r}]}}\nstages: []", "may read only the counted object"),
    ],
    ids=str,
)
def test_a_faulty_file_is_refused_with_the_place(text, words):
    with pytest.raises(StageError) as caught:
        stage_set(text)
    assert words in str(caught.value)


REFERRING = """
relations:
  parent: {{of: {{apiVersion: v1, kind: Pod}}, key: spec.parent, to: {{apiVersion: v1, kind: Pod}}, within: namespace}}
  node: {{of: {{apiVersion: v1, kind: Pod}}, key: spec.nodeName, to: {{apiVersion: v1, kind: Node}}}}
stages:
- {{name: one, for: {{apiVersion: v1, kind: {kind}}}, follows: [{relation}], do: [{{delete: {{}}}}]}}
"""


def test_a_stage_follows_what_its_objects_point_to():
    loaded = stage_set(REFERRING.format(kind="Pod", relation="node"))
    assert (loaded.notify_referrers, loaded.notify_targets, loaded.stages[0].follows_changes) == ({"node"}, set(), True)


def test_a_stage_follows_what_points_to_its_objects():
    loaded = stage_set(REFERRING.format(kind="Node", relation="node"))
    assert (loaded.notify_referrers, loaded.notify_targets) == (set(), {"node"})


def test_a_stage_cannot_follow_a_relation_of_other_kinds():
    with pytest.raises(StageError, match='a.yaml, stage one: follows: no relation "parent" of Node'):
        stage_set(REFERRING.format(kind="Node", relation="parent"))


def test_a_local_relation_names_the_namespace_with_the_object():
    relation = stage_set(REFERRING.format(kind="Pod", relation="node")).relations["parent"]
    referrer = {"metadata": {"name": "a", "namespace": "n"}, "spec": {"parent": "b"}}
    assert relation.key_of(referrer) == relation.id_of({"metadata": {"name": "b", "namespace": "n"}})
    assert relation.key_of(referrer) != relation.id_of({"metadata": {"name": "b", "namespace": "m"}})
