"""What a plan was made without is said, and not on stdout."""

from types import SimpleNamespace

from nodeyard.app.inspection import Unreached
from nodeyard.cli.cluster import tell_unreached


def test_clusters_that_were_not_reached_are_named_on_stderr(capsys):
    tell_unreached(SimpleNamespace(unreached=[Unreached("pools", "prod", "no answer in 5 s")]))
    out, err = capsys.readouterr()
    assert (out, err) == ("", "pools: cluster prod could not be reached: no answer in 5 s\n")
