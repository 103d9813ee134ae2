"""Made-up fleets in the wire form of the dashboard, for states that a cluster reaches seldom."""

from __future__ import annotations

import copy
from typing import Any

Json = dict[str, Any]
NOW = 1_797_000_000
"""The page shows ages by the server's clock, so the worlds never grow old."""
COLUMNS = ["name", "zone", "pool", "template", "class", "leaf", "profile", "state", "hue", "free", "since"]
HOSTILE = '<img src=x onerror="window.hacked=1">'
ZONES = ("eu-a", "eu-b", "eu-c")


def row(name: str, state: str = "claimed", since: int = 3600, free: float | None = None, **fields: str) -> list[Any]:
    hue = fields.get("hue", fields.get("template") or fields.get("pool") or fields.get("leaf") or "")
    keys = ("zone", "pool", "template", "class", "leaf", "profile")
    return [name, *(fields.get(key, "") for key in keys), state, hue, free, NOW - since]


def ref(kind: str, name: str, namespace: str = "", api_version: str = "v1") -> Json:
    return {"apiVersion": api_version, "kind": kind, "name": name} | ({"namespace": namespace} if namespace else {})


def template(name: str) -> Json:
    return ref("NodeTemplate", name, api_version="nyallocator.cybozu.io/v1")


def empty() -> Json:
    """A cluster without nodes, operators or anything to say."""
    return {
        "snapshot": {
            "seq": 1,
            "now": NOW,
            "cluster": {"name": "empty", "server": "https://127.0.0.1:6443", "version": "v1.36.0"},
            "viewer": {"name": "jane", "canApprove": True},
            "operators": [],
            "nodes": {"columns": COLUMNS, "rows": []},
            "attention": [],
            "plans": [],
            "rollouts": [],
            "places": {},
        },
        "history": {"from": NOW - 3600, "to": NOW, "columns": COLUMNS, "rows": [], "changes": []},
        "recorder": {"from": NOW - 3600, "to": NOW, "step": 60, "lanes": {}},
        "writes": {"total": 0, "writes": []},
        "actions": {},
        "approval": {},
        "search": [],
        "why": {},
        "whatif": {"plans": [], "gone": [], "markdown": "Nothing to do.", "warnings": []},
        "could-run": {"verdict": "No", "sentence": "There is no node.", "nodes": [], "total": 0, "byRequirement": {}},
    }


def operators() -> list[Json]:
    common = {"limit": "25,10%", "observe": False, "version": "0.1.0"}
    names = ("spares", "pools", "affinity", "clustertree", "profiles")
    return [
        {**common, "capability": name, "holder": f"nodeyard-7d9f-{name}_1f3a", "renewed": NOW - 1, "state": "Running"}
        for name in names
    ]


def fleet() -> list[list[Any]]:
    """114 nodes: spares, three templates, two pools, three leaves."""
    rows: list[list[Any]] = []
    shapes = (("web", "standard", 26), ("gpu", "gpu", 12), ("storage", "dense", 14))
    number = 0

    def zone() -> str:
        return ZONES[number % 3]

    for name, placement, size in shapes:
        for _ in range(size):
            number += 1
            fields = {"template": name, "class": placement, "zone": zone(), "hue": name}
            state = "claimed"
            if name == "storage" and number % 7 == 0:
                state = "releasing"
            if name == "web" and number in (5, 17):
                state = "notReady"
            profile = "nova-dpdk" if name == "gpu" else ""
            rows.append(row(f"rack{number % 6 + 1}-n{number:03}", state, 300 * number, profile=profile, **fields))
    for _ in range(22):
        number += 1
        rows.append(row(f"rack{number % 6 + 1}-n{number:03}", "spare", 90 * number, zone=zone()))
    for pool, size in (("workers", 16), ("ingress", 6)):
        for index in range(size):
            number += 1
            state = "draining" if pool == "workers" and index in (3, 4) else "claimed"
            state = "pending" if pool == "workers" and index > 13 else state
            name = f"prod-{pool}-{number:03}"
            rows.append(row(name, state, 500 * index + 60, pool=pool, zone=zone(), hue=pool, **{"class": "standard"}))
    for leaf, size, free in (("east", 8, 0.62), ("west", 6, 0.31), ("edge", 4, 0.08)):
        for index in range(size):
            state = "notReady" if leaf == "edge" and index == 0 else "mirrored"
            share = min(1.0, free + 0.09 * (index % 4))
            rows.append(row(f"{leaf}-worker-{index}", state, 7200, leaf=leaf, zone="remote", hue=leaf, free=share))
    return rows


