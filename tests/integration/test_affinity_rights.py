"""Every right of the generated role is used, and no other is needed."""

from __future__ import annotations

from tests.builders.affinity_env import GONE, ROOT, pod_body, unique
from tests.builders.rights import COUNTED, RENEWED

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.capabilities.affinity.watched import CLAIMS, OWNERS
from nodeyard.client.resources import NODES, PODS

ZONE = "topology.kubernetes.io/zone"
ADOPTING = "delete helmreleases.helm.toolkit.fluxcd.io"
"""Checked by the API server's admission of owner references."""
RARE = {COUNTED, RENEWED, ADOPTING}


def test_every_right_is_used_and_no_other_is_needed(audited, own_affinity_env):
    """Create and delete a tenant, its application, and pods with uncached owners."""
    affinity, audit = own_affinity_env, audited(AFFINITY)
    affinity.start()
    chosen = affinity.affinity_class(unique("class"), nodeSelector={ZONE: "here"})
    kind = affinity.definition(unique("store").title())
    tenant = unique("tenant")
    home = affinity.tenant(tenant, defaultAffinityClass=chosen)
    affinity.application_release(kind, home, "main")
    affinity.report(kind, home, "main")
    affinity.wait_for_condition(kind, "main", "Ready", "InstallSucceeded", home)
    for owner in (*OWNERS, NODES, PODS):
        reference = {
            "apiVersion": owner.api_version,
            "kind": owner.kind,
            "name": "unheard-of",
            "uid": "u",
            "controller": True,
        }
        affinity.post(pod_body(home, unique("pod-"), [reference]), dryRun="All")
    affinity.delete(kind, "main", home)
    # The real garbage collector discovers the new kind with a delay.
    affinity.delete(names.RELEASE_KIND, f"{kind.lower()}-main", home)
    affinity.wait_until(lambda: affinity.get(kind, "main", home) is None, "the application is gone")
    # Each deletion is denied until the operator's cache shows that it is empty.
    for gone in ((names.TENANT_KIND, tenant, ROOT), (names.DEFINITION_KIND, kind.lower())):
        affinity.wait_until(lambda gone=gone: affinity.delete(*gone).status in GONE, f"{gone} is gone")

    # The embedded server does not serve PersistentVolumeClaims.
    unserved = set() if affinity.api.is_real else {f"{verb} {CLAIMS.plural}" for verb in ("list", "watch")}
    assert audit.unused(RARE | unserved) == set()
    assert audit.forbidden() == set()
