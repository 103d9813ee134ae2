"""Kinds that are declared at run time: they join a view, are subscribed at the first lookup, and leave again."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from nodeyard.apiserver.server import Server
from nodeyard.client.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, NODES, of_kind, untyped
from nodeyard.client.rest_mapper import DISCOVERY_SECONDS
from nodeyard.client.transport import Stream
from nodeyard.plan.model import ObjectRef
from nodeyard.process.clock import settle
from nodeyard.runtime.capability import Watch
from nodeyard.watch.reflector import STALLED_SECONDS
from nodeyard.watch.subscription import EventHandlers

from .builders import refusal
from .harness import NODE_WATCH, WIDGETS, Harness

OTHER_WIDGETS = untyped("other.dev", "v1", "widgets", "Widget", namespaced=False)
MAPS = Watch(CONFIG_MAPS, label_selector="declares=yes")


class FaultyTransport:
    """Transport that records watches by path, refuses some, and ends them as if the kind were deleted."""

    def __init__(self, inner):
        self._inner = inner
        self.close, self.send = inner.close, inner.send
        self.begun, self.refused = [], set()
        self._is_cut = {}

    def cut(self, path):
        """End the streams of a path, and answer 404 from now on."""
        self._is_cut.setdefault(path, asyncio.Event()).set()

    @asynccontextmanager
    async def stream(self, request):
        path = request.path
        is_cut = self._is_cut.setdefault(path, asyncio.Event())
        if path in self.refused or is_cut.is_set():
            raise refusal(404 if is_cut.is_set() else 403)
        self.begun.append(path)
        async with self._inner.stream(request) as stream:
            yield Stream(stream.status, stream.headers, _until(is_cut, stream.chunks))


async def _until(is_cut, chunks):
    cutting = asyncio.create_task(is_cut.wait())
    try:
        while True:
            coming = asyncio.ensure_future(anext(chunks))
            try:
                await asyncio.wait((coming, cutting), return_when=asyncio.FIRST_COMPLETED)
                if is_cut.is_set():
                    return
                yield coming.result()
            except StopAsyncIteration:
                return
            finally:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)
    finally:
        cutting.cancel()


@pytest.fixture
async def harness(clock):
    server = Server(clock, seed=1)
    await server.start(())
    harness = Harness(clock, server)
    harness.tap = harness.client.transport = FaultyTransport(harness.client.transport)
    harness.named = []
    harness.troubles = []
    yield harness
    await harness.stop()
    await server.stop()
    assert [task for task in asyncio.all_tasks() if "informer" in task.get_name()] == []


def register(harness, *watches, named=None):
    """Register a view whose declared kinds are those of `harness.named`."""
    return harness.informers.register(
        watches or (MAPS,),
        handlers=EventHandlers(
            on_key=harness.mark, on_synced=harness.synced.append, on_watch_error=lambda: harness.troubles.append(1)
        ),
        declared=named or (lambda _view: list(harness.named)),
    )


def marking(word, resource=WIDGETS, **more):
    return Watch(resource, keys=lambda old, new: [f"{word}/{(new or old)['metadata']['name']}"], **more)


async def refresh(harness, clock):
    """Evaluate the declared kinds again, as after a change of the view."""
    harness.informers.reevaluate_needed()
    await clock.advance(1)


async def make(harness, name, resource=WIDGETS, **spec):
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": spec}
    await harness.client.create(resource, obj)
    await settle()


async def define_other(harness):
    (page,) = (await harness.client.list(CUSTOM_RESOURCE_DEFINITIONS)).items
    spec = {**page["spec"], "group": "other.dev", "conversion": None}
    await harness.client.create(CUSTOM_RESOURCE_DEFINITIONS, {"metadata": {"name": "widgets.other.dev"}, "spec": spec})
    await settle()


def names(objects):
    return [obj["metadata"]["name"] for obj in objects]


async def test_a_kind_that_is_named_is_watched_indexed_and_marks_keys(harness, clock):
    await harness.define_widgets()
    await make(harness, "a", colour="red")
    view = register(harness)
    await harness.start()
    harness.named = [marking("widget", indexes={"colour": lambda obj: [obj["spec"]["colour"]]})]
    await refresh(harness, clock)
    await make(harness, "b", colour="red")
    assert names(view.all("Widget")) == names(view.all("Widget.example.dev")) == ["a", "b"]
    assert names(view.indexed("Widget", "colour", "red")) == ["a", "b"]
    assert (view.is_synced("Widget"), view.watch_error("Widget")) == (True, "")
    assert harness.marked == ["widget/a", "widget/b"]
    assert harness.synced == ["ConfigMap", "Widget"]


async def test_a_change_of_the_view_is_enough_to_be_asked_again(harness, clock):
    await harness.define_widgets()
    view = register(harness, named=lambda view: [marking("widget")] if view.all("ConfigMap") else [])
    await harness.start()
    assert "widgets.example.dev" not in harness.running
    labelled = {"metadata": {"name": "declares", "namespace": "default", "labels": {"declares": "yes"}}}
    await harness.client.create(CONFIG_MAPS, labelled)
    await clock.advance(1)
    assert view.is_synced("Widget.example.dev")
    await harness.client.delete(CONFIG_MAPS, "declares", "default")
    await clock.advance(1)
    assert harness.running == {"configmaps[declares=yes]"}


async def test_a_declared_kind_is_in_the_view_at_once_and_not_synced(harness, clock):
    await harness.define_widgets()
    view = register(harness)
    await harness.start()
    harness.named = [marking("widget", indexes={"x": lambda obj: ["x"]})]
    assert not view.is_synced("Widget")
    assert (view.all("Widget"), view.indexed("Widget", "x", "x")) == ((), ())
    assert not harness.informers.is_synced
    await clock.advance(1)
    assert view.is_synced("Widget")
    assert harness.informers.is_synced


async def test_a_view_is_not_synced_before_its_declared_kinds(harness, clock):
    """A one-shot command waits for kinds that only the first lists declare."""
    await harness.define_widgets()
    await make(harness, "a")
    await harness.client.create(
        CONFIG_MAPS, {"metadata": {"name": "declares", "namespace": "default", "labels": {"declares": "yes"}}}
    )
    view = register(harness, named=lambda view: [marking("widget")] if view.all("ConfigMap") else [])
    running = asyncio.create_task(harness.informers.run())
    waiting = asyncio.create_task(harness.informers.wait_for_sync())
    await clock.advance(5)
    await waiting
    assert names(view.all("Widget")) == ["a"]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def has_widgets(view):
    try:
        return bool(view.all("Widget"))
    except KeyError:
        return False


async def test_a_kind_that_is_not_named_any_more_goes_with_its_objects_and_marks_their_keys(harness, clock):
    await harness.define_widgets()
    await make(harness, "a")
    view = register(harness)
    told = []

    def keys(old, new):
        told.append((old and old["metadata"]["name"], new, has_widgets(view)))
        return ["widget/a"]

    harness.named = [Watch(WIDGETS, keys=keys, indexes={"x": lambda obj: ["x"]})]
    await harness.start()
    harness.marked.clear()
    told.clear()
    harness.named = []
    await refresh(harness, clock)
    assert harness.running == {"configmaps[declares=yes]"}
    assert len(harness.informers.all) == 1
    assert (harness.marked, harness.troubles) == (["widget/a"], [])
    assert told == [("a", None, False)], "told once, when the view does not show the kind any more"
    with pytest.raises(KeyError, match="Widget is not watched"):
        view.all("Widget")
    with pytest.raises(KeyError, match='no index "x"'):
        view.indexed("Widget", "x", "x")
    harness.marked.clear()
    harness.named = [marking("again")]
    await refresh(harness, clock)
    assert (names(view.all("Widget")), harness.marked) == (["a"], ["again/a"])


async def test_an_equal_watch_restarts_nothing_and_its_later_functions_count(harness, clock):
    await harness.define_widgets()
    view = register(harness, named=lambda _view: [marking(harness.word)])
    harness.word = "early"
    await harness.start()
    for _ in range(3):
        await refresh(harness, clock)
    harness.word = "late"
    await refresh(harness, clock)
    await make(harness, "a")
    assert harness.marked == ["late/a"]
    assert [path for path in harness.tap.begun if "widgets" in path] == ["/apis/example.dev/v1/widgets"]
    assert names(view.all("Widget")) == ["a"]


async def test_an_index_whose_identity_changes_is_rebuilt_from_the_cache(harness, clock):
    await harness.define_widgets()
    await make(harness, "a", old="x", new="y")
    harness.field = "old"

    def named(_view):
        field = harness.field
        return [marking("widget", indexes={"by": lambda obj: [obj["spec"][field]]}, identity=field)]

    view = register(harness, named=named)
    await harness.start()
    assert names(view.indexed("Widget", "by", "x")) == ["a"]
    harness.field = "new"
    await refresh(harness, clock)
    assert (view.indexed("Widget", "by", "x"), names(view.indexed("Widget", "by", "y"))) == ((), ["a"])
    await harness.client.patch(WIDGETS, "a", {"spec": {"new": "z"}})
    await settle()
    assert (view.indexed("Widget", "by", "y"), names(view.indexed("Widget", "by", "z"))) == ((), ["a"])


async def test_an_object_that_an_index_cannot_take_is_there_all_the_same(harness, clock):
    await harness.define_widgets()
    await make(harness, "bare")
    await make(harness, "red", colour="red")
    view = register(harness)
    harness.named = [marking("widget", indexes={"colour": lambda obj: [obj["spec"]["colour"]]})]
    await harness.start()
    assert names(view.all("Widget")) == ["bare", "red"]
    assert names(view.indexed("Widget", "colour", "red")) == ["red"]
    await harness.client.delete(WIDGETS, "bare")
    await settle()
    assert names(view.all("Widget")) == ["red"]


async def test_two_subscriptions_of_one_kind_both_get_events_and_indexes(harness, clock):
    await harness.define_widgets()
    view = register(harness)
    harness.named = [
        marking("one", indexes={"by": lambda obj: ["one"]}),
        marking("two", indexes={"by": lambda obj: ["two"]}),
    ]
    await harness.start()
    await make(harness, "a")
    assert harness.marked == ["one/a", "two/a"]
    assert names(view.indexed("Widget", "by", "one")) == names(view.indexed("Widget", "by", "two")) == ["a"]
    assert len(harness.tap.begun) == 2


async def test_the_first_of_two_declared_watches_of_a_kind_wins(harness, clock):
    await harness.define_widgets()
    view = register(harness)
    harness.named = [marking("all"), marking("some", label_selector="x=y")]
    await harness.start()
    await make(harness, "a")
    assert (names(view.all("Widget")), harness.marked) == (["a"], ["all/a"])


async def test_a_kind_that_is_watched_anyway_is_not_watched_again(harness, clock):
    view = register(harness, NODE_WATCH)
    harness.named = [Watch(NODES, keys=lambda old, new: ["declared"])]
    await harness.start()
    await harness.make_node("n")
    await settle()
    assert (harness.marked, len(view.all("Node")), harness.running) == (["node/n"], 1, {"nodes"})


async def test_a_bare_kind_is_good_for_one_group_only(harness, clock):
    await harness.define_widgets()
    await define_other(harness)
    view = register(harness)
    harness.named = [marking("one"), marking("other", OTHER_WIDGETS)]
    await harness.start()
    assert view.all("Widget.example.dev") == view.all("Widget.other.dev") == ()
    with pytest.raises(KeyError, match="more than one group has it"):
        view.all("Widget")
    harness.named = [marking("other", OTHER_WIDGETS)]
    await refresh(harness, clock)
    await make(harness, "o", OTHER_WIDGETS)
    assert names(view.all("Widget")) == ["o"]


async def test_the_plural_and_the_scope_are_found_out(harness, clock):
    await harness.define_widgets()
    view = register(harness)
    harness.named = [marking("widget", of_kind("example.dev/v1", "Widget"))]
    await harness.start()
    await make(harness, "a")
    assert (names(view.all("Widget")), harness.running) == (["a"], {"configmaps[declares=yes]", "widgets.example.dev"})


async def test_a_kind_that_is_not_served_holds_nothing_up_and_is_watched_when_it_is(harness, clock):
    view = register(harness)
    harness.named = [marking("widget", of_kind("example.dev/v1", "Widget"))]
    await harness.start()
    await clock.advance(1)
    assert (view.is_synced("Widget"), view.all("Widget"), harness.informers.is_synced) == (True, (), True)
    assert view.versions("example.dev", "Widget") == ()
    await harness.define_widgets()
    await make(harness, "a")
    await clock.advance(DISCOVERY_SECONDS + 1)
    assert (names(view.all("Widget")), view.versions("example.dev", "Widget")) == (["a"], ("v1",))


async def test_a_definition_and_its_declaration_at_once_are_watched_within_a_second(harness, clock):
    view = register(harness)
    await harness.start()
    await clock.advance(5)
    await harness.define_widgets()
    await make(harness, "a")
    harness.named = [marking("widget", of_kind("example.dev/v1", "Widget"))]
    await refresh(harness, clock)
    assert names(view.all("Widget")) == ["a"]


async def forbidden(harness, clock):
    """A view of a declared and served kind that we must not watch."""
    await harness.define_widgets()
    harness.tap.refused.add("/apis/example.dev/v1/widgets")
    view = register(harness)
    harness.named = [marking("widget")]
    await harness.start()
    await clock.advance(1)
    return view


async def test_a_forbidden_kind_reports_an_error_and_blocks_nothing(harness, clock):
    view = await forbidden(harness, clock)
    assert not view.is_synced("Widget")
    assert view.watch_error("Widget") == "cannot watch widgets.example.dev: forbidden: as asked"
    assert harness.informers.is_synced
    assert harness.troubles == [1]
    await clock.advance(STALLED_SECONDS + 60)
    assert harness.informers.broken_watches(view) == []
    harness.tap.refused.clear()
    await clock.advance(120)
    assert (view.is_synced("Widget"), view.watch_error("Widget")) == (True, "")
    assert harness.troubles == [1, 1], "told again when it is well"


async def test_a_watch_error_ends_with_its_kind_and_the_change_is_reported(harness, clock):
    view = await forbidden(harness, clock)
    assert (len(harness.troubles), view.is_synced("Widget")) == (1, False)
    await harness.client.delete(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.dev")
    await clock.advance(DISCOVERY_SECONDS + 1)
    assert (view.is_synced("Widget"), view.watch_error("Widget")) == (True, "")
    assert len(harness.troubles) == 2


async def test_a_watch_error_ends_when_its_kind_is_no_longer_named_and_the_change_is_reported(harness, clock):
    await forbidden(harness, clock)
    harness.named = []
    await refresh(harness, clock)
    assert len(harness.troubles) == 2


async def test_waiting_for_a_kind_ends_when_it_is_no_longer_declared(harness, clock):
    await harness.define_widgets()
    view = register(harness)
    harness.named = [marking("widget")]
    assert not view.is_synced("Widget")
    harness.named = []
    view.refresh()
    assert harness.troubles == [1]


@pytest.mark.parametrize("is_cut", [False, True], ids=["told of each object", "cut off first"])
async def test_a_kind_whose_definition_is_deleted_marks_the_keys_of_all_its_objects(harness, clock, is_cut):
    await harness.define_widgets()
    for name in ("a", "b"):
        await make(harness, name)
    view = register(harness)
    harness.named = [marking("widget")]
    await harness.start()
    if is_cut:
        harness.tap.cut("/apis/example.dev/v1/widgets")
    harness.marked.clear()
    await harness.client.delete(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.dev")
    await clock.advance(DISCOVERY_SECONDS + 1)
    assert (view.all("Widget"), view.is_synced("Widget"), view.watch_error("Widget")) == ((), True, "")
    assert set(harness.marked) == {"widget/a", "widget/b"}


async def test_a_write_to_an_object_that_goes_with_its_definition_does_not_keep_it(harness, clock):
    await harness.define_widgets()
    await make(harness, "a")
    view = register(harness)
    harness.named = [marking("widget")]
    await harness.start()
    patched = await harness.client.patch(WIDGETS, "a", {"metadata": {"labels": {"x": "y"}}})
    harness.tap.cut("/apis/example.dev/v1/widgets")
    await harness.client.delete(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.dev")
    harness.informers.record_write(ObjectRef(api_version="example.dev/v1", kind="Widget", name="a"), patched)
    await clock.advance(DISCOVERY_SECONDS + 1)
    harness.informers.record_write(ObjectRef(api_version="example.dev/v1", kind="Widget", name="a"), patched)
    assert (view.all("Widget"), view.is_synced("Widget")) == ((), True)


async def test_a_kind_that_a_capability_insists_on_is_broken_where_it_may_not_be_watched(harness, clock):
    await harness.define_widgets()
    harness.tap.refused.add("/apis/example.dev/v1/widgets")
    view = register(harness, Watch(WIDGETS))
    await harness.start()
    await clock.advance(STALLED_SECONDS + 60)
    assert not harness.informers.is_synced
    assert [report.resource for report in harness.informers.broken_watches(view)] == ["widgets.example.dev"]


async def test_a_failing_declaration_keeps_the_previous_kinds(harness, clock):
    await harness.define_widgets()

    def named(_view):
        if harness.named is None:
            raise ValueError("cannot say")
        return harness.named

    view = register(harness, named=named)
    harness.named = [marking("widget")]
    await harness.start()
    harness.named = None
    await refresh(harness, clock)
    await make(harness, "a")
    assert names(view.all("Widget")) == ["a"]


async def test_a_kind_that_another_subscription_has_synced_is_there_at_once_and_stays_when_one_ends(harness, clock):
    await harness.define_widgets()
    await make(harness, "a")
    other = harness.register(Watch(WIDGETS, optional=True))
    view = register(harness)
    await harness.start()
    harness.synced.clear()
    harness.named = [marking("widget")]
    assert names(view.all("Widget")) == ["a"]
    assert harness.synced == ["Widget"]
    harness.named = []
    await refresh(harness, clock)
    await make(harness, "b")
    assert (names(other.all("Widget")), harness.marked) == (["a", "b"], ["widget/a"])


async def test_two_subscriptions_share_a_watch_and_end_one_by_one(harness, clock):
    await harness.define_widgets()
    first = register(harness)
    harness.others = [marking("second")]
    second = register(harness, named=lambda _view: list(harness.others))
    harness.named = [marking("first")]
    await harness.start()
    harness.others = []
    await refresh(harness, clock)
    await make(harness, "a")
    assert (names(first.all("Widget")), harness.marked) == (["a"], ["first/a"])
    with pytest.raises(KeyError, match="Widget is not watched"):
        second.all("Widget")
    assert harness.tap.begun.count("/apis/example.dev/v1/widgets") == 1


async def test_a_declared_kind_may_be_used_while_it_is_declared(harness, clock):
    await harness.define_widgets()

    def named(view):
        with pytest.raises(KeyError):
            view.all("Gadget")
        return [marking("widget")]

    view = register(harness, named=named)
    await harness.start()
    assert view.is_synced("Widget")


SCOPED = Watch(CONFIG_MAPS, keys=lambda old, new: [(new or old)["metadata"]["name"]], namespace="one")


async def map_in(harness, namespace, name):
    await harness.client.create(CONFIG_MAPS, {"metadata": {"name": name, "namespace": namespace}})
    await settle()


async def namespaces_made(harness):
    for name in ("one", "two"):
        await harness.client.create(NAMESPACES, {"metadata": {"name": name}})


async def test_a_kind_is_watched_only_in_the_declared_namespaces(harness, clock):
    await namespaces_made(harness)
    view = register(harness, NODE_WATCH)
    harness.named = [SCOPED, replace(SCOPED, namespace="two")]
    await harness.start()
    for namespace in ("one", "two", "default"):
        await map_in(harness, namespace, f"in-{namespace}")
    assert names(view.all("ConfigMap@one")) == names(view.all("ConfigMap.core@one")) == ["in-one"]
    assert names(view.all("ConfigMap@two")) == ["in-two"]
    assert harness.marked == ["in-one", "in-two"]
    watched = [path for path in harness.tap.begun if "configmaps" in path]
    assert watched == [f"/api/v1/namespaces/{name}/configmaps" for name in ("one", "two")]


async def test_a_namespace_that_may_not_be_watched_holds_up_no_other(harness, clock):
    await namespaces_made(harness)
    harness.tap.refused = {"/api/v1/namespaces/one/configmaps"}
    view = register(harness, NODE_WATCH)
    harness.named = [SCOPED, replace(SCOPED, namespace="two")]
    await harness.start()
    assert (view.is_synced("ConfigMap@one"), view.is_synced("ConfigMap@two")) == (False, True)
    assert view.watch_error("ConfigMap@one").startswith("cannot watch configmaps in namespace one: forbidden: ")
    assert harness.informers.is_ready


async def test_a_write_is_laid_over_what_its_own_namespace_shows(harness, clock):
    await namespaces_made(harness)
    view = register(harness, NODE_WATCH)
    harness.named = [SCOPED, replace(SCOPED, namespace="two")]
    await harness.start()
    made = {"metadata": {"name": "m", "namespace": "two", "uid": "u", "resourceVersion": "999999"}}
    ref = ObjectRef(api_version="v1", kind="ConfigMap", namespace="two", name="m")
    harness.informers.record_write(ref, {"apiVersion": "v1", "kind": "ConfigMap", **made})
    assert (names(view.all("ConfigMap@one")), names(view.all("ConfigMap@two"))) == ([], ["m"])


async def test_a_kind_that_another_view_has_synced_is_shown_before_it_is_reported(harness):
    """Regression: a handler that looked up the kind at once subscribed it again, endlessly."""
    await harness.define_widgets()
    harness.named = [Watch(WIDGETS)]
    first = register(harness)
    await harness.start()
    assert first.is_synced("Widget")
    told, named = [], []
    handlers = EventHandlers(on_synced=lambda kind: told.append((kind, second.all("Widget"))))
    second = harness.informers.register((MAPS,), handlers=handlers, declared=lambda _view: list(named))
    named.append(Watch(WIDGETS))

    assert second.all("Widget") == ()

    assert told == [("Widget", ())]


async def test_an_index_that_asks_for_its_own_kind_while_it_is_being_built_is_not_subscribed_without_end(harness):
    await harness.define_widgets()
    await make(harness, "a")
    harness.named = [Watch(WIDGETS)]
    register(harness)
    await harness.start()
    named, asked = [], []

    def values(obj):
        asked.append(obj["metadata"]["name"])
        return [str(len(second.all("Widget")))]

    second = harness.informers.register((MAPS,), declared=lambda _view: list(named))
    named.append(Watch(WIDGETS, indexes={"x": values}))

    assert names(second.all("Widget")) == ["a"]
    assert asked == ["a"]
    await make(harness, "b")
    assert asked == ["a", "b"], "it is subscribed once"
