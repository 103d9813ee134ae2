"""A control plane changes by one machine at a time."""

from nodeyard.sim.machines.control_planes import Step, machine_names, next_step, status


def control_plane(replicas=1, version="v1.35.0"):
    template = {"spec": {"infrastructureRef": {"name": "t"}}}
    return {
        "metadata": {"name": "cp", "uid": "u", "generation": 2, "labels": {"cluster.x-k8s.io/cluster-name": "c"}},
        "spec": {"replicas": replicas, "version": version, "machineTemplate": template},
    }


def machine(name, version="v1.35.0", *, is_ready=True, is_leaving=False):
    status = "True" if is_ready else "False"
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if is_leaving else {}
    return {
        "metadata": {"name": name, **gone},
        "spec": {"version": version},
        "status": {"conditions": [{"type": type, "status": status} for type in ("Ready", "Available")]},
    }


def test_machines_come_one_after_the_other():
    plane = control_plane(3)
    first, second, _ = machine_names(plane)
    assert next_step(plane, []) == Step(create=first)
    assert next_step(plane, [machine(first, is_ready=False)]) == Step()
    assert next_step(plane, [machine(first)]) == Step(create=second)


def test_a_new_version_replaces_machines_one_after_the_other():
    old, new = control_plane(1), control_plane(1, "v1.36.0")
    (before,), (after,) = machine_names(old), machine_names(new)
    assert before != after
    assert next_step(new, [machine(before)]) == Step(create=after)
    assert next_step(new, [machine(before), machine(after, is_ready=False)]) == Step()
    assert next_step(new, [machine(before), machine(after)]) == Step(delete=before)
    assert next_step(new, [machine(before, is_leaving=True), machine(after)]) == Step()
    assert next_step(new, [machine(after)]) == Step()


def test_no_machine_is_replaced_while_it_is_held():
    plane = control_plane(1, "v1.36.0")
    assert next_step(plane, [machine("cp-old-0")], is_held=True) == Step()
    assert next_step(control_plane(1), [], is_held=True) == Step(create=machine_names(control_plane(1))[0])


def test_too_many_machines_go():
    names = machine_names(control_plane(3))
    assert next_step(control_plane(1), [machine(name) for name in names]) == Step(delete=names[1])


def test_the_reported_version_is_the_lowest_and_counts_are_of_all_machines():
    plane = control_plane(1, "v1.36.0")
    (new,) = machine_names(plane)
    told, seen = status(plane, [machine("old", "v1.9.0"), machine(new, "v1.36.0")], is_initialized=True)
    assert (told["version"], told["replicas"], told["upToDateReplicas"]) == ("v1.9.0", 2, 1)
    assert told["initialization"] == {"controlPlaneInitialized": True}
    assert told["observedGeneration"] == 2
    assert {one.type: one.holds for one in seen} == {"Initialized": True, "Available": True, "RollingOut": True}
