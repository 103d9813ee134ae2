"""Options of `nodeyard dashboard` and dashboard options of `nodeyard run`."""

import pytest

from nodeyard.app.dashboard.server import DashboardOptions
from nodeyard.cli.dashboard import parse_loopback
from nodeyard.cli.failures import UsageFailure
from nodeyard.cli.run import parse_dashboard
from nodeyard.process.certificates import Authority
from nodeyard.runtime.health import Address


@pytest.fixture
def pair(tmp_path):
    Authority().server("dash.example").write(tmp_path, "tls")
    return tmp_path / "tls.crt", tmp_path / "tls.key"


@pytest.mark.parametrize("bind", ["127.0.0.1:0", "localhost:8090", "[::1]:8090", "8090"])
def test_a_local_page_is_served_on_the_loopback_address(bind):
    assert parse_loopback(bind).port in (0, 8090)


@pytest.mark.parametrize("bind", ["0.0.0.0:8090", ":8090", "192.0.2.1:8090", "[::]:8090", "dash.example:80"])
def test_a_local_page_is_not_served_to_other_machines(bind):
    with pytest.raises(UsageFailure, match="acts with your kubeconfig"):
        parse_loopback(bind)


def test_the_operators_page_is_off_by_default():
    assert parse_dashboard("0", None, None, None) is None


def test_the_operators_page_needs_no_certificate_on_the_loopback_address():
    assert parse_dashboard("127.0.0.1:8090", None, None, None) == DashboardOptions(Address("127.0.0.1", 8090))


def test_the_operators_page_beyond_the_loopback_address_needs_tls(pair):
    with pytest.raises(UsageFailure, match="--dashboard-cert and --dashboard-key"):
        parse_dashboard(":8090", None, None, None)
    options = parse_dashboard(":8090", *pair, None)
    assert options.tls.certificate == pair[0]


def test_options_that_do_not_fit_together_are_named(pair, tmp_path):
    certificate, key = pair
    with pytest.raises(UsageFailure, match="give both or none"):
        parse_dashboard(":8090", certificate, None, None)
    with pytest.raises(UsageFailure, match="--dashboard-client-ca: also give --dashboard-cert"):
        parse_dashboard("127.0.0.1:8090", None, None, certificate)
    with pytest.raises(UsageFailure, match="cannot be used with"):
        parse_dashboard(":8090", key, certificate, None)
    (tmp_path / "empty").touch()
    with pytest.raises(UsageFailure, match="empty is not a CA"):
        parse_dashboard(":8090", certificate, key, tmp_path / "empty")
