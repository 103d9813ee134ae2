"""Every message is a sentence that contains all of its facts, and every reason has a message."""

import importlib
import pkgutil
from typing import get_args

import msgspec
import pytest

from nodeyard.capabilities.affinity import messages
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.plan.message import PAST, Message
from nodeyard.plan.model import ObjectRef


def _all():
    found = {}
    for module in pkgutil.iter_modules(messages.__path__):
        for each in vars(importlib.import_module(f"{messages.__name__}.{module.name}")).values():
            if isinstance(each, type) and issubclass(each, Message) and hasattr(each, "reason"):
                found[each.__name__] = each
    return [found[name] for name in sorted(found)]


ALL = _all()


def values_for(field):
    """Return two values of a field, other than its default."""
    given = msgspec.inspect.type_info(field.type)
    match given:
        case msgspec.inspect.UnionType():
            (given,) = (each for each in given.types if not isinstance(each, msgspec.inspect.NoneType))
    match given:
        case msgspec.inspect.LiteralType():
            return get_args(field.type)[:2]
        case msgspec.inspect.StrType():
            return f"a {field.name}", f"another {field.name}"
        case msgspec.inspect.IntType():
            return 12, 13
        case msgspec.inspect.BoolType():
            return True, False
        case msgspec.inspect.VarTupleType():
            return ("dc7",), ()
        case msgspec.inspect.CollectionType():
            return ["dc7"], ["dc7", "dc8"]
        case msgspec.inspect.DictType():
            values = (2, 3) if isinstance(given.value_type, msgspec.inspect.IntType) else ("v", "w")
            return {"Key": values[0]}, {"Key": values[1]}
        case _:
            return _ref("tenant-acme", "web"), _ref("tenant-shop", "till")


def _ref(namespace, name):
    return ObjectRef(api_version="apps.cozystack.io/v1alpha1", kind="Tenant", namespace=namespace, name=name)


def example(message, /, which=0, **changed):
    return message(**{each.name: values_for(each)[which] for each in msgspec.structs.fields(message)} | changed)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_a_message_is_a_sentence(kind):
    said = example(kind).text()

    assert " " in said or kind.reason is Reason.INVALID_SELECTOR
    assert "None" not in said


@pytest.mark.parametrize(
    ("kind", "field"),
    [(kind, field) for kind in ALL for field in msgspec.structs.fields(kind)],
    ids=lambda each: getattr(each, "__name__", None) or each.name,
)
def test_every_fact_reaches_the_text(kind, field):
    assert any(
        len({example(kind, which, **{field.name: value}).text() for value in values_for(field)}) == 2
        for which in (0, 1)
    )


def test_every_reason_has_a_message():
    assert {each.reason for each in ALL} == set(Reason)


ACTIONS = [
    each
    for each in ALL
    if each.reason
    in {reason for reason in Reason if reason.name.startswith(("FINALIZER_", "VALUES_"))}
    | {Reason.NAMESPACE_APPLIED, Reason.NAMESPACE_DELETED, Reason.DEFINITION_SERVED, Reason.DEFINITION_WITHDRAWN}
    | {Reason.RELEASE_APPLIED, Reason.CLASS_RECORDED, Reason.CLASS_CHANGED, Reason.CLASS_SETTLED}
    or each.__name__ == "DefinitionClosing"
]


@pytest.mark.parametrize("kind", ACTIONS, ids=lambda kind: kind.__name__)
def test_an_action_has_a_present_text_before_and_a_past_text_after(kind):
    message = example(kind)

    assert message.text().split()[0] in PAST
    assert message.past_text().split()[0] == PAST[message.text().split()[0]]
