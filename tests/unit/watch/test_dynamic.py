"""Kinds that are named while the watches run: they join a view, are found in it at once, and leave it again."""

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
from .stages import NODE_WATCH, WIDGETS, Stage

OTHER_WIDGETS = untyped("other.dev", "v1", "widgets", "Widget", namespaced=False)
MAPS = Watch(CONFIG_MAPS, label_selector="declares=yes")


class Tap:
    """Counts watches by path, refuses those it is told to, and cuts them off as a server does that has no such kind."""

    def __init__(self, inner):
        self._inner = inner
        self.close, self.send = inner.close, inner.send
        self.begun, self.refused = [], set()
        self._is_cut = {}

    def cut(self, path):
        """End the streams of a path without a word, and answer 404 from here on."""
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
async def stage(clock):
    server = Server(clock, seed=1)
    await server.start(())
    stage = Stage(clock, server)
    stage.tap = stage.client.transport = Tap(stage.client.transport)
    stage.named = []
    stage.troubles = []
    yield stage
    await stage.stop()
    await server.stop()
    assert [task for task in asyncio.all_tasks() if "informer" in task.get_name()] == []


def register(stage, *watches, named=None):
    """A view whose declared kinds are those of `stage.named`."""
    return stage.informers.register(
        watches or (MAPS,),
        handlers=EventHandlers(
            on_key=stage.mark, on_synced=stage.synced.append, on_watch_error=lambda: stage.troubles.append(1)
        ),
        declared=named or (lambda _view: list(stage.named)),
    )


def marking(word, resource=WIDGETS, **more):
    return Watch(resource, keys=lambda old, new: [f"{word}/{(new or old)['metadata']['name']}"], **more)


async def refresh(stage, clock):
    """A change of the view, after which it is asked again."""
    stage.informers.reevaluate_needed()
    await clock.advance(1)


async def make(stage, name, resource=WIDGETS, **spec):
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": spec}
    await stage.client.create(resource, obj)
    await settle()


async def define_other(stage):
    (page,) = (await stage.client.list(CUSTOM_RESOURCE_DEFINITIONS)).items
    spec = {**page["spec"], "group": "other.dev", "conversion": None}
    await stage.client.create(CUSTOM_RESOURCE_DEFINITIONS, {"metadata": {"name": "widgets.other.dev"}, "spec": spec})
    await settle()


def names(objects):
    return [obj["metadata"]["name"] for obj in objects]


async def test_a_kind_that_is_named_is_watched_indexed_and_marks_keys(stage, clock):
    await stage.define_widgets()
    await make(stage, "a", colour="red")
    view = register(stage)
    await stage.start()
    stage.named = [marking("widget", indexes={"colour": lambda obj: [obj["spec"]["colour"]]})]
    await refresh(stage, clock)
    await make(stage, "b", colour="red")
    assert names(view.all("Widget")) == names(view.all("Widget.example.dev")) == ["a", "b"]
    assert names(view.indexed("Widget", "colour", "red")) == ["a", "b"]
    assert (view.is_synced("Widget"), view.watch_error("Widget")) == (True, "")
    assert stage.marked == ["widget/a", "widget/b"]
    assert stage.synced == ["ConfigMap", "Widget"]


async def test_a_change_of_the_view_is_enough_to_be_asked_again(stage, clock):
    await stage.define_widgets()
    view = register(stage, named=lambda view: [marking("widget")] if view.all("ConfigMap") else [])
    await stage.start()
    assert "widgets.example.dev" not in stage.running
    labelled = {"metadata": {"name": "declares", "namespace": "default", "labels": {"declares": "yes"}}}
    await stage.client.create(CONFIG_MAPS, labelled)
    await clock.advance(1)
    assert view.is_synced("Widget.example.dev")
    await stage.client.delete(CONFIG_MAPS, "declares", "default")
    await clock.advance(1)
    assert stage.running == {"configmaps[declares=yes]"}


async def test_a_declared_kind_is_in_the_view_at_once_and_not_synced(stage, clock):
    await stage.define_widgets()
    view = register(stage)
    await stage.start()
    stage.named = [marking("widget", indexes={"x": lambda obj: ["x"]})]
    assert not view.is_synced("Widget")
    assert (view.all("Widget"), view.indexed("Widget", "x", "x")) == ((), ())
    assert not stage.informers.is_synced
    await clock.advance(1)
    assert view.is_synced("Widget")
    assert stage.informers.is_synced


