"""Unreachable remote clusters are listed on stderr."""

from types import SimpleNamespace

from nodeyard.app.dry_planner import UnreachableCluster
from nodeyard.cli.cluster import warn_unreachable


def test_clusters_that_were_not_reached_are_named_on_stderr(capsys):
    warn_unreachable(SimpleNamespace(unreachable=[UnreachableCluster("pools", "prod", "no answer in 5 s")]))
    out, err = capsys.readouterr()
    assert (out, err) == ("", "pools: cluster prod is unreachable: no answer in 5 s\n")


def test_unreachable_clusters_of_other_capabilities_are_not_listed(capsys):
    lost = [UnreachableCluster(each, "prod", "no answer in 5 s") for each in ("pools", "clustertree")]
    warn_unreachable(SimpleNamespace(unreachable=lost), {"clustertree"})
    assert capsys.readouterr().err == "clustertree: cluster prod is unreachable: no answer in 5 s\n"
