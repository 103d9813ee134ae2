"""The sixth capability with webhooks; the answer to a LabelRule depends on its team.

forbidden   denied with a message                 odd       admitted with a warning
crowded     denied while nodes follow the rule    broken    the review raises
(none)      the mutating webhook makes it `unset`
"""

import http.client
import socket
import ssl
from dataclasses import replace
from urllib.parse import urlsplit

from tests.builders import labels

from nodeyard.admission import configurations
from nodeyard.client.errors import NotFound
from nodeyard.runtime.capability import Admission
from nodeyard.runtime.webhooks import Webhook, WebhookRule, allowed, denied, patched
from nodeyard.testing.rest import RestError

VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
GONE = 404
CONFIGURATIONS = configurations.RESOURCES
NAME = "nodeyard-labels"
SECRET = "/api/v1/namespaces/nodeyard-system/secrets/nodeyard-webhook-certificates"
RULES = f"/apis/{labels.API_VERSION}/labelrules"


def judge(review, view):
    if review.operation == "DELETE":
        return _judge_deletion(review, view)
    team = review.object["spec"].get("team", "")
    if team == "forbidden":
        return denied(f'LabelRule {review.name}: spec.team: "forbidden" is not a team; choose another')
    if team == "broken":
        raise ValueError("the reviewer cannot bear this team")
    return allowed(f"spec.team: {team} is an odd team") if team == "odd" else allowed()


def _judge_deletion(review, view):
    nodes = view.indexed("Node", "rule", review.name)
    is_crowded = review.old_object["spec"].get("team") == "crowded"
    return denied(f"{len(nodes)} nodes follow {review.name}") if nodes and is_crowded else allowed()


def complete(review, _view):
    rule = review.object
    return (
        allowed() if rule.get("spec", {}).get("team") else patched({**rule, "spec": {**rule["spec"], "team": "unset"}})
    )


def validating(**options):
    rule = WebhookRule(labels.GROUP, ("labelrules",), operations=("CREATE", "UPDATE", "DELETE"))
    return Webhook("rules", rules=(rule,), review=judge, **options)


def mutating(**options):
    return Webhook(
        "teams", rules=(WebhookRule(labels.GROUP, ("labelrules",)),), review=complete, mutates=True, **options
    )


def guarded(*webhooks):
    return replace(labels.LABELS, admission=Admission(webhooks or (validating(), mutating())))


GUARDED = guarded()


# on the server


async def is_registered(client):
    try:
        return bool((await client.get(configurations.VALIDATING, NAME))["webhooks"])
    except NotFound:
        return False


def reviewed(response):
    """Return the sample that counts the validating webhook's responses of a kind."""
    return "nodeyard_webhook_reviews_total", {"webhook": "rules.labels.nodeyard.dev", "response": response}


def look(rest, path):
    """Return the stored object, or None."""
    try:
        return rest.get(path)
    except RestError as error:
        if error.status != GONE:
            raise
        return None


def discard(rest, *paths):
    for path in paths:
        try:
            rest.call("DELETE", path)
        except RestError as error:
            if error.status != GONE:
                raise


def discard_webhooks(rest):
    discard(rest, f"{VALIDATING}/{NAME}", f"{MUTATING}/{NAME}")


def registered_path(rest, capability="labels", path=VALIDATING):
    """Return the path at which the API server calls the first webhook of a capability."""
    (entry, *_) = rest.get(f"{path}/nodeyard-{capability}")["webhooks"]
    return urlsplit(entry["clientConfig"]["url"]).path


def ask(port, path, body, *, client=None, headers=None):
    """Send a request to a webhook that is not from the API server; return status and body. `client` is a file with a
    certificate and its key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if client is not None:
        context.load_cert_chain(client)
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=context)
    try:
        connection.request("POST", path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def received(port, path, body, *, client=None):
    """Return all bytes that a webhook sends back over TLS; none if it closes the connection first.

    A server that requires a client certificate closes it in one of several ways, some of them only at the client's next
    read or write; none is an answer. A refused connection and a silent server are errors.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if client is not None:
        context.load_cert_chain(client)
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}", "Connection: close", "", ""]
    found = b""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as plain:
        try:
            with context.wrap_socket(plain) as connection:
                connection.sendall("\r\n".join(lines).encode() + body)
                while chunk := connection.recv(65536):
                    found += chunk
        except (ssl.SSLError, ConnectionError):
            return found
    return found
