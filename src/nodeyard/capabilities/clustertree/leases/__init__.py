"""Node leases: probes each leaf and, while it responds, renews the leases of its nodes in the root.

    loop ──one per leaf──▶ Keeper ──every 10 s──▶ probe ──▶ Liveness ──may_renew──▶ node_lease ──▶ root
                              └──LeafHealth──▶ planner, metrics

Renewals do not go through a plan: they repeat a decision and must be on time, whatever is being planned. So the loop
runs on the lease thread with its own connections, and writes nothing but Leases in `kube-node-lease`.
"""