def attention() -> list[Json]:
    return [
        {
            "kind": "HeldPlan",
            "severity": "warning",
            "object": template("storage"),
            "reason": "NeedsApproval",
            "message": "40 of 114 managed nodes would be released, more than the limit of 25 nodes and 10 %.",
            "since": NOW - 840,
            "link": {"view": "plan", "capability": "spares"},
        },
        {
            "kind": "SilentLeaf",
            "severity": "critical",
            "object": ref("Cluster", "edge", api_version="kosmos.io/v1alpha1"),
            "reason": "LeafUnreachable",
            "message": "Leaf cluster edge has not responded for 6 minutes; its state is unknown.",
            "since": NOW - 372,
            "link": {"view": "places", "leaf": "edge"},
        },
        {
            "kind": "Shortage",
            "severity": "warning",
            "object": template("gpu"),
            "reason": "NoSpareNodesFound",
            "message": "gpu has 12 of 16 nodes; no spare with cpu=large is left.",
            "since": NOW - 4100,
            "link": {},
        },
        {
            "kind": "StoppedRollout",
            "severity": "warning",
            "object": ref("ComputeProfile", "dpdk", "openstack", "nova.openstack.org/v1beta1"),
            "reason": "ProgressDeadlineExceeded",
            "message": "The rollout of profile dpdk has stopped at 5 of 12 nodes.",
            "since": NOW - 2000,
            "link": {"view": "rollouts"},
        },
        {
            "kind": "Unplaced",
            "severity": "warning",
            "object": ref("LatticeService", "reports", "shop", "lattice.dev/v1alpha1"),
            "reason": "NoPoolFits",
            "message": "No pool fits: pool workers lacks label disk=ssd.",
            "since": NOW - 9000,
            "link": {},
        },
    ]


def group(name: str, verb: str, kind: str, reason: str, message: str, total: int, **more: Any) -> Json:
    samples = [ref(kind, f"rack{index % 6 + 1}-n{index:03}") for index in range(1, min(total, 5) + 1)]
    base = {"id": name, "verb": verb, "kind": kind, "reason": reason, "message": message, "count": total}
    return base | {"disruption": "none", "nodes": 0, "samples": samples, "after": []} | more


def plans() -> list[Json]:
    return [
        {
            "capability": "spares",
            "key": "nodetemplates",
            "id": "668a8d15afa6",
            "held": {
                "id": "668a8d15afa6",
                "reason": "NeedsApproval",
                "message": "40 of 114 managed nodes would be disrupted, more than the limit of 25 nodes and 10 %.",
                "nodes": 40,
                "actions": 80,
                "groups": [
                    group("evict", "Evict", "Pod", "Evicting", "Evict the pods of nodes that leave storage.", 112)
                    | {"disruption": "evicts", "nodes": 40, "after": ["cordon"]},
                    group("release", "Patch", "Node", "Released", "Return nodes of storage to the spares.", 40)
                    | {"disruption": "releases", "nodes": 40, "after": ["evict"]},
                    group("cordon", "Patch", "Node", "Releasing", "Cordon nodes that leave storage.", 40),
                ],
            },
            "groups": [
                group("claim", "Patch", "Node", "Claimed", "Claim spares for web, which lacks 3.", 3),
                group("update", "Patch", "Node", "Updated", "Restore labels and taints as web says.", 7)
                | {"after": ["claim"]},
            ],
            "blocked": [
                {
                    "reason": "SelectorMismatch",
                    "message": "The selector wants cpu=large.",
                    "count": 18,
                    "samples": [ref("Node", "rack2-n061"), ref("Node", "rack3-n062")],
                },
                {
                    "reason": "NotReady",
                    "message": "The node is not Ready.",
                    "count": 2,
                    "samples": [ref("Node", "rack6-n005")],
                },
            ],
        },
        {
            "capability": "pools",
            "key": "prod/workers",
            "id": "12fdd975bf9b",
            "held": None,
            "groups": [
                group("roll", "Apply", "MachineDeployment", "PoolRolled", "Roll pool workers to v1.36.2.", 1)
                | {"disruption": "replaces", "nodes": 4, "after": ["template"]},
                group("template", "Create", "DockerMachineTemplate", "TemplateCreated", "Create the new template.", 1),
                group("options", "Patch", "Machine", "PoolMarkedForDeletion", "Set drain options.", 5)
                | {"after": ["roll"]},
            ],
            "blocked": [],
        },
        {
            "capability": "affinity",
            "key": "tenant-shop",
            "id": "4b173e367037",
            "held": None,
            "groups": [group("release", "Apply", "HelmRelease", "ReleaseApplied", "Write class gpu into releases.", 6)],
            "blocked": [],
        },
        *(
            {"capability": "profiles", "key": f"edpm-{n}", "id": f"{n:012x}", "held": None, "groups": [], "blocked": []}
            for n in range(30)
        ),
    ]


