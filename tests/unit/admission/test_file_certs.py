"""Certificates that the user manages."""

import pytest

from nodeyard.admission.certificates import BadCertificate, FileCertificates
from nodeyard.process.certificates import Authority


@pytest.fixture
def folder(tmp_path):
    authority = Authority()
    authority.server("127.0.0.1").write(tmp_path, "tls")
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    return tmp_path


async def test_they_are_read_as_they_are(folder):
    served = await FileCertificates(folder).refresh([])

    assert served.pair.certificate == (folder / "tls.crt").read_bytes()
    assert served.bundle == (folder / "ca.crt").read_bytes()


async def test_they_are_read_again(folder):
    certificates = FileCertificates(folder)
    before = await certificates.refresh([])
    Authority().server("127.0.0.1").write(folder, "tls")

    assert (await certificates.refresh([])).pair != before.pair


async def test_without_an_authority_the_machine_of_the_api_server_is_trusted(folder):
    (folder / "ca.crt").unlink()

    assert (await FileCertificates(folder).refresh([])).bundle == b""


@pytest.mark.parametrize("name", ["tls.crt", "tls.key"])
async def test_a_file_that_is_missing_is_named(folder, name):
    (folder / name).unlink()

    with pytest.raises(BadCertificate, match=rf"{name}: cannot be read"):
        await FileCertificates(folder).refresh([])


async def test_a_file_that_is_no_certificate_is_named(folder):
    (folder / "tls.crt").write_text("rubbish")

    with pytest.raises(BadCertificate, match=r"tls\.crt: not a PEM certificate"):
        await FileCertificates(folder).refresh([])
