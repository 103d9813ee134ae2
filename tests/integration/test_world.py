"""The fixture `world`: simulated nodes on whichever server a test runs on."""

from __future__ import annotations

from nodeyard.testing.session import Session

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def is_ready(http: Session, name: str) -> bool:
    answer = http.get(f"/api/v1/nodes/{name}")
    conditions = answer.json.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


async def test_nodes_register_become_ready_and_renew_their_leases(api, world):
    http = Session(api.url, api.authority.pem, api.admin_token)

    await world.add_nodes(3, zones=["a", "b"], prefix="worldly")
    await world.wait_until_settled()

    names = [item["metadata"]["name"] for item in http.get("/api/v1/nodes").json["items"]]
    ours = [name for name in names if name.startswith("worldly")]
    assert len(ours) == 3
    assert all(is_ready(http, name) for name in ours)
    assert all(http.get(f"{LEASES}/{name}").status == 200 for name in ours)
    for name in ours:
        http.delete(f"/api/v1/nodes/{name}")
        http.delete(f"{LEASES}/{name}")