def actions(total: int = 40) -> Json:
    return {
        "total": total,
        "actions": [
            {
                "id": f"a{index}",
                "verb": "Patch",
                "object": ref("Node", f"rack{index % 6 + 1}-n{index:03}"),
                "message": f"Return rack{index % 6 + 1}-n{index:03} to the spares",
                "reason": "Released",
                "diff": [
                    {"path": "metadata.labels[nyallocator.cybozu.io/node-template]", "from": "storage"},
                    {"path": "metadata.labels[tier]", "from": "storage", "to": "spare"},
                    {"path": "spec.taints[node.cybozu.io/spare:NoSchedule]", "to": {"value": "true"}},
                ],
            }
            for index in range(1, total + 1)
        ],
    }


def approval() -> Json:
    return {
        "id": "668a8d15afa6",
        "nodes": 40,
        "actions": 80,
        "laterSteps": [
            "After the evictions, 40 nodes are reset and become spares.",
            "web then claims 3 of them; gpu may claim the 2 with cpu=large.",
        ],
        "pods": [
            *({"namespace": "shop", "name": f"cart-{index}", "budget": "shop/cart"} for index in range(6)),
            {"namespace": "data", "name": "postgres-0", "budget": "data/postgres"},
            *({"namespace": "batch", "name": f"report-{index}"} for index in range(4)),
        ],
        "budgets": [
            {"namespace": "shop", "name": "cart", "allowed": 2},
            {"namespace": "data", "name": "postgres", "allowed": 0},
        ],
        "truncated": True,
    }


def why_template() -> Json:
    failed = {2: ("NotReady", "Not Ready since 09:15"), 3: ("NotEmpty", "Runs pod shop/cart-7")}
    candidates = []
    for index in range(1, 43):
        name = f"rack{index % 6 + 1}-n{60 + index:03}"
        if index in (1, 5):
            taken = {"name": name, "isTaken": True, "reason": "Taken", "message": "Least used zone, then the name"}
            candidates.append(taken | {"failed": None})
            continue
        reason, message = failed.get(index % 5, ("SelectorMismatch", "Lacks cpu=large"))
        candidates.append({"name": name, "reason": reason, "message": message, "failed": reason})
    return {
        "object": template("gpu"),
        "answers": [
            {
                "by": "spares",
                "object": template("gpu"),
                "sentence": "gpu has 12 of 16 nodes, because no spare with cpu=large is left.",
                "reason": "NoSpareNodesFound",
                "since": NOW - 4100,
                "notes": [
                    {"reason": "Held", "message": "A plan of storage that would free 2 such nodes waits for approval."}
                ],
                "ladder": [
                    {"reason": "InvalidTemplate", "title": "The template is invalid", "state": "passed"},
                    {"reason": "Paused", "title": "The template is paused", "state": "passed"},
                    {"reason": "HighPriority", "title": "A template of higher priority waits", "state": "passed"},
                    {"reason": "NoSpareNodesFound", "title": "No spare that fits is left", "state": "decided"},
                    {"reason": "SufficientNodes", "title": "It has all its nodes", "state": "notReached"},
                ],
                "requirements": ["NotReady", "NotEmpty", "SelectorMismatch"],
                "candidates": candidates,
                "total": 42,
                "wouldChange": [
                    {"message": "Approve the plan that frees 2 nodes", "command": "nodeyard approve 668a8d15afa6"},
                    {
                        "message": "Ask for fewer nodes",
                        "command": 'kubectl patch nodetemplate gpu --type=merge -p \'{"spec":{"nodes":12}}\'',
                    },
                    {"message": "Add a Ready spare with cpu=large"},
                ],
            }
        ],
    }


