"""The certificate that is presented during a rotation, and the CAs that are trusted meanwhile."""

from datetime import UTC, datetime, timedelta

import pytest

from nodeyard.admission.certificates import (
    MAX_AUTHORITIES,
    BadCertificate,
    CertificateRotation,
    IssuedCertificate,
    authorities_in,
    choose,
    is_published,
)

HOST = "127.0.0.1"
VALID = timedelta(days=90)
NOW = datetime.now(UTC)


def first(*names):
    return CertificateRotation.first(names or (HOST,), VALID, NOW)


def renewed(issues, host=HOST, *, is_settled=True, now=NOW):
    return issues.renew(host, VALID, now, is_settled=is_settled)


def trusting(*issues):
    return [frozenset(issue.authority for issue in issues)]


def chosen(issues, *, published, is_settled=False, host=HOST, now=NOW):
    return choose(issues, host, is_settled=is_settled, published=published, now=now)


def test_an_issued_certificate_is_read_back_as_it_was_made():
    issue = IssuedCertificate.make([HOST, "nodeyard-pools.nodeyard-system.svc"], VALID, NOW)

    assert IssuedCertificate.read(issue.pair.certificate, issue.pair.key) == issue
    assert issue.covers(HOST)
    assert issue.covers("nodeyard-pools.nodeyard-system.svc")
    assert not issue.covers("elsewhere")
    assert abs(issue.expires - (NOW + VALID)) < timedelta(minutes=5)


@pytest.mark.parametrize("chain", [b"", b"rubbish", first().newest.authority], ids=["nothing", "rubbish", "half"])
def test_malformed_data_is_no_issued_certificate(chain):
    with pytest.raises(BadCertificate):
        IssuedCertificate.read(chain, b"")


def test_it_is_due_near_its_end_or_for_a_new_name():
    issues = first()

    assert not issues.is_due(HOST, timedelta(days=30), NOW)
    assert issues.is_due(HOST, timedelta(days=30), NOW + timedelta(days=61))
    assert issues.is_due("elsewhere", timedelta(days=30), NOW)


def test_the_next_certificate_has_all_names_and_keeps_both_authorities():
    before = first()
    after = renewed(before, "elsewhere")

    assert after.newest.names == {HOST, "elsewhere"}
    assert after.previous == before.newest
    assert authorities_in(after.bundle) == {before.newest.authority, after.newest.authority}


def test_an_untrusted_certificate_does_not_displace_the_trusted_one():
    trusted = first()
    twice = renewed(renewed(trusted), is_settled=False)

    assert twice.previous == trusted.newest
    assert len(twice.authorities) == 3


def test_authorities_go_when_they_have_expired_and_never_pile_up():
    issues = first()
    for _ in range(MAX_AUTHORITIES + 2):
        issues = renewed(issues)
    assert len(issues.authorities) == MAX_AUTHORITIES
    assert len(renewed(issues, now=NOW + VALID + timedelta(days=1)).authorities) == 1


def test_the_first_is_presented_at_once():
    issues = first()

    assert chosen(issues, published=[]) == issues.newest


def test_the_old_one_is_presented_until_the_new_one_is_trusted_everywhere_and_for_a_while():
    issues = renewed(first())
    old, new = issues.previous, issues.newest

    assert chosen(issues, published=trusting(old)) == old
    assert chosen(issues, published=trusting(old, new)) == old
    assert chosen(issues, published=trusting(old, new), is_settled=True) == new


def test_the_old_one_is_of_no_use_when_it_has_expired_or_lacks_the_name():
    issues = renewed(first(), "elsewhere")
    published = trusting(issues.previous)

    assert chosen(issues, published=published, now=NOW + VALID + timedelta(days=1)) == issues.newest
    assert chosen(issues, published=published, host="elsewhere") == issues.newest


def test_where_neither_is_trusted_the_new_one_is_presented():
    issues = renewed(first())

    assert chosen(issues, published=[frozenset()]) == issues.newest
    assert chosen(issues, published=[]) == issues.newest


def test_published_means_in_every_bundle():
    issue = first().newest

    assert is_published(issue, trusting(issue))
    assert not is_published(issue, [*trusting(issue), frozenset()])
    assert not is_published(issue, [])
    assert authorities_in(b"rubbish") == frozenset()
