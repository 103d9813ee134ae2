"""A class that is removed from a tenant's list while applications have it."""

from tests.builders.affinity_env import unique


def test_withdrawing_a_class_in_use_warns_and_names_the_applications(affinity):
    used, free = (affinity.affinity_class(unique(word), nodeSelector={"zone": word}) for word in ("used", "free"))
    affinity.definition("Ledger")
    tenant = unique("withdrawn")
    home = affinity.tenant(tenant, defaultAffinityClass=used, allowedAffinityClasses=[used, free])
    affinity.application_release("Ledger", home, "books")

    def without(name):
        kept = [each for each in (used, free) if each != name]
        spec = {"allowedAffinityClasses": kept, "defaultAffinityClass": kept[0]}
        return affinity.patch("Tenant", tenant, {"spec": spec}, "tenant-root", query={"dryRun": "All"})

    told = affinity.wait_until(lambda: without(used).warnings, "the withdrawal of a class in use warns")

    assert any(used in each and "books" in each for each in told)
    answer = without(free)
    assert (answer.status, answer.warnings) == (200, [])