async def test_a_view_is_not_synced_before_its_declared_kinds(stage, clock):
    """Whoever looks once waits for what only the first lists make known."""
    await stage.define_widgets()
    await make(stage, "a")
    await stage.client.create(
        CONFIG_MAPS, {"metadata": {"name": "declares", "namespace": "default", "labels": {"declares": "yes"}}}
    )
    view = register(stage, named=lambda view: [marking("widget")] if view.all("ConfigMap") else [])
    running = asyncio.create_task(stage.informers.run())
    waiting = asyncio.create_task(stage.informers.wait_for_sync())
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


async def test_a_kind_that_is_not_named_any_more_goes_with_its_objects_and_marks_their_keys(stage, clock):
    await stage.define_widgets()
    await make(stage, "a")
    view = register(stage)
    told = []

    def keys(old, new):
        told.append((old and old["metadata"]["name"], new, has_widgets(view)))
        return ["widget/a"]

    stage.named = [Watch(WIDGETS, keys=keys, indexes={"x": lambda obj: ["x"]})]
    await stage.start()
    stage.marked.clear()
    told.clear()
    stage.named = []
    await refresh(stage, clock)
    assert stage.running == {"configmaps[declares=yes]"}
    assert len(stage.informers.all) == 1
    assert (stage.marked, stage.troubles) == (["widget/a"], [])
    assert told == [("a", None, False)], "told once, when the view does not show the kind any more"
    with pytest.raises(KeyError, match="Widget is not watched"):
        view.all("Widget")
    with pytest.raises(KeyError, match='no index "x"'):
        view.indexed("Widget", "x", "x")
    stage.marked.clear()
    stage.named = [marking("again")]
    await refresh(stage, clock)
    assert (names(view.all("Widget")), stage.marked) == (["a"], ["again/a"])


async def test_an_equal_watch_restarts_nothing_and_its_later_functions_count(stage, clock):
    await stage.define_widgets()
    view = register(stage, named=lambda _view: [marking(stage.word)])
    stage.word = "early"
    await stage.start()
    for _ in range(3):
        await refresh(stage, clock)
    stage.word = "late"
    await refresh(stage, clock)
    await make(stage, "a")
    assert stage.marked == ["late/a"]
    assert [path for path in stage.tap.begun if "widgets" in path] == ["/apis/example.dev/v1/widgets"]
    assert names(view.all("Widget")) == ["a"]


async def test_an_index_whose_identity_changes_is_rebuilt_from_the_cache(stage, clock):
    await stage.define_widgets()
    await make(stage, "a", old="x", new="y")
    stage.field = "old"

    def named(_view):
        field = stage.field
        return [marking("widget", indexes={"by": lambda obj: [obj["spec"][field]]}, identity=field)]

    view = register(stage, named=named)
    await stage.start()
    assert names(view.indexed("Widget", "by", "x")) == ["a"]
    stage.field = "new"
    await refresh(stage, clock)
    assert (view.indexed("Widget", "by", "x"), names(view.indexed("Widget", "by", "y"))) == ((), ["a"])
    await stage.client.patch(WIDGETS, "a", {"spec": {"new": "z"}})
    await settle()
    assert (view.indexed("Widget", "by", "y"), names(view.indexed("Widget", "by", "z"))) == ((), ["a"])


async def test_an_object_that_an_index_cannot_take_is_there_all_the_same(stage, clock):
    await stage.define_widgets()
    await make(stage, "bare")
    await make(stage, "red", colour="red")
    view = register(stage)
    stage.named = [marking("widget", indexes={"colour": lambda obj: [obj["spec"]["colour"]]})]
    await stage.start()
    assert names(view.all("Widget")) == ["bare", "red"]
    assert names(view.indexed("Widget", "colour", "red")) == ["red"]
    await stage.client.delete(WIDGETS, "bare")
    await settle()
    assert names(view.all("Widget")) == ["red"]


async def test_two_subscriptions_of_one_kind_both_get_events_and_indexes(stage, clock):
    await stage.define_widgets()
    view = register(stage)
    stage.named = [
        marking("one", indexes={"by": lambda obj: ["one"]}),
        marking("two", indexes={"by": lambda obj: ["two"]}),
    ]
    await stage.start()
    await make(stage, "a")
    assert stage.marked == ["one/a", "two/a"]
    assert names(view.indexed("Widget", "by", "one")) == names(view.indexed("Widget", "by", "two")) == ["a"]
    assert len(stage.tap.begun) == 2


