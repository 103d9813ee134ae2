"""Reaching a webhook: connections, certificates, services, and failures in the real server's words."""

import asyncio
import base64
import json
import socket
import ssl
from typing import Any

import pytest

from nodeyard.apiserver.resources import GroupResource

FAILED = 'failed calling webhook "h.example.com": '


async def test_connections_are_reused(cluster, server) -> None:
    cluster.hook(url=server.on("/ok", {}))
    for _ in range(5):
        await cluster.admit()
    assert len(server.asked) == 5
    assert len(server.connections) == 1


async def test_a_connection_that_was_closed_meanwhile_is_replaced(cluster, server) -> None:
    answered: list[int] = []

    async def serve_one_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Keeps the connection open after the answer, and closes it when the next request arrives on it."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        review = json.loads(await reader.readexactly(length))
        response = {"uid": review["request"]["uid"], "allowed": True}
        body = json.dumps({"kind": "AdmissionReview", "response": response}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        answered.append(length)
        await reader.read(1)
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.authority.issue_cert("127.0.0.1").configure_cert(context)
    async with await asyncio.start_server(serve_one_request, "127.0.0.1", 0, ssl=context) as listening:
        port = listening.sockets[0].getsockname()[1]
        cluster.hook(url=f"https://127.0.0.1:{port}/x")
        await cluster.admit()
        await cluster.admit()
        await cluster.client.close()
    assert len(answered) == 2


# connections


async def called(cluster) -> str:
    """Return the error without the part that every such message has."""
    error = await cluster.refusal()
    assert error.code == 500
    return error.message.removeprefix(f"Internal error occurred: {FAILED}failed to call webhook: ")


async def test_a_missing_webhook_is_named(cluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    cluster.hook(url=f"https://127.0.0.1:{port}/x")
    expected = f'Post "https://127.0.0.1:{port}/x?timeout=5s": dial tcp 127.0.0.1:{port}: connect: connection refused'
    assert await called(cluster) == expected


async def test_a_missing_webhook_may_be_ignored(cluster) -> None:
    cluster.hook(url="https://127.0.0.1:1/x", failurePolicy="Ignore")
    assert (await cluster.admit()).warnings == []


async def test_a_slow_webhook_times_out(cluster, server) -> None:
    hanging = asyncio.Event()

    async def hang(review: dict[str, Any]) -> dict[str, Any]:
        await hanging.wait()
        return {}

    url = server.on("/slow", hang)
    cluster.hook(url=url, timeoutSeconds=1)
    assert await called(cluster) == f'Post "{url}?timeout=1s": context deadline exceeded'
    hanging.set()


async def test_only_the_authority_of_the_bundle_is_trusted(cluster, server) -> None:
    url = f"https://127.0.0.1:{server.port_of_stranger}/ok"
    cluster.hook(url=url)
    unknown = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    assert await called(cluster) == f'Post "{url}?timeout=5s": {unknown}'


async def test_without_a_bundle_the_system_decides(cluster, server) -> None:
    cluster.hook(clientConfig={"url": server.on("/ok", {}), "caBundle": ""})
    assert (await called(cluster)).endswith("x509: certificate signed by unknown authority")


async def test_the_certificate_must_be_of_that_host(cluster, server) -> None:
    cluster.hook(url=f"https://127.0.0.1:{server.port_of_other_name}/ok")
    assert (await called(cluster)).endswith(
        "x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"
    )


async def test_plain_http_is_not_taken(cluster, server) -> None:
    cluster.hook(url=f"https://127.0.0.1:{server.port_without_tls}/ok")
    assert (await called(cluster)).endswith("http: server gave HTTP response to HTTPS client")


async def test_an_invalid_bundle_is_named(cluster, server) -> None:
    bundle = base64.b64encode(b"zzz").decode()
    cluster.hook(clientConfig={"url": server.on("/ok", {}), "caBundle": bundle})
    assert (await cluster.refusal()).message == (
        f"Internal error occurred: {FAILED}could not get REST client: unable to load root certificates: "
        "unable to parse bytes as PEM block"
    )


# services


def service(**more: Any) -> dict[str, Any]:
    return {"service": {"name": "hook", "namespace": "ns", "path": "/ok", **more}}


async def test_a_service_is_reached_where_the_options_say_and_proves_its_name(cluster, server) -> None:
    server.on("/ok", {})
    cluster.services.set("hook", "ns", ("127.0.0.1", server.port))
    cluster.hook(clientConfig=service())
    await cluster.admit()
    [(_, headers, _)] = server.asked
    assert headers["host"] == "hook.ns.svc:443"


async def test_a_service_with_a_certificate_of_another_name_is_refused(cluster, server) -> None:
    cluster.services.set("hook", "ns", ("127.0.0.1", server.port_of_other_name))
    cluster.hook(clientConfig=service())
    assert (await called(cluster)).endswith(
        "x509: certificate is not valid for any names, but wanted to match hook.ns.svc"
    )


@pytest.mark.parametrize(("port", "shown"), [(None, 443), (8443, 8443)])
async def test_a_missing_service_is_named(cluster, port: int | None, shown: int) -> None:
    cluster.hook(clientConfig=service(**({"port": port} if port else {})))
    expected = f'Post "https://hook.ns.svc:{shown}/ok?timeout=5s": service "hook" not found'
    assert await called(cluster) == expected


async def test_an_external_service_is_followed(cluster, server) -> None:
    server.on("/ok", {})
    spec = {"type": "ExternalName", "externalName": "127.0.0.1"}
    services = GroupResource("", "services")
    cluster.put(services, {"metadata": {"name": "hook", "namespace": "ns"}, "spec": spec})
    cluster.hook(clientConfig=service(port=server.port))
    await cluster.admit()
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"clusterIP": "None"}, 'cannot route to service with ClusterIP "None"'),
        ({"clusterIP": "10.0.0.1", "ports": [{"port": 80}]}, 'no service port 443 found for service "hook"'),
    ],
)
async def test_a_service_that_leads_nowhere_is_named(cluster, spec: dict[str, Any], why: str) -> None:
    services = GroupResource("", "services")
    cluster.put(services, {"metadata": {"name": "hook", "namespace": "ns"}, "spec": spec})
    cluster.hook(clientConfig=service())
    assert (await called(cluster)).endswith(why)
