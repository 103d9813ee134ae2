import pytest

from nodeyard.apiserver.controllers import NAMES, chosen


def test_a_star_means_all():
    assert chosen(["*"]) == list(NAMES)


def test_a_minus_takes_one_out():
    assert "namespace-controller" not in chosen(["*", "-namespace-controller"])
    assert len(chosen(["*", "-namespace-controller"])) == len(NAMES) - 1


def test_names_alone_mean_only_these():
    assert chosen(["garbage-collector-controller"]) == ["garbage-collector-controller"]
    assert chosen([]) == []


def test_a_name_wins_over_its_minus():
    assert chosen(["-disruption-controller", "disruption-controller"]) == ["disruption-controller"]


def test_the_short_names_of_old_still_work():
    assert chosen(["nodelifecycle", "-namespace", "garbagecollector"]) == [
        "garbage-collector-controller",
        "node-lifecycle-controller",
    ]


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match='"frobnicator" is not in the list of known controllers'):
        chosen(["*", "frobnicator"])