async def test_the_first_of_two_declared_watches_of_a_kind_wins(stage, clock):
    await stage.define_widgets()
    view = register(stage)
    stage.named = [marking("all"), marking("some", label_selector="x=y")]
    await stage.start()
    await make(stage, "a")
    assert (names(view.all("Widget")), stage.marked) == (["a"], ["all/a"])


async def test_a_kind_that_is_watched_anyway_is_not_watched_again(stage, clock):
    view = register(stage, NODE_WATCH)
    stage.named = [Watch(NODES, keys=lambda old, new: ["declared"])]
    await stage.start()
    await stage.make_node("n")
    await settle()
    assert (stage.marked, len(view.all("Node")), stage.running) == (["node/n"], 1, {"nodes"})


async def test_a_bare_kind_is_good_for_one_group_only(stage, clock):
    await stage.define_widgets()
    await define_other(stage)
    view = register(stage)
    stage.named = [marking("one"), marking("other", OTHER_WIDGETS)]
    await stage.start()
    assert view.all("Widget.example.dev") == view.all("Widget.other.dev") == ()
    with pytest.raises(KeyError, match="more than one group has it"):
        view.all("Widget")
    stage.named = [marking("other", OTHER_WIDGETS)]
    await refresh(stage, clock)
    await make(stage, "o", OTHER_WIDGETS)
    assert names(view.all("Widget")) == ["o"]


async def test_the_plural_and_the_scope_are_found_out(stage, clock):
    await stage.define_widgets()
    view = register(stage)
    stage.named = [marking("widget", of_kind("example.dev/v1", "Widget"))]
    await stage.start()
    await make(stage, "a")
    assert (names(view.all("Widget")), stage.running) == (["a"], {"configmaps[declares=yes]", "widgets.example.dev"})


async def test_a_kind_that_is_not_served_holds_nothing_up_and_is_watched_when_it_is(stage, clock):
    view = register(stage)
    stage.named = [marking("widget", of_kind("example.dev/v1", "Widget"))]
    await stage.start()
    await clock.advance(1)
    assert (view.is_synced("Widget"), view.all("Widget"), stage.informers.is_synced) == (True, (), True)
    assert view.versions("example.dev", "Widget") == ()
    await stage.define_widgets()
    await make(stage, "a")
    await clock.advance(DISCOVERY_SECONDS + 1)
    assert (names(view.all("Widget")), view.versions("example.dev", "Widget")) == (["a"], ("v1",))


async def test_a_definition_and_its_declaration_at_once_are_watched_within_a_second(stage, clock):
    view = register(stage)
    await stage.start()
    await clock.advance(5)
    await stage.define_widgets()
    await make(stage, "a")
    stage.named = [marking("widget", of_kind("example.dev/v1", "Widget"))]
    await refresh(stage, clock)
    assert names(view.all("Widget")) == ["a"]


async def forbidden(stage, clock):
    """A view of a kind that is named, served, and not ours to watch."""
    await stage.define_widgets()
    stage.tap.refused.add("/apis/example.dev/v1/widgets")
    view = register(stage)
    stage.named = [marking("widget")]
    await stage.start()
    await clock.advance(1)
    return view


async def test_a_forbidden_kind_reports_an_error_and_blocks_nothing(stage, clock):
    view = await forbidden(stage, clock)
    assert not view.is_synced("Widget")
    assert view.watch_error("Widget") == "cannot watch widgets.example.dev: forbidden: as asked"
    assert stage.informers.is_synced
    assert stage.troubles == [1]
    await clock.advance(STALLED_SECONDS + 60)
    assert stage.informers.broken_watches(view) == []
    stage.tap.refused.clear()
    await clock.advance(120)
    assert (view.is_synced("Widget"), view.watch_error("Widget")) == (True, "")
    assert stage.troubles == [1, 1], "told again when it is well"


