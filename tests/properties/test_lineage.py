"""The ownership walk over any graph of owners: cycles, missing and replaced owners, some that cannot be read.

The model knows nothing of queues: it spreads over the graph until nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.lineage import Owned, Pending, Unknown, Unowned, walk
from nodeyard.kube.objects import ObjectMeta, OwnerReference
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.webhooks import Missing, Unreadable

NAMESPACE = "tenant-acme"
START = "start"
PLACES = [f"o{number}" for number in range(7)]
UNREADABLE = Unreadable("no answer")


@dataclass(frozen=True)
class Placed:
    """An object of the graph; `application` is set if the walk ends at it."""

    name: str
    is_release: bool
    application: str
    owners: tuple[tuple[str, str], ...]
    """Owners by name and uid; the uid may be of a deleted object of that name."""
    label: str
    state: str

    @property
    def metadata(self) -> ObjectMeta:
        labels = {names.FLUX_NAME: self.label} if self.label else {}
        if self.application:
            labels |= {names.APPLICATION_GROUP: names.APPS_GROUP, names.APPLICATION_KIND: self.application}
            labels[names.APPLICATION_NAME] = self.name
        owners = tuple(
            OwnerReference(api_version=_api(name), kind=_kind(name), name=name, uid=uid) for name, uid in self.owners
        )
        return ObjectMeta(
            name=self.name, namespace=NAMESPACE, uid=f"uid-{self.name}", labels=labels, owner_references=owners
        )


def _is_release(name: str) -> bool:
    return name in PLACES[4:]


def _kind(name: str) -> str:
    return names.RELEASE_KIND if _is_release(name) else "Thing"


def _api(name: str) -> str:
    return names.FLUX_API_VERSION if _is_release(name) else "example.dev/v1"


@st.composite
def placed(draw, name):
    uids = st.sampled_from(["", "old-"])
    owners = draw(st.lists(st.tuples(st.sampled_from(PLACES), uids), max_size=3))
    is_release = _is_release(name)
    return Placed(
        name=name,
        is_release=is_release,
        application=draw(st.sampled_from(["", "Postgres", "Redis"])) if is_release else "",
        owners=tuple((owner, f"{old}uid-{owner}") for owner, old in owners),
        label=draw(st.sampled_from(["", *PLACES])),
        state="there" if name == START else draw(st.sampled_from(["there", "there", "there", "missing", "unreadable"])),
    )


graphs = st.tuples(*(placed(name) for name in (START, *PLACES))).map(lambda each: {one.name: one for one in each})


def start_of(graph):
    return ObjectRef(api_version="v1", kind="Pod", name=START, namespace=NAMESPACE), graph[START].metadata


def looked_up(graph, wanted):
    """Return the server's answer about an object."""
    there = graph[wanted.name]
    if wanted.kind != _kind(wanted.name) or there.state == "missing":
        return Missing()
    return UNREADABLE if there.state == "unreadable" else there.metadata


# the model


def edges(graph, one, *, with_labels):
    """Return the next objects from an object: names, with the uid if it is a reference."""
    if one.application:
        return []
    found = list(one.owners)
    if one.label and (with_labels or not one.owners):
        found.append((one.label, ""))
    return found


def spread(graph, *, with_labels):
    """Return the reached objects with their distance, and True if something on the way cannot be read."""
    distance = {START: 0}
    is_blind = False
    for _ in range(len(graph)):
        for name, far in list(distance.items()):
            for owner, uid in edges(graph, graph[name], with_labels=with_labels):
                there = graph[owner]
                if (not uid and not there.is_release) or there.state == "missing":
                    continue
                if there.state == "unreadable":
                    is_blind = True
                elif uid in ("", f"uid-{owner}"):
                    distance[owner] = min(distance.get(owner, 99), far + 1)
    return distance, is_blind


def applications(graph, distance):
    return {(far, graph[name].application, name) for name, far in distance.items() if graph[name].application}


@given(graphs)
def test_it_finds_what_is_there_to_be_found(graph):
    lineage = walk(*start_of(graph), lambda wanted: looked_up(graph, wanted))

    distance, is_blind = spread(graph, with_labels=False)
    ends = nearest = applications(graph, distance)
    if not ends:
        distance, is_blind = spread(graph, with_labels=True)
        ends = applications(graph, distance)
    if ends:
        assert isinstance(lineage, Owned)
        assert not nearest or distance[lineage.application.name] == min(nearest)[0]
        assert {(application, name) for _, application, name in ends} == {
            (each.kind, each.name) for each in (lineage.application, *(other for _, other in lineage.others))
        }
    elif is_blind:
        assert isinstance(lineage, Unknown)
    else:
        assert isinstance(lineage, Unowned)


@given(graphs, st.sets(st.sampled_from(PLACES)))
def test_looking_owners_up_first_changes_nothing(graph, cached):
    answers = {}

    def find(wanted):
        return looked_up(graph, wanted) if wanted.name in cached else answers.get(wanted)

    for _ in range(len(graph) + 1):
        lineage = walk(*start_of(graph), find)
        if not isinstance(lineage, Pending):
            break
        assert not any(ref in answers for ref in lineage.refs)
        answers |= {ref: looked_up(graph, ref) for ref in lineage.refs}

    assert lineage == walk(*start_of(graph), lambda wanted: looked_up(graph, wanted))


@given(graphs)
def test_every_reported_path_exists(graph):
    lineage = walk(*start_of(graph), lambda wanted: looked_up(graph, wanted))

    if isinstance(lineage, Owned):
        path = lineage.path
        assert path[0].ref.name == START
        for below, above in pairwise(path):
            edge = (above.ref.name, "" if above.is_labelled else f"uid-{above.ref.name}")
            assert edge in edges(graph, graph[below.ref.name], with_labels=True)
        assert len({step.ref.name for step in path}) == len(path)
