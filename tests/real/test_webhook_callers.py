"""An API server that presents a client certificate to webhooks, configured by docs/admission.md."""

import asyncio
import json
from dataclasses import replace

import pytest
from tests.builders import labels, rule_webhooks
from tests.builders.operators import fleet as fleet_on
from tests.builders.operators import operator, until
from tests.builders.reviews import question

from nodeyard.client.errors import AdmissionDenied
from nodeyard.process.certificates import Authority
from nodeyard.testing.controlplane import ControlPlane
from nodeyard.testing.operators import LOCAL_WEBHOOKS

pytestmark = pytest.mark.real

CONFIGURATION = "apiserver.config.k8s.io/v1"
# A second control plane starts, perhaps on a busy machine.
PATIENCE = 60.0
PLUGINS = ("ValidatingAdmissionWebhook", "MutatingAdmissionWebhook")


@pytest.fixture
def caller(tmp_path):
    """Files for the API server; the authority that signed its certificate is beside them, and in one file
    each that certificate and one of the same name by another authority, with their keys."""
    authority = Authority("api-servers")
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    pair = authority.client("kube-apiserver")
    pair.write(tmp_path, "webhooks")
    for name, each in (("caller", pair), ("forged", Authority("others").client("kube-apiserver"))):
        (tmp_path / f"{name}.pem").write_bytes(each.certificate + each.key)
    user = {"client-certificate": str(tmp_path / "webhooks.crt"), "client-key": str(tmp_path / "webhooks.key")}
    kubeconfig = {"apiVersion": "v1", "kind": "Config", "users": [{"name": "*", "user": user}]}
    (tmp_path / "webhooks.kubeconfig").write_text(json.dumps(kubeconfig))
    configured = {
        "apiVersion": CONFIGURATION,
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(tmp_path / "webhooks.kubeconfig"),
    }
    plugins = [{"name": name, "configuration": configured} for name in PLUGINS]
    admission = {"apiVersion": CONFIGURATION, "kind": "AdmissionConfiguration", "plugins": plugins}
    (tmp_path / "admission.json").write_text(json.dumps(admission))
    return tmp_path


@pytest.mark.timeout(240)
async def test_only_the_api_server_is_answered_by_its_certificate(caller):
    flag = f"--admission-control-config-file={caller / 'admission.json'}"
    trusted = {"client_authority": caller / "ca.crt", "client_names": ("kube-apiserver",)}
    with ControlPlane(arguments={"kube-apiserver": [flag]}) as plane:
        webhooks = replace(LOCAL_WEBHOOKS, **trusted)
        async with (
            fleet_on(plane.kubeconfig) as fleet,
            operator(plane.kubeconfig, capability=rule_webhooks.GUARDED, webhooks=webhooks) as running,
        ):
            await until(lambda: rule_webhooks.is_registered(fleet.client), "it is registered", PATIENCE)

            async def is_asked():
                try:
                    await fleet.client.create(labels.RULES, labels.rule("probe", "forbidden"), dry_run=True)
                except AdmissionDenied as refused:
                    return "is not a team" in str(refused)
                return False

            await until(is_asked, "the API server is answered", PATIENCE)
            asked = running.ports["webhooks"], "/validate/labels/rules", question(object=labels.rule("probe", "blue"))
            for client in (None, caller / "forged.pem"):
                assert await asyncio.to_thread(rule_webhooks.received, *asked, client=client) == b""
            answer = await asyncio.to_thread(rule_webhooks.received, *asked, client=caller / "caller.pem")
            assert answer.startswith(b"HTTP/1.1 200 "), "the same question is answered with the certificate"
