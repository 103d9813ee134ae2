"""Every right of the generated role is used, and no other is needed."""

from __future__ import annotations

from tests.builders.estates import GONE, ROOT, pod_body, unique
from tests.builders.rights import COUNTED, RENEWED

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.capabilities.affinity.watched import CLAIMS, OWNERS
from nodeyard.client.resources import NODES, PODS

ZONE = "topology.kubernetes.io/zone"
ADOPTING = "delete helmreleases.helm.toolkit.fluxcd.io"
"""Asked for by the API server itself, where it checks who sets owner references."""
RARE = {COUNTED, RENEWED, ADOPTING}


def test_every_right_is_used_and_no_other_is_needed(audited, lone_estate):
    """The life of a tenant, of its application, and of pods whose owners are not known yet."""
    estate, audit = lone_estate, audited(AFFINITY)
    estate.start()
    chosen = estate.affinity_class(unique("class"), nodeSelector={ZONE: "here"})
    kind = estate.definition(unique("store").title())
    tenant = unique("tenant")
    home = estate.tenant(tenant, defaultAffinityClass=chosen)
    estate.released(kind, home, "main")
    estate.report(kind, home, "main")
    estate.told(kind, "main", "Ready", "InstallSucceeded", home)
    for owner in (*OWNERS, NODES, PODS):
        reference = {
            "apiVersion": owner.api_version,
            "kind": owner.kind,
            "name": "unheard-of",
            "uid": "u",
            "controller": True,
        }
        estate.post(pod_body(home, unique("pod-"), [reference]), dryRun="All")
    estate.delete(kind, "main", home)
    # The real garbage collector would take its time to learn of the new kind.
    estate.delete(names.RELEASE_KIND, f"{kind.lower()}-main", home)
    estate.until(lambda: estate.see(kind, "main", home) is None, "the application is gone")
    # Each goes when nothing is in it any more, and says so until the operator has heard of it too.
    for gone in ((names.TENANT_KIND, tenant, ROOT), (names.DEFINITION_KIND, kind.lower())):
        estate.until(lambda gone=gone: estate.delete(*gone).status in GONE, f"{gone} is gone")

    # The embedded server has no claims to watch.
    unserved = set() if estate.api.is_real else {f"{verb} {CLAIMS.plural}" for verb in ("list", "watch")}
    assert audit.needless(RARE | unserved) == set()
    assert audit.beyond() == set()
