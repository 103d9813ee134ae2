"""Admission webhook server for tests: serves configured responses over TLS and records requests."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

from aiohttp import web

from nodeyard.apiserver.certificates import server_context
from nodeyard.process.certificates import Authority
from nodeyard.testing.loop_thread import LoopThread
from nodeyard.testing.ports import LOOPBACK

AdmissionRequest = dict[str, Any]
Answer = Callable[[AdmissionRequest], AdmissionRequest]


def allow(_request: AdmissionRequest) -> AdmissionRequest:
    return {"allowed": True}


def deny(message: str, code: int = 0) -> Answer:
    status: AdmissionRequest = {"message": message} | ({"code": code} if code else {})
    return lambda _request: {"allowed": False, "status": status}


def patch(*operations: AdmissionRequest) -> Answer:
    """Allow with a JSON patch."""
    encoded = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda _request: {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


def webhook(
    hooks: WebhookServer, namespace: str, path: str = "/", name: str = "one.example.com", **more: Any
) -> AdmissionRequest:
    """Return an entry of a webhook configuration, by default for the ConfigMaps of a namespace."""
    return {
        "name": name,
        "clientConfig": hooks.client_config(path),
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }


class WebhookServer(LoopThread):
    """Each path is a webhook: `answer("/a", deny("no"))`. `names` are further names of its certificate."""

    def __init__(self, *names: str) -> None:
        super().__init__("webhooks")
        self._authority = Authority()
        self._names = names
        self._answers: dict[str, Answer] = {}
        self._silent: set[str] = set()
        self._runner: web.ServerRunner
        self.requests: list[AdmissionRequest] = []
        self.paths: list[str] = []
        """The path of each request."""
        self.port = 0
        self.url = ""

    @property
    def ca_bundle(self) -> str:
        return base64.b64encode(self._authority.pem).decode()

    def answer(self, path: str, answer: Answer) -> None:
        self._answers[path] = answer

    def keep_silent(self, path: str) -> None:
        """Accept requests and never answer them."""
        self._silent.add(path)

    def clear_requests(self) -> None:
        """Forget recorded requests."""
        self.requests.clear()
        self.paths.clear()

    def client_config(self, path: str) -> AdmissionRequest:
        return {"url": f"{self.url}{path}", "caBundle": self.ca_bundle}

    async def _start(self) -> None:
        self._runner = web.ServerRunner(web.Server(self._handle, access_log=None), shutdown_timeout=0.5)
        await self._runner.setup()
        context = server_context(self._authority, LOOPBACK, *self._names)
        await web.TCPSite(self._runner, LOOPBACK, 0, ssl_context=context).start()
        self.port = self._runner.addresses[0][1]
        self.url = f"https://{LOOPBACK}:{self.port}"

    async def _stop(self) -> None:
        await self._runner.cleanup()

    async def _handle(self, incoming: web.BaseRequest) -> web.StreamResponse:
        review = json.loads(await incoming.read())
        request: AdmissionRequest = review["request"]
        self.requests.append(request)
        self.paths.append(incoming.path)
        if incoming.path in self._silent:
            await asyncio.Event().wait()
        answer = self._answers.get(incoming.path, allow)(request)
        body = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "response": {"uid": request["uid"], **answer},
        }
        return web.json_response(body)