async def test_a_watch_error_ends_with_its_kind_and_the_change_is_reported(stage, clock):
    view = await forbidden(stage, clock)
    assert (len(stage.troubles), view.is_synced("Widget")) == (1, False)
    await stage.client.delete(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.dev")
    await clock.advance(DISCOVERY_SECONDS + 1)
    assert (view.is_synced("Widget"), view.watch_error("Widget")) == (True, "")
    assert len(stage.troubles) == 2


async def test_a_watch_error_ends_when_its_kind_is_no_longer_named_and_the_change_is_reported(stage, clock):
    await forbidden(stage, clock)
    stage.named = []
    await refresh(stage, clock)
    assert len(stage.troubles) == 2


async def test_waiting_for_a_kind_ends_when_it_is_no_longer_declared(stage, clock):
    await stage.define_widgets()
    view = register(stage)
    stage.named = [marking("widget")]
    assert not view.is_synced("Widget")
    stage.named = []
    view.refresh()
    assert stage.troubles == [1]


@pytest.mark.parametrize("is_cut", [False, True], ids=["told of each object", "cut off first"])
async def test_a_kind_whose_definition_is_deleted_marks_the_keys_of_all_its_objects(stage, clock, is_cut):
    await stage.define_widgets()
    for name in ("a", "b"):
        await make(stage, name)
    view = register(stage)
    stage.named = [marking("widget")]
    await stage.start()
    if is_cut:
        stage.tap.cut("/apis/example.dev/v1/widgets")
    stage.marked.clear()
    await stage.client.delete(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.dev")
    await clock.advance(DISCOVERY_SECONDS + 1)
    assert (view.all("Widget"), view.is_synced("Widget"), view.watch_error("Widget")) == ((), True, "")
    assert set(stage.marked) == {"widget/a", "widget/b"}


async def test_a_write_to_an_object_that_goes_with_its_definition_does_not_keep_it(stage, clock):
    await stage.define_widgets()
    await make(stage, "a")
    view = register(stage)
    stage.named = [marking("widget")]
    await stage.start()
    patched = await stage.client.patch(WIDGETS, "a", {"metadata": {"labels": {"x": "y"}}})
    stage.tap.cut("/apis/example.dev/v1/widgets")
    await stage.client.delete(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.dev")
    stage.informers.record_write(ObjectRef(api_version="example.dev/v1", kind="Widget", name="a"), patched)
    await clock.advance(DISCOVERY_SECONDS + 1)
    stage.informers.record_write(ObjectRef(api_version="example.dev/v1", kind="Widget", name="a"), patched)
    assert (view.all("Widget"), view.is_synced("Widget")) == ((), True)


async def test_a_kind_that_a_capability_insists_on_is_broken_where_it_may_not_be_watched(stage, clock):
    await stage.define_widgets()
    stage.tap.refused.add("/apis/example.dev/v1/widgets")
    view = register(stage, Watch(WIDGETS))
    await stage.start()
    await clock.advance(STALLED_SECONDS + 60)
    assert not stage.informers.is_synced
    assert [report.resource for report in stage.informers.broken_watches(view)] == ["widgets.example.dev"]


async def test_a_failing_declaration_keeps_the_previous_kinds(stage, clock):
    await stage.define_widgets()

    def named(_view):
        if stage.named is None:
            raise ValueError("cannot say")
        return stage.named

    view = register(stage, named=named)
    stage.named = [marking("widget")]
    await stage.start()
    stage.named = None
    await refresh(stage, clock)
    await make(stage, "a")
    assert names(view.all("Widget")) == ["a"]


async def test_a_kind_that_another_subscription_has_synced_is_there_at_once_and_stays_when_one_ends(stage, clock):
    await stage.define_widgets()
    await make(stage, "a")
    other = stage.register(Watch(WIDGETS, optional=True))
    view = register(stage)
    await stage.start()
    stage.synced.clear()
    stage.named = [marking("widget")]
    assert names(view.all("Widget")) == ["a"]
    assert stage.synced == ["Widget"]
    stage.named = []
    await refresh(stage, clock)
    await make(stage, "b")
    assert (names(other.all("Widget")), stage.marked) == (["a", "b"], ["widget/a"])


async def test_two_subscriptions_share_a_watch_and_end_one_by_one(stage, clock):
    await stage.define_widgets()
    first = register(stage)
    stage.others = [marking("second")]
    second = register(stage, named=lambda _view: list(stage.others))
    stage.named = [marking("first")]
    await stage.start()
    stage.others = []
    await refresh(stage, clock)
    await make(stage, "a")
    assert (names(first.all("Widget")), stage.marked) == (["a"], ["first/a"])
    with pytest.raises(KeyError, match="Widget is not watched"):
        second.all("Widget")
    assert stage.tap.begun.count("/apis/example.dev/v1/widgets") == 1


async def test_a_declared_kind_may_be_used_while_it_is_declared(stage, clock):
    await stage.define_widgets()

    def named(view):
        with pytest.raises(KeyError):
            view.all("Gadget")
        return [marking("widget")]

    view = register(stage, named=named)
    await stage.start()
    assert view.is_synced("Widget")


SCOPED = Watch(CONFIG_MAPS, keys=lambda old, new: [(new or old)["metadata"]["name"]], namespace="one")


async def map_in(stage, namespace, name):
    await stage.client.create(CONFIG_MAPS, {"metadata": {"name": name, "namespace": namespace}})
    await settle()


async def namespaces_made(stage):
    for name in ("one", "two"):
        await stage.client.create(NAMESPACES, {"metadata": {"name": name}})


async def test_a_kind_is_watched_only_in_the_declared_namespaces(stage, clock):
    await namespaces_made(stage)
    view = register(stage, NODE_WATCH)
    stage.named = [SCOPED, replace(SCOPED, namespace="two")]
    await stage.start()
    for namespace in ("one", "two", "default"):
        await map_in(stage, namespace, f"in-{namespace}")
    assert names(view.all("ConfigMap@one")) == names(view.all("ConfigMap.core@one")) == ["in-one"]
    assert names(view.all("ConfigMap@two")) == ["in-two"]
    assert stage.marked == ["in-one", "in-two"]
    watched = [path for path in stage.tap.begun if "configmaps" in path]
    assert watched == [f"/api/v1/namespaces/{name}/configmaps" for name in ("one", "two")]


async def test_a_namespace_that_may_not_be_watched_holds_up_no_other(stage, clock):
    await namespaces_made(stage)
    stage.tap.refused = {"/api/v1/namespaces/one/configmaps"}
    view = register(stage, NODE_WATCH)
    stage.named = [SCOPED, replace(SCOPED, namespace="two")]
    await stage.start()
    assert (view.is_synced("ConfigMap@one"), view.is_synced("ConfigMap@two")) == (False, True)
    assert view.watch_error("ConfigMap@one").startswith("cannot watch configmaps in namespace one: forbidden: ")
    assert stage.informers.is_ready


async def test_a_write_is_laid_over_what_its_own_namespace_shows(stage, clock):
    await namespaces_made(stage)
    view = register(stage, NODE_WATCH)
    stage.named = [SCOPED, replace(SCOPED, namespace="two")]
    await stage.start()
    made = {"metadata": {"name": "m", "namespace": "two", "uid": "u", "resourceVersion": "999999"}}
    ref = ObjectRef(api_version="v1", kind="ConfigMap", namespace="two", name="m")
    stage.informers.record_write(ref, {"apiVersion": "v1", "kind": "ConfigMap", **made})
    assert (names(view.all("ConfigMap@one")), names(view.all("ConfigMap@two"))) == ([], ["m"])


async def test_a_kind_that_another_view_has_synced_is_shown_before_it_is_reported(stage):
    """A handler that looks at the kind at once used to attach it again for that look, and again, without end."""
    await stage.define_widgets()
    stage.named = [Watch(WIDGETS)]
    first = register(stage)
    await stage.start()
    assert first.is_synced("Widget")
    told, named = [], []
    handlers = EventHandlers(on_synced=lambda kind: told.append((kind, second.all("Widget"))))
    second = stage.informers.register((MAPS,), handlers=handlers, declared=lambda _view: list(named))
    named.append(Watch(WIDGETS))

    assert second.all("Widget") == ()

    assert told == [("Widget", ())]


async def test_an_index_that_asks_for_its_own_kind_while_it_is_being_built_is_not_subscribed_without_end(stage):
    await stage.define_widgets()
    await make(stage, "a")
    stage.named = [Watch(WIDGETS)]
    register(stage)
    await stage.start()
    named, asked = [], []

    def values(obj):
        asked.append(obj["metadata"]["name"])
        return [str(len(second.all("Widget")))]

    second = stage.informers.register((MAPS,), declared=lambda _view: list(named))
    named.append(Watch(WIDGETS, indexes={"x": values}))

    assert names(second.all("Widget")) == ["a"]
    assert asked == ["a"]
    await make(stage, "b")
    assert asked == ["a", "b"], "it is subscribed once"