def why_node(name: str) -> Json:
    return {
        "object": ref("Node", name),
        "answers": [
            {
                "by": "spares",
                "object": ref("Node", name),
                "sentence": f"{name} belongs to web since it was claimed.",
                "reason": "Kept",
                "since": NOW - 5000,
                "notes": [],
                "ladder": [],
                "requirements": [],
                "candidates": [],
                "total": 0,
                "wouldChange": [],
            }
        ],
    }


def recorder() -> Json:
    lanes: Json = {}
    step = 300
    reasons = {
        "spares": ("Claimed", "Updated", "Released"),
        "pools": ("PoolRolled", "PodEvicted", "NodeCordoned"),
        "affinity": ("ReleaseApplied", "NamespaceApplied"),
        "clustertree": ("NodeUpdated", "ResourcesChanged", "ConditionsChanged"),
        "profiles": ("ServiceReconfigured", "ConfigurationWritten"),
    }
    for order, (capability, names) in enumerate(reasons.items()):
        points = []
        for index in range(288):
            busy = (index * (7 + order) + order * 31) % 97
            level = 0 if busy > 40 else (40 - busy) // (3 + order)
            wave = max(0, 18 - abs(index - 60 - order * 40)) * 2
            writes = {name: (level + wave) // (place + 1) for place, name in enumerate(names)}
            point: Json = {"t": NOW - 86400 + index * step, "passes": 6 + busy % 9, "writes": writes}
            point |= {"brakes": int(index == 240 and order == 0), "approvals": 0, "errors": int(busy == 3)}
            point["marks"] = []
            if index == 100 and order in (0, 1):
                point["marks"].append({"type": "Leader", "message": f"{capability} is led by nodeyard-7d9f."})
            if index == 240 and order == 0:
                point["marks"].append({"type": "Brake", "message": "A plan that disrupts 40 nodes is held."})
            if index == 270 and order == 3:
                point["marks"].append({"type": "Contact", "message": "Leaf cluster edge stopped responding."})
            points.append(point)
        lanes[capability] = points
    return {"from": NOW - 86400, "to": NOW, "step": step, "lanes": lanes}


def writes() -> Json:
    entries = [
        {
            "t": NOW - 500 + index,
            "capability": "spares",
            "key": "nodetemplates",
            "verb": "Patch",
            "object": ref("Node", f"rack{index % 6 + 1}-n{index:03}"),
            "reason": "Claimed",
            "message": f"Claimed spare rack{index % 6 + 1}-n{index:03} for web, which lacked 3",
            "outcome": "Done" if index != 2 else "Conflict",
            "diff": [
                {"path": "metadata.labels[tier]", "from": "old", "to": "web"},
                {"path": "spec.taints[dedicated:NoExecute]", "to": {"value": "web"}},
            ],
        }
        for index in range(1, 13)
    ]
    return {"total": len(entries), "writes": entries}


def rollouts() -> list[Json]:
    pod = ref("Pod", "postgres-0", "data")
    return [
        {
            "capability": "pools",
            "kind": "Pool",
            "object": ref("LatticeCluster", "prod", api_version="lattice.dev/v1alpha1"),
            "done": 9,
            "total": 16,
            "state": "Rolling",
            "next": "Drain prod-workers-078, then replace its machine.",
            "message": "Pool workers rolls to v1.36.2.",
            "since": NOW - 3900,
            "blockers": [
                {
                    "object": pod,
                    "reason": "DrainTimeout",
                    "message": "The budget data/postgres allows no disruption; 1 of 1 pods is healthy.",
                    "since": NOW - 1500,
                    "waysOut": [
                        "Add a replica to StatefulSet data/postgres",
                        "kubectl delete pod -n data postgres-0",
                    ],
                }
            ],
        },
        {
            "capability": "profiles",
            "kind": "Profile",
            "object": ref("ComputeProfile", "dpdk", "openstack", "nova.openstack.org/v1beta1"),
            "done": 5,
            "total": 12,
            "state": "Stopped",
            "next": "",
            "message": "Node rack3-n030 does not report config hash 3f2a.",
            "since": NOW - 7000,
            "blockers": [
                {
                    "object": ref("Node", "rack3-n030"),
                    "reason": "ProgressDeadlineExceeded",
                    "message": "No report for 20 minutes.",
                    "since": NOW - 2000,
                    "waysOut": ["Check the operator of nova on rack3-n030"],
                }
            ],
        },
        {
            "capability": "clustertree",
            "kind": "Leaf",
            "object": ref("Cluster", "west", api_version="kosmos.io/v1alpha1"),
            "done": 6,
            "total": 6,
            "state": "Synced",
            "next": "Renew leases every 10 s.",
            "message": "All nodes of leaf west are mirrored.",
            "since": NOW - 300,
            "blockers": [],
        },
        {
            "capability": "pools",
            "kind": "Drain",
            "object": ref("Node", "prod-workers-079"),
            "done": 3,
            "total": 11,
            "state": "Draining",
            "next": "Evict shop/cart-2.",
            "message": "8 pods are left.",
            "since": NOW - 240,
            "blockers": [],
        },
    ]


def places() -> Json:
    def leaf(name: str, state: str, age: int, used: float, **contact: Any) -> Json:
        gib = 1024**3
        sizes = (("cpu", 512, "cores"), ("memory", 2048 * gib, "bytes"), ("pods", 880, ""), ("nvidia.com/gpu", 16, ""))
        return {
            "name": name,
            "capability": "clustertree",
            "resources": [
                {
                    "resource": resource,
                    "base": base,
                    "taken": base * used,
                    "reserved": base * 0.08,
                    "free": base * (0.92 - used),
                    "unit": unit,
                }
                for resource, base, unit in sizes
            ],
            "leaseAgeSeconds": age,
            "contact": {"state": state, **contact},
        }

    bad = [ref("Pod", f"legacy-{index}", "tenant-shop") for index in range(3)]
    refusal = {"t": NOW - 700, "object": ref("Pod", "probe-x7k", "tenant-shop")}
    standard = {"name": "standard", "nodes": 48, "pods": 210, "isDefault": True}
    return {
        "leaves": [
            leaf("east", "LeafReachable", 4, 0.3, message="Leaf cluster east responds."),
            leaf("west", "LeafReachable", 6, 0.58),
            leaf("edge", "LeafUnreachable", 372, 0.81, message="Timeout after 5 s.", since=NOW - 372),
        ],
        "tenants": [
            {
                "name": "shop",
                "classes": [standard, {"name": "gpu", "nodes": 12, "pods": 24, "violators": bad}],
                "refusals": [
                    refusal | {"message": "Pod probe-x7k selects no class that tenant shop allows: gpu, standard."}
                ],
            },
            {"name": "data", "classes": [standard | {"pods": 77}, {"name": "dense", "nodes": 14, "pods": 40}]},
            {"name": "sandbox", "classes": [{"name": "spot", "nodes": 0, "pods": 0, "isDefault": True}]},
        ],
    }


def could_run() -> Json:
    requirements = ["Ready", "Tolerates taints", "Class gpu", "Resources"]
    nodes = []
    for index in range(1, 31):
        taken = index in (4, 9)
        failed = None if taken else requirements[index % 4]
        nodes.append({"name": f"rack{index % 6 + 1}-n{26 + index:03}", "isTaken": taken, "failed": failed})
        nodes[-1]["message"] = "It would run here" if taken else f"Fails: {failed}"
    return {
        "verdict": "Yes",
        "sentence": "The pod could run on 2 of 114 nodes.",
        "requirements": requirements,
        "nodes": nodes,
        "total": 114,
        "byRequirement": {"Ready": 3, "Tolerates taints": 31, "Class gpu": 70, "Resources": 8},
    }


def what_if() -> Json:
    new = group("claim-new", "Patch", "Node", "Claimed", "Claim spares for gpu, which lacks 8.", 8) | {"isNew": True}
    side = group("web-wait", "Patch", "Node", "MovedOut", "Move 2 nodes from web to gpu.", 2)
    side |= {"disruption": "releases", "nodes": 2, "isNew": True}
    known = group("update", "Patch", "Node", "Updated", "Restore labels and taints as web says.", 7)
    plan = {"capability": "spares", "key": "nodetemplates", "id": "a0e899e92d7f", "held": None, "blocked": []}
    return {
        "plans": [plan | {"groups": [side, new, known]}],
        "gone": [plan | {"groups": [group("claim", "Patch", "Node", "Claimed", "Claim spares for web.", 3)]}],
        "markdown": "### Plan\n\n- **releases** 2 Nodes: Move 2 nodes from web to gpu.\n",
        "warnings": ["spec.foo is unknown and ignored."],
    }


def history() -> Json:
    """An hour in which the 26 nodes of web were claimed one by one."""
    rows = fleet()
    spare = [
        [*each[:3], "", "", *each[5:7], "spare", "", None, each[10]] if each[3] == "web" else each for each in rows
    ]
    claimed = [each for each in rows if each[3] == "web"]
    changes = [[NOW - 3500 + 120 * index, each] for index, each in enumerate(claimed)]
    return {"from": NOW - 3600, "to": NOW, "columns": COLUMNS, "rows": spare, "changes": changes}


def small() -> Json:
    """A fleet in which every view has something to show."""
    world = empty()
    world["snapshot"] |= {
        "cluster": {"name": "prod-eu", "server": "https://10.0.0.1:6443", "version": "v1.36.0"},
        "operators": operators(),
        "nodes": {"columns": COLUMNS, "rows": fleet()},
        "attention": attention(),
        "plans": plans(),
        "rollouts": rollouts(),
        "places": places(),
    }
    world |= {
        "history": history(),
        "recorder": recorder(),
        "writes": writes(),
        "actions": actions(),
        "approval": approval(),
        "whatif": what_if(),
        "could-run": could_run(),
        "search": [
            {"kind": "NodeTemplate", "apiVersion": "nyallocator.cybozu.io/v1", "name": "gpu", "capability": "spares"},
            {"kind": "Node", "apiVersion": "v1", "name": "rack1-n030"},
            {"kind": "Pod", "apiVersion": "v1", "namespace": "shop", "name": "gpu-worker-1"},
        ],
        "why": {"NodeTemplate": why_template()},
    }
    return world


def large(total: int = 10_000) -> Json:
    """10,000 nodes in 24 templates and three zones, a tenth of them spare."""
    world = small()
    rows = []
    for index in range(total):
        name = f"rack{index // 40:03}-n{index:05}"
        if index % 10 == 0:
            rows.append(row(name, "spare", index, zone=ZONES[index % 3]))
            continue
        owner = f"farm-{index * 7 % 24:02}"
        state = "notReady" if index % 331 == 0 else "releasing" if index % 97 == 0 else "claimed"
        rows.append(row(name, state, index, zone=ZONES[index % 3], template=owner, hue=owner))
    world["snapshot"]["nodes"] = {"columns": COLUMNS, "rows": rows}
    world["history"] |= {"rows": rows, "changes": []}
    return world


def hostile() -> Json:
    """The fleet with markup in every text: names, messages, reasons, diffs."""
    kept = {"state", "severity", "view", "disruption", "verdict", "verb"}

    def spoil(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: item if name in kept else spoil(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [spoil(item, key) for item in value]
        if isinstance(value, str) and value and key not in ("columns", "id", "after", "requirements"):
            return f"{HOSTILE} {value}"
        return value

    world = copy.deepcopy(small())
    for part in ("attention", "rollouts", "places", "plans"):
        world["snapshot"][part] = spoil(world["snapshot"][part])
    for each in world["snapshot"]["nodes"]["rows"]:
        each[0] = f"{HOSTILE} {each[0]}"
        for column in ("template", "hue"):
            at = COLUMNS.index(column)
            each[at] = each[at] and f"{HOSTILE} {each[at]}"
    world["snapshot"]["cluster"]["name"] = HOSTILE
    for part in ("writes", "actions", "approval", "could-run", "whatif"):
        world[part] = spoil(world[part])
    world["search"] = [item | {"name": f"{HOSTILE} {item['name']}"} for item in world["search"]]
    world["why"] = {"NodeTemplate": spoil(world["why"]["NodeTemplate"])}
    return world
