"""Any interleaving of events, relists, bookmarks and own writes leaves the cache as if it had been computed afresh.

A pretended server keeps a history; the cache follows it late, the answers to our own writes arrive early or late, and
lists are of any moment the watch has reached. After every step indexes and aggregates equal recomputation and what we
wrote is seen; once everything has been delivered the cache is the server's truth and no write is left unconfirmed.
"""

from collections import Counter, defaultdict

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from nodeyard.kube.objects import Node, ObjectMeta
from nodeyard.runtime.capability import Aggregate
from nodeyard.watch.cache import Cache
from nodeyard.watch.indexes import Fold, Index

NAMES = st.sampled_from("abc")
ZONES = st.sampled_from(["x", "y", "x_y"])
DEADLINE = 10.0


def zones_of(obj):
    return obj.metadata.labels["zones"].split("_")


COUNT = Aggregate(
    name="count",
    kind="Node",
    empty=int,
    group=zones_of,
    add=lambda count, _obj: count + 1,
    remove=lambda count, _obj: count - 1,
)


class History:
    """Model of a server: its objects and all events."""

    def __init__(self):
        self.version = 0
        self.objects = {}
        self.events = []

    def write(self, name, zones):
        self.version += 1
        uid = self.objects[name].metadata.uid if name in self.objects else f"uid-{self.version}"
        metadata = ObjectMeta(name=name, uid=uid, resource_version=str(self.version), labels={"zones": zones})
        self.objects[name] = Node(metadata=metadata)
        self.events.append((self.version, self.objects[name], False))
        return self.objects[name]

    def delete(self, name):
        self.version += 1
        gone = self.objects.pop(name)
        metadata = gone.metadata
        last = ObjectMeta(name=name, uid=metadata.uid, resource_version=str(self.version), labels=metadata.labels)
        self.events.append((self.version, Node(metadata=last), True))
        return gone

    def at(self, version):
        objects = {}
        for moment, obj, is_deleted in self.events:
            if moment <= version:
                objects.pop(obj.metadata.name, None)
                if not is_deleted:
                    objects[obj.metadata.name] = obj
        return list(objects.values())


class CacheFollowsServer(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.server = History()
        self.cache = Cache(Node)
        self.index, self.fold = Index(zones_of), Fold(COUNT)
        self.cache.attach(self.index)
        self.cache.attach(self.fold)
        self.heard = {}
        self.cache.listen(self.hear)
        self.reached = 0
        self.answers = []
        self.promised = {}
        self.cache.replace([], "0")

    def hear(self, change):
        _, name = change.key
        assert self.heard.get(name) == change.old
        self.heard[name] = change.new

    # other writers

    @rule(name=NAMES, zones=ZONES)
    def another_writes(self, name, zones):
        self.server.write(name, zones)

    @precondition(lambda self: self.server.objects)
    @rule(data=st.data())
    def another_deletes(self, data):
        self.server.delete(data.draw(st.sampled_from(sorted(self.server.objects))))

    # our writes

    @rule(name=NAMES, zones=ZONES, is_late=st.booleans())
    def we_write(self, name, zones, is_late):
        self.answers.append(("wrote", self.server.write(name, zones)))
        if not is_late:
            self.answer(len(self.answers) - 1)

    @precondition(lambda self: self.server.objects)
    @rule(data=st.data(), is_late=st.booleans())
    def we_delete(self, data, is_late):
        name = data.draw(st.sampled_from(sorted(self.server.objects)))
        self.answers.append(("deleted", self.server.delete(name)))
        if not is_late:
            self.answer(len(self.answers) - 1)

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def a_late_answer_comes(self, data):
        self.answer(data.draw(st.integers(0, len(self.answers) - 1)))

    def answer(self, position):
        what, obj = self.answers.pop(position)
        metadata = obj.metadata
        if what == "deleted":
            self.cache.record_deletion(("", metadata.name), metadata.uid, DEADLINE)
            return
        self.cache.record_write(obj, DEADLINE)
        version = int(metadata.resource_version)
        self.promised[metadata.name] = max(version, self.promised.get(metadata.name, 0))

    @rule(is_lost=st.booleans())
    def overdue_writes_are_settled(self, is_lost):
        for key, own in self.cache.overdue(DEADLINE):
            if not is_lost:
                self.cache.confirm(key, own, self.server.objects.get(key[1]), DEADLINE)

    # the watch

    @rule(count=st.integers(1, 4), is_doubled=st.booleans())
    def the_watch_delivers(self, count, is_doubled):
        pending = [event for event in self.server.events if event[0] > self.reached]
        for version, obj, is_deleted in pending[:count]:
            for _ in range(1 + is_doubled):
                self.cache.deliver(obj, is_deleted=is_deleted)
            self.reached = version

    @rule()
    def a_bookmark_comes(self):
        self.cache.bookmark(str(self.reached))

    @rule(share=st.floats(0, 1))
    def everything_is_listed_again(self, share):
        self.reached += int((self.server.version - self.reached) * share)
        self.cache.replace(self.server.at(self.reached), str(self.reached))

    # invariants

    @invariant()
    def what_follows_the_objects_equals_recomputation(self):
        objects = self.cache.all()
        assert list(objects) == sorted(objects, key=lambda obj: obj.metadata.name)
        assert {name: obj for name, obj in self.heard.items() if obj} == {obj.metadata.name: obj for obj in objects}
        by_zone = defaultdict(list)
        for obj in objects:
            for zone in zones_of(obj):
                by_zone[zone].append(obj)
        assert {zone: list(self.index.find(zone)) for zone in self.index.values()} == by_zone
        assert self.fold.values() == Counter({zone: len(found) for zone, found in by_zone.items()})

    @invariant()
    def what_we_wrote_is_seen(self):
        for name, version in self.promised.items():
            shown = self.cache.get(("", name))
            if shown is not None:
                assert int(shown.metadata.resource_version) >= version
            else:
                assert any(
                    is_deleted and obj.metadata.name == name and moment > version
                    for moment, obj, is_deleted in self.server.events
                )

    def teardown(self):
        if not hasattr(self, "server"):
            return
        while self.answers:
            self.answer(0)
        self.the_watch_delivers(len(self.server.events), is_doubled=False)
        assert {obj.metadata.name: obj for obj in self.cache.all()} == self.server.objects
        assert self.cache.unconfirmed == 0
        self.what_follows_the_objects_equals_recomputation()


TestCacheFollowsServer = CacheFollowsServer.TestCase
TestCacheFollowsServer.settings = settings(max_examples=300, stateful_step_count=40)
