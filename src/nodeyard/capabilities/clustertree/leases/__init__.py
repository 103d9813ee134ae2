"""Node leases: a leaf is asked whether it lives, and the leases of its nodes in the root are renewed while it does.

    loop ──a keeper for each leaf──▶ keeper ──every 10 s──▶ probe ──answer──▶ Health ──may renew──▶ node_lease ──▶ root
                                        └──Finding──▶ the planner, the metrics

It is no plan: what is decided here is whether to repeat, and it must be on time whatever is being planned. So it runs
on the lease thread with connections of its own, and touches nothing but Leases in `kube-node-lease`.
"""
