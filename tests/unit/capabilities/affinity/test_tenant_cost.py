"""Linear cost of a pass over tenants, in interpreter steps."""

import pytest
from tests.builders.interpreter_steps import steps
from tests.builders.tenants import CLASSES, NOW, deleted, planned, secret, settled, snapshot, tenant

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.affinity.planning.inheritance import effective_policies
from nodeyard.capabilities.affinity.report.tenants import status_tenants

FEW, MORE, MANY = 10, 20, 40
SEED = ("dc1", ("dc1", "dc2"))


def wide(number):
    return [tenant("root", *SEED), *(tenant(f"t{each}", None, ["dc1", "gpu"]) for each in range(number))]


def deep(number):
    """Build parallel branches of five tenants each."""
    return [
        tenant("/".join([f"t{branch}", "a", "b", "c", "d"][: depth + 1]), *SEED)
        for branch in range(number // 5)
        for depth in range(5)
    ]


def orphans(number):
    return [tenant(f"gone/t{each}", *SEED) for each in range(number)]


def grows_linearly(work):
    work(FEW)()
    few, more, many = (steps(work(number)) for number in (FEW, MORE, MANY))
    assert few < more < many
    assert many - more < 2.05 * (more - few)


@pytest.mark.parametrize("trees", [wide, deep, orphans], ids=lambda each: each.__name__)
def test_inheritance_is_at_most_linear_in_the_tenants(trees):
    def working(number):
        tenants = trees(number)
        return lambda: effective_policies(tenants, CLASSES)

    grows_linearly(working)


def new(tenants):
    return snapshot(*tenants, secrets=[secret("tenant-root", "_cluster: {a: 1}\n")])


def served(tenants):
    return settled(new(tenants))


def going(tenants):
    return snapshot(*map(deleted, tenants))


@pytest.mark.parametrize("world", [new, served, going], ids=lambda each: each.__name__)
@pytest.mark.parametrize("trees", [wide, deep], ids=lambda each: each.__name__)
def test_a_pass_is_at_most_linear_in_the_tenants(trees, world):
    def passing(number):
        seen = world(trees(number))
        return lambda: status_tenants(seen, planned(seen).plan, Outcome(), NOW)

    grows_linearly(passing)
