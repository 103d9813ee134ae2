"""Random objects of four kinds, for walks that compare ownership with the real server's.

Three built-in kinds, and a custom one with lists and maps of every type that owners can share.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from nodeyard.apiserver.kinds.compiler import schema as built_in
from nodeyard.schema.compile import compile_schema
from nodeyard.schema.model import Schema

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}


def struct(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def keyed(item: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {
        "type": "array",
        "items": {**item, "required": [keys[0]]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
    }


WIDGET = struct(
    spec=struct(
        text=TEXT,
        size={"type": "integer"},
        either={"x-kubernetes-int-or-string": True},
        maybe={"type": "string", "nullable": True},
        defaulted={"type": "string", "default": "d"},
        parts=keyed(struct(name=TEXT, value=TEXT, tags=TEXTS, deep=struct(a=TEXT, b=TEXT)), "name"),
        ports=keyed(
            struct(port={"type": "integer"}, protocol={"type": "string", "default": "TCP"}, note=TEXT),
            "port",
            "protocol",
        ),
        tags=TEXTS,
        numbers={"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"},
        steps={"type": "array", "items": struct(run=TEXT)},
        whole={**struct(a=TEXT, b=struct(c=TEXT)), "x-kubernetes-map-type": "atomic"},
        labels={"type": "object", "additionalProperties": TEXT},
        objects={"type": "object", "additionalProperties": struct(x=TEXT, y=TEXT)},
        nested=struct(a=TEXT, b=struct(c=TEXT, d=TEXT)),
        free={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        half={**struct(known=struct(z=TEXT)), "x-kubernetes-preserve-unknown-fields": True},
        any={"x-kubernetes-preserve-unknown-fields": True},
        embedded={
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
    ),
    status=struct(phase=TEXT, conditions=keyed(struct(type=TEXT, status=TEXT), "type")),
)
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.ownership.nodeyard.dev"},
    "spec": {
        "group": "ownership.nodeyard.dev",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": WIDGET},
            }
        ],
    },
}


class Samples(ABC):
    """Random values of a kind, with few names and values, so that writes conflict."""

    path = api_version = kind = ""
    schema: Schema
    reset: dict[str, tuple[tuple[str, ...], ...]] = {"": ()}
    is_custom = False

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def one(self, *choices: Any) -> Any:
        return self.chance.choice(choices)

    def word(self) -> str:
        return self.chance.choice("abcd")

    def some(self, *choices: Any, at_least: int = 0, at_most: int = 3) -> list[Any]:
        return self.chance.sample(choices, self.chance.randint(at_least, min(at_most, len(choices))))

    def words(self) -> list[str]:
        return self.some(*"abcd")

    def texts(self) -> dict[str, str]:
        return {name: self.word() for name in self.words()}

    def members(self, **makers: Callable[[], Any] | tuple[float, Callable[[], Any]]) -> dict[str, Any]:
        """Choose each member with a probability of 0.4, or with its own."""
        found = {}
        for name, maker in makers.items():
            odds, make = maker if isinstance(maker, tuple) else (0.4, maker)
            if self.chance.random() < odds:
                found[name] = make()
        return found

    def metadata(self) -> dict[str, Any]:
        def owner(uid: str) -> dict[str, str]:
            return {"apiVersion": "none.example/v1", "kind": "None", "name": self.word(), "uid": uid}

        return self.members(
            labels=self.texts,
            annotations=(0.2, self.texts),
            finalizers=(0.15, lambda: [f"example.com/{word}" for word in self.words()]),
            ownerReferences=(0.1, lambda: [owner(word) for word in self.words()]),
        )

    @abstractmethod
    def body(self, *, is_partial: bool) -> dict[str, Any]:
        """Return fields beside metadata; `is_partial` for an apply or a patch."""

    def status(self) -> dict[str, Any]:
        return {}


class Widgets(Samples):
    path, api_version, kind = (
        "/apis/ownership.nodeyard.dev/v1/namespaces/{}/widgets",
        "ownership.nodeyard.dev/v1",
        "Widget",
    )
    schema = compile_schema(WIDGET)
    reset = {"": (("status",),), "status": (("metadata",), ("spec",))}
    is_custom = True

    def anything(self, depth: int = 0) -> Any:
        odds = self.chance.random()
        if odds < 0.3 or depth > 2:
            return self.one(0, 1, "q", True, 1.5)
        if odds < 0.45:
            return [self.anything(depth + 1) for _ in range(self.chance.randint(0, 2))]
        return {name: self.anything(depth + 1) for name in self.words()}

    def part(self, name: str) -> dict[str, Any]:
        deep = (0.3, lambda: {key: self.word() for key in self.some("a", "b")})
        return {"name": name, **self.members(value=self.word, tags=(0.3, self.words), deep=deep)}

    def port(self, port: int, **protocol: str) -> dict[str, Any]:
        return {"port": port, **protocol, **self.members(note=self.word)}

    def ports(self) -> list[Any]:
        known = ((80, {"protocol": "TCP"}), (80, {"protocol": "UDP"}), (443, {}), (9, {"protocol": "TCP"}))
        return [self.port(number, **protocol) for number, protocol in self.some(*known)]

    def body(self, *, is_partial: bool) -> dict[str, Any]:
        return self.members(spec=(0.95, self.spec), status=(0.15, self.status))

    def spec(self) -> dict[str, Any]:
        chosen = self.some
        return self.members(
            text=self.word,
            size=lambda: self.one(0, 1, 2),
            either=(0.2, lambda: self.one(1, "1")),
            maybe=(0.2, lambda: self.one(None, "x", "y")),
            defaulted=(0.2, self.word),
            parts=lambda: [self.part(name) for name in self.words()],
            ports=self.ports,
            tags=self.words,
            numbers=(0.2, lambda: chosen(1, 2, 10, 9)),
            steps=(0.2, lambda: [{"run": word} for word in self.words()]),
            whole=(0.3, lambda: self.members(a=self.word, b=lambda: {"c": self.word()})),
            labels=self.texts,
            objects=(0.3, lambda: {name: {key: self.word() for key in chosen("x", "y")} for name in chosen("a", "b")}),
            nested=lambda: self.members(a=self.word, b=lambda: {key: self.word() for key in chosen("c", "d")}),
            free=(0.3, lambda: {name: self.anything() for name in chosen("a", "b")}),
            half=(0.2, lambda: self.members(known=lambda: {"z": self.word()}, more=self.anything)),
            any=(0.2, self.anything),
            embedded=(0.1, self.embedded),
        )

    def embedded(self) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "X", "metadata": {"name": "n", **self.metadata()}, "data": self.texts()}

    def status(self) -> dict[str, Any]:
        conditions = [{"type": word, "status": self.word()} for word in self.words()]
        return self.members(phase=self.word, conditions=lambda: conditions)


class ConfigMaps(Samples):
    path, api_version, kind = "/api/v1/namespaces/{}/configmaps", "v1", "ConfigMap"
    schema = built_in("io.k8s.api.core.v1.ConfigMap")

    def body(self, *, is_partial: bool) -> dict[str, Any]:
        binary = {f"{name}.bin": "YQ==" for name in self.words()}
        return self.members(data=(0.8, self.texts), binaryData=(0.2, lambda: binary))


class Nodes(Samples):
    path, api_version, kind = "/api/v1/nodes", "v1", "Node"
    schema = built_in("io.k8s.api.core.v1.Node")
    reset = {"": (("status",),), "status": (("spec",),)}

    def body(self, *, is_partial: bool) -> dict[str, Any]:
        return self.members(spec=(0.8, self.spec), status=(0.15, self.status))

    def spec(self) -> dict[str, Any]:
        def taint(key: str) -> dict[str, str]:
            return {"key": key, "value": self.word(), "effect": self.one("NoSchedule", "NoExecute")}

        return self.members(
            taints=lambda: [taint(key) for key in self.words()], unschedulable=lambda: self.one(True, False)
        )

    def status(self) -> dict[str, Any]:
        def condition(kind: str) -> dict[str, Any]:
            times = {"lastHeartbeatTime": None, "lastTransitionTime": None}
            return {"type": kind, "status": self.one("True", "False"), **times, "reason": self.word()}

        return self.members(
            conditions=lambda: [condition(kind) for kind in self.words()],
            capacity=lambda: {name: self.one("1", "2") for name in self.some("cpu", "memory", "pods", at_least=1)},
            addresses=lambda: [{"type": kind, "address": "10.0.0.1"} for kind in self.some("InternalIP", "ExternalIP")],
        )


class Deployments(Samples):
    path, api_version, kind = "/apis/apps/v1/namespaces/{}/deployments", "apps/v1", "Deployment"
    schema = built_in("io.k8s.api.apps.v1.Deployment")
    reset = {"": (("status",),), "status": (("spec",), ("metadata", "labels"))}

    def body(self, *, is_partial: bool) -> dict[str, Any]:
        rare = 0.5 if is_partial else 1.0
        selector = {"matchLabels": {"app": "x"}}
        surge = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": self.one(1, "10%")}}
        spec = self.members(
            selector=(rare, lambda: selector),
            replicas=lambda: self.one(0, 1, 2),
            minReadySeconds=(0.2, lambda: self.one(0, 1)),
            strategy=(0.3, lambda: self.one(surge, {"type": "RollingUpdate"}, {})),
            template=(0.3 + rare, lambda: self.template(rare)),
        )
        return {"spec": spec, **self.members(status=(0.1, self.status))}

    def template(self, rare: float) -> dict[str, Any]:
        names = self.some("a", "b", "c", at_least=1 if rare == 1.0 else 0, at_most=2)
        pod = self.members(
            containers=(1.0, lambda: [self.container(name, rare) for name in names]),
            nodeSelector=(0.3, self.texts),
            tolerations=(0.2, lambda: [{"key": key, "operator": "Exists"} for key in self.words()]),
            volumes=(0.5, lambda: [{"name": "v", "emptyDir": {}}]),
            terminationGracePeriodSeconds=(0.2, lambda: self.one(1, 2)),
        )
        return {"spec": pod, **self.members(metadata=(rare, lambda: {"labels": {"app": "x", **self.texts()}}))}

    def container(self, name: str, rare: float) -> dict[str, Any]:
        def port(number: int) -> dict[str, Any]:
            return {"containerPort": number, **self.members(protocol=lambda: "UDP", name=lambda: f"p{number}")}

        return {
            "name": name,
            **self.members(
                image=(rare, self.word),
                env=lambda: [{"name": key, "value": self.word()} for key in self.words()],
                args=self.words,
                ports=lambda: [port(number) for number in self.some(80, 443, 9, at_most=2)],
                resources=(0.3, lambda: self.members(limits=lambda: {"cpu": self.one("1", "2")})),
                securityContext=(0.2, lambda: self.members(runAsUser=lambda: self.one(1, 2))),
            ),
        }

    def status(self) -> dict[str, Any]:
        times = {"lastUpdateTime": None, "lastTransitionTime": None}
        conditions = [{"type": word, "status": "True", **times} for word in self.words()]
        return self.members(replicas=lambda: self.one(0, 1), conditions=lambda: conditions)
