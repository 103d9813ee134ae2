"""The design's flow as far as it is about tenants, told step by step: what is planned, and what each tenant then says.

To renew it: NODEYARD_RENEW=1 pytest tests/golden/affinity; then read it.
"""

import os
from dataclasses import replace
from pathlib import Path

import msgspec
from tests.builders.tenants import NOW, after, deleted, kept, planned, secret, snapshot, tenant, text_of

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.affinity.report.tenants import status_tenants
from nodeyard.capabilities.affinity.types import TenantStatus
from nodeyard.plan.render import render_plan

HERE = Path(__file__).parent
PLATFORM = "_cluster:\n  root-host: example.org\n  # ... existing cluster config\n"
SEED = {"etcd": False, "ingress": True, "monitoring": False}


class Story:
    """Simulated tenants, and the transcript of their plans."""

    def __init__(self, world):
        self.world = world
        self.lines = []

    def step(self, title, *, change=lambda world: world):
        """Record a change, then plan and apply until nothing is left to do."""
        self.world = change(self.world)
        self.lines += [f"## {title}", ""]
        while (found := planned(self.world)).plan.actions:
            self._tell(found)
            self.world = after(self.world, found)
            self._report(found)
        self._tell(found)
        self._report(found)

    def _tell(self, found):
        self.lines += [render_plan(found.plan)]

    def _report(self, found):
        results = tuple(ActionResult(action=each, result=Result.DONE) for each in found.plan.actions)
        writes = status_tenants(self.world, found.plan, Outcome(results=results), NOW)
        said = {(each.object.namespace, each.object.name): each.status for each in writes}
        for (namespace, name), status in sorted(said.items()):
            self.lines += [f"Tenant {namespace}/{name}: {self._short(status)}"]
            self.lines += [_condition(each) for each in status["conditions"]]
            self.lines += [""]
        self.world = replace(self.world, tenants=[self._with(each, said) for each in self.world.tenants])

    def _short(self, status):
        allowed = status.get("allowedAffinityClasses")
        shown = "all" if allowed is None else ", ".join(allowed) or "none"
        default = status.get("defaultAffinityClass", "none")
        return f"namespace {status.get('namespace', 'none')}; default {default}; allowed {shown}"

    def _with(self, each, said):
        status = said.get((each.namespace, each.name))
        return each if status is None else msgspec.structs.replace(each, status=msgspec.convert(status, TenantStatus))

    def show(self, namespace):
        told = text_of(self.world.values[namespace])
        self.lines += [f"values.yaml of Secret {namespace}/cozystack-values", ""]
        self.lines += [f"    {line}" for line in told.splitlines()] + [""]


def _condition(each):
    return f"  {each['type']}={each['status']} {each['reason']}: {each['message']}"


def adding(*tenants):
    return lambda world: replace(world, tenants=[*world.tenants, *tenants])


def changing(path, **given):
    """Change the spec of a tenant."""

    def change(world):
        fresh = kept(tenant(path, generation=2, **given))
        others = [each for each in world.tenants if each.own_namespace != fresh.own_namespace]
        (before,) = (each for each in world.tenants if each.own_namespace == fresh.own_namespace)
        return replace(world, tenants=[*others, msgspec.structs.replace(fresh, status=before.status)])

    return change


def deleting(name):
    return lambda world: replace(
        world, tenants=[deleted(each) if each.name == name else each for each in world.tenants]
    )


def told():
    story = Story(snapshot(secrets=[secret("cozy-system", PLATFORM)]))
    story.step(
        "Admin creates Tenant acme (defaultAffinityClass: dc1, allowed: [dc1, dc2])",
        change=adding(tenant("acme", "dc1", ["dc1", "dc2"], spec=SEED)),
    )
    story.show("tenant-acme")
    story.step("acme creates Tenant web, which says nothing", change=adding(tenant("acme/web")))
    story.show("tenant-acme-web")
    story.step(
        "web asks for gpu as well, past the webhook",
        change=changing("acme/web", default="gpu", allowed=["dc1", "gpu"]),
    )
    story.show("tenant-acme-web")
    story.step(
        "Admin withdraws dc1 from acme, whose default it is",
        change=changing("acme", default="dc1", allowed=["dc2"], spec=SEED),
    )
    story.step("Admin deletes acme while web is in it", change=deleting("acme"))
    story.step("acme deletes web", change=deleting("web"))
    return "\n".join(story.lines)


def test_the_flow_of_the_design_reads_as_it_should():
    path = HERE / "tenants.txt"
    if os.environ.get("NODEYARD_RENEW"):
        path.write_text(told())
    assert told() == path.read_text()
