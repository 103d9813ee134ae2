"""Requests that would block the event loop of the embedded server if it processed them there.

Their order matters: some change, read or delete objects of earlier ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from .loop_turns import MeasuredServer

JSON = "application/json"
YAML = "application/yaml"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

BODY = 3 * 1024 * 1024 - 4096
RULES = 8000
"""Rules of a large CRD."""
STORED = 1400 * 1024
"""Bytes of an object that is small enough to be stored."""
OWNED = 400 * 1024
"""The same for an object with many fields, all of which managedFields repeats."""

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/x.io/v1/things"
RULED = "/apis/x.io/v1/ruleds"
SQUARED = "/apis/x.io/v1/squareds"
JUDGED = "/apis/x.io/v1/judgeds"
REGISTRATIONS = "/apis/admissionregistration.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

Json = Any


@dataclass(frozen=True)
class Case:
    """One request. `ask` is measured, together with the work of controllers that it causes; `prepare` is not."""

    name: str
    ask: Callable[[MeasuredServer], None]
    prepare: Callable[[MeasuredServer], None] = lambda server: None


def encoded(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _definition(plural: str, kind: str, schema: Json) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.x.io"},
        "spec": {
            "group": "x.io",
            "scope": "Cluster",
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}},
            ],
        },
    }


_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_ITEM = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "maxLength": 64, "pattern": "^[a-z0-9]+$"},
        "count": {"type": "integer", "default": 1, "minimum": 0},
    },
    "x-kubernetes-validations": [{"rule": "self.count >= 0 && self.name.size() > 0", "message": "count"}],
}
_RULED: Json = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "items": {
                    "type": "array",
                    "maxItems": 100_000,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": _ITEM,
                }
            },
        }
    },
}


_SQUARED = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {"items": {**_RULED["properties"]["spec"]["properties"]["items"], "maxItems": 1000}},
            "x-kubernetes-validations": [
                {"rule": "self.items.all(a, self.items.all(b, a.name == b.name || a.name != b.name))"}
            ],
        }
    },
}


def install(server: MeasuredServer) -> None:
    """Define the kinds that cases use."""
    schemas = {"Thing": _OPEN, "Ruled": _RULED, "Squared": _SQUARED, "Judged": _OPEN}
    for kind, schema in schemas.items():
        assert server.ask("POST", CRDS, encoded(_definition(f"{kind.lower()}s", kind, schema)))[0] == 201
    server.idle()


# bodies


def thing(name: str, spec: bytes, kind: str = "Thing") -> bytes:
    return b'{"apiVersion":"x.io/v1","kind":"%s","metadata":{"name":"%s"},"spec":%s}' % (
        kind.encode(),
        name.encode(),
        spec,
    )


def small_keys(size: int) -> bytes:
    return b"{" + b",".join(b'"k%06d":1' % number for number in range(size // 12)) + b"}"


def lists(size: int) -> bytes:
    return b'{"a":[' + b",".join([b"[]"] * (size // 3)) + b"]}"


def nested(size: int, levels: int = 200) -> bytes:
    one = b'{"a":' * levels + b"1" + b"}" * levels
    return b'{"a":[' + b",".join([one] * (size // len(one))) + b"]}"


def items(size: int) -> bytes:
    return encoded({"items": [{"name": f"n{number}"} for number in range(size // 20)]})


def flat_yaml(name: str, size: int) -> bytes:
    head = b"apiVersion: x.io/v1\nkind: Thing\nmetadata: {name: %s}\nspec:\n" % name.encode()
    return head + b"".join(b"  k%06d: 1\n" % number for number in range(size // 13))


def config_map(name: str, keys: int, size: int = 700_000) -> bytes:
    data = {f"key-{number}": "x" * (size // keys) for number in range(keys)}
    return encoded({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})


def with_owners(name: str, count: int, **more: Json) -> bytes:
    owners = [{"apiVersion": "v1", "kind": "A", "name": f"a{n}", "uid": str(n), **more} for n in range(count)]
    return encoded({"metadata": {"name": name, "ownerReferences": owners}})


def pod(name: str, value: str, variables: int) -> bytes:
    env = [{"name": f"E{number}", "value": value} for number in range(variables)]
    containers = [{"name": "c", "image": "i", "env": env}]
    return encoded({"metadata": {"name": name}, "spec": {"containers": containers}})


def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


# requests

Ask = Callable[[MeasuredServer], None]


def _nothing() -> bytes:
    return b""


def sends(method: str, path: str, body: Callable[[], bytes] = _nothing, kind: str = JSON, **headers: str) -> Ask:
    """Send one request. It may succeed, or be refused as invalid or too large; other errors fail the test."""

    def ask(server: MeasuredServer) -> None:
        status, end = server.ask(method, path, body(), kind, **headers)
        is_too_large = b"etcdserver: request is too large" in end
        assert status in (200, 201, 400, 422) or is_too_large, (method, path, status, end[-500:])

    return ask


def fill(server: MeasuredServer, path: str, bodies: Iterable[Json]) -> None:
    async def create() -> None:
        for body in bodies:
            await server.server.call("POST", path, body)

    server.run(create())


def with_maps(namespace: str, count: int, size: int, **metadata: Json) -> Ask:
    """Create a namespace with ConfigMaps."""

    def prepare(server: MeasuredServer) -> None:
        fill(server, "/api/v1/namespaces", [{"metadata": {"name": namespace}}])
        bodies = ({"metadata": {"name": f"m{n:05d}", **metadata}, "data": {"a": "x" * size}} for n in range(count))
        fill(server, maps(namespace), bodies)

    return prepare


def with_dependents(count: int) -> Ask:
    """Create a ConfigMap that owns others."""

    def prepare(server: MeasuredServer) -> None:
        fill(server, "/api/v1/namespaces", [{"metadata": {"name": "owned"}}])
        fill(server, maps("owned"), [{"metadata": {"name": "owner"}}])
        uid = json.loads(server.ask("GET", f"{maps('owned')}/owner")[1])["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
        bodies = ({"metadata": {"name": f"d{n}", "ownerReferences": [owner]}} for n in range(count))
        fill(server, maps("owned"), bodies)

    return prepare


def with_things(count: int) -> Ask:
    spec = {"a": 1, "b": list(range(50))}
    bodies = [json.loads(thing(f"t{n}", encoded(spec))) for n in range(count)]
    return lambda server: fill(server, THINGS, bodies)


def creates(spec: Callable[[], bytes], name: str, kind: str = "Thing", path: str = THINGS) -> Ask:
    return sends("POST", path, lambda: thing(name, spec(), kind))


def patches(path: str, body: bytes, kind: str = MERGE) -> Ask:
    return sends("PATCH", path, lambda: body, kind)


def written(yaml_size: int) -> Iterator[Case]:
    """Yield writes of large objects, and large patches."""
    small = b'{"spec":{"k000000":2}}'
    yield Case("POST YAML, flat", sends("POST", THINGS, lambda: flat_yaml("big", yaml_size), YAML))
    for again in ("", ", again"):
        ask = sends("PATCH", f"{THINGS}/kept?fieldManager=m", lambda: flat_yaml("kept", OWNED), APPLY)
        yield Case(f"apply YAML{again}", ask)
    yield Case("small patch of what was applied", patches(f"{THINGS}/kept?fieldManager=other", small))
    yield Case("POST JSON, 3 MB of small keys", creates(lambda: small_keys(BODY), "big"))
    yield Case("POST JSON, 3 MB of empty lists", creates(lambda: lists(BODY), "big"))
    yield Case("POST JSON, 3 MB of maps 200 levels deep", creates(lambda: nested(BODY), "big"))
    yield Case("POST JSON, 1.4 MB of empty lists", creates(lambda: lists(STORED), "lists"))
    yield Case("GET empty lists as a Table", sends("GET", f"{THINGS}/lists", Accept=TABLE))
    yield Case("small patch of empty lists", patches(f"{THINGS}/lists", small))
    yield Case("DELETE empty lists", sends("DELETE", f"{THINGS}/lists"))
    yield Case("POST small keys", creates(lambda: small_keys(OWNED), "keys"))
    other = small_keys(OWNED).replace(b":1", b":2")
    yield Case("merge patch of small keys", patches(f"{THINGS}/keys", b'{"spec":%s}' % other))
    nulls = small_keys(OWNED).replace(b":1", b":null")
    yield Case("merge patch of nulls", patches(f"{THINGS}/keys", b'{"spec":%s}' % nulls))
    yield Case("POST malformed JSON, 500 KB", sends("POST", THINGS, lambda: b"[" + b"1," * 250_000))
    yield Case("POST with schema and CEL", creates(lambda: items(100 * 1024), "ruled", "Ruled", RULED))
    refused = items(200 * 1024).replace(b':"n', b':"N')
    yield Case("POST with 10,000 faults", creates(lambda: refused, "refused", "Ruled", RULED))
    unknown = items(200 * 1024).replace(b"name", b"n" * 200)
    yield Case("POST with 10,000 warnings", creates(lambda: unknown, "unknown", "Ruled", RULED))
    many = items(BODY).replace(b':"n', b':"N')
    yield Case("POST with 150,000 faults", creates(lambda: many, "many", "Ruled", RULED))
    unread = items(BODY).replace(b"name", b"n")
    strict = f"{RULED}?fieldValidation=Strict"
    yield Case("POST with 150,000 unknown fields", creates(lambda: unread, "unread", "Ruled", strict))
    yield Case("small patch with schema and CEL", patches(f"{RULED}/ruled", b'{"metadata":{"labels":{"a":"b"}}}'))
    yield Case(
        "POST with a rule that compares all items", creates(lambda: items(16 * 1024), "squared", "Squared", SQUARED)
    )
    yield Case("POST a large CRD", sends("POST", CRDS, large_definition))
    yield Case("POST a review, 300 KB", sends("POST", REVIEWS, large_review))


_POLICIES = {
    "linear": ["object.spec.all(k, k.size() > 0)"],
    "squared": ["object.spec.all(k, object.spec.all(l, l.size() > 0))"] * 20,
    "squares": ["object.spec.all(k, object.spec.all(l, l.size() > 0))"],
    "equal": ["object.spec.all(k, object.spec == oldObject.spec || true)"],
    "distinct": ["object.spec.map(k, k).distinct().size() > 0"],
    "sets": ["sets.equivalent(object.spec.map(k, k), object.spec.map(k, k))"],
    "replace": ["object.spec.a.replace('a', object.spec.a).size() > 0"],
    "chained": [f"variables.v{number} > 0" for number in range(20)],
}
"""Validations of policies, by the name of the object that each matches."""
_VARIABLES = [
    {"name": f"v{number}", "expression": f"object.spec.filter(k, k.size() > {number}).size() + 1"}
    for number in range(20)
]


def policy(name: str, expressions: list[str], object_name: str = "") -> Json:
    rule = {"apiGroups": ["x.io"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["judgeds"]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [{**rule, "resourceNames": [object_name or name]}]},
            "variables": _VARIABLES if name == "chained" else [],
            "validations": [{"expression": expression} for expression in expressions],
        },
    }


def binding(name: str) -> Json:
    return {"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}}


def webhook(name: str, conditions: list[str]) -> Json:
    """Build a webhook whose last match condition is false, so it is never called."""
    rule = {"apiGroups": ["x.io"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["judgeds"]}
    return {
        "name": f"{name}.x.io",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "matchConditions": [
            {"name": f"c{number}", "expression": each} for number, each in enumerate([*conditions, "false"])
        ],
    }


def with_policies(server: MeasuredServer) -> None:
    fill(
        server,
        f"{REGISTRATIONS}/validatingadmissionpolicies",
        (policy(name, expressions) for name, expressions in _POLICIES.items()),
    )
    fill(server, f"{REGISTRATIONS}/validatingadmissionpolicybindings", map(binding, _POLICIES))


def with_webhook(kind: str) -> Ask:
    squared = "object.spec.all(k, object.spec.all(l, l.size() > 0))"
    condition = f"object.metadata.name != 'asked' || {squared}"

    def prepare(server: MeasuredServer) -> None:
        body = {"metadata": {"name": "costly"}, "webhooks": [webhook("costly", [condition])]}
        fill(server, f"{REGISTRATIONS}/{kind}webhookconfigurations", [body])

    return prepare


def large_policy() -> bytes:
    expressions = [f"object.spec.all(k, k.size() > {number} || k != 'key-{number}')" for number in range(1500)]
    return encoded(policy("large", expressions))


def large_configuration() -> bytes:
    conditions = [f"object.spec.all(k, k.size() > {number} || k != 'key-{number}')" for number in range(60)]
    webhooks = [webhook(f"w{number}", conditions) for number in range(25)]
    return encoded({"metadata": {"name": "large"}, "webhooks": webhooks})


def many_rules(kind: str, count: int) -> bytes:
    rules = {f"a{n}": {"type": "integer", "x-kubernetes-validations": [{"rule": f"self>{n}"}]} for n in range(count)}
    return encoded(_definition(f"{kind}s", kind.capitalize(), {"type": "object", "properties": rules}))


def defined() -> Iterator[Case]:
    """Yield CRDs, also small ones, whose schemas take long to check and compile."""

    def define(kind: str, schema: Json) -> Ask:
        return sends("POST", CRDS, lambda: encoded(_definition(f"{kind}s", kind.capitalize(), schema)))

    def first(kind: str) -> Ask:
        return sends("POST", f"/apis/x.io/v1/{kind}s", lambda: thing("a", b"{}", kind.capitalize()))

    part = {"type": "object", "properties": {"a": {"type": "integer"}}}
    patterns = {f"a{n}": {"type": "string", "pattern": f"^a{n}$"} for n in range(1200)}
    yield Case("POST a CRD of 8,000 rules", sends("POST", CRDS, lambda: many_rules("numerous", RULES)))
    yield Case("POST the first object", first("numerous"))
    yield Case("PATCH its labels", patches(f"{CRDS}/numerouss.x.io", b'{"metadata":{"labels":{"a":"b"}}}'))
    yield Case("POST a CRD of 60 KB with 800 rules", sends("POST", CRDS, lambda: many_rules("short", 800)))
    yield Case("POST its first object", first("short"))
    unread = _definition("unreads", "Unread", _OPEN)
    path = ".a[?(@.b" + r"\a" * 10_000 + " "
    unread["spec"]["versions"][0]["additionalPrinterColumns"] = [{"name": "a", "type": "string", "jsonPath": path}]
    yield Case("POST a CRD with a JSONPath that cannot be read", sends("POST", CRDS, lambda: encoded(unread)))
    rules = [{"rule": "true", "fieldPath": f".a{number}"} for number in range(4000)]
    ruled = {"type": "object", "x-kubernetes-validations": rules}
    yield Case("POST a CRD with 4,000 rules for one node", define("ruly", ruled))
    yield Case("POST a CRD of 60 KB with 1,200 patterns", define("textual", {"type": "object", "properties": patterns}))
    parts = {f"a{n}": part for n in range(950)}
    yield Case("POST a CRD of 60 KB with 1,900 nodes", define("broad", {"type": "object", "properties": parts}))
    yield Case("POST an object of 1,900 nodes", first("broad"))
    described = {**_OPEN, "description": "x" * 1_200_000}
    definitions = [_definition(f"described{n}s", f"Described{n}", described) for n in range(60)]
    yield Case(
        "POST a small CRD beside large ones", define("plain", _OPEN), lambda server: fill(server, CRDS, definitions)
    )
    yield Case("GET the index of OpenAPI", sends("GET", "/openapi/v3"))
    yield Case("GET the document of large CRDs", sends("GET", "/openapi/v3/apis/x.io/v1"))
    rival = json.loads(many_rules("rival", RULES // 2))
    rival["spec"]["names"]["kind"] = "Short"
    yield Case("POST a CRD whose kind is taken", sends("POST", CRDS, lambda: encoded(rival)))
    other = sends("PATCH", f"{CRDS}/numerouss.x.io", lambda: b'{"metadata":{"labels":{"a":"c"}}}', MERGE)
    yield Case("DELETE the CRD that has taken it", sends("DELETE", f"{CRDS}/shorts.x.io"), other)
    yield Case("DELETE a CRD of 8,000 rules", sends("DELETE", f"{CRDS}/numerouss.x.io"))


def judged() -> Iterator[Case]:
    """Yield writes that costly expressions of policies and webhooks check, of large and of small objects."""

    def post(name: str, spec: Callable[[], bytes]) -> Ask:
        return creates(spec, name, "Judged", JUDGED)

    def put(name: str, spec: bytes) -> Ask:
        return patches(f"{JUDGED}/{name}", b'{"spec":%s}' % spec)

    small = small_keys(20_000)
    yield Case("policy, large object", post("linear", lambda: small_keys(OWNED)), with_policies)
    yield Case("policy that spends its budget, large object", post("squared", lambda: small_keys(OWNED)))
    yield Case("policy that costs much, small object", post("squares", lambda: small))
    yield Case("policy that compares small objects often", put("equal", b'{"k":1}'), post("equal", lambda: small))
    yield Case("policy with distinct, large object", post("distinct", lambda: small_keys(OWNED)))
    yield Case("policy with sets, small object", post("sets", lambda: small_keys(60_000)))
    yield Case("policy with a long replacement", post("replace", lambda: b'{"a":"%s"}' % (b"a" * 60_000)))
    yield Case("policy with many variables", post("chained", lambda: small_keys(40_000)))
    for kind in ("validating", "mutating"):
        yield Case(f"matchCondition, {kind} webhook", post("asked", lambda: small), with_webhook(kind))
        yield Case("DELETE what it is for", sends("DELETE", f"{JUDGED}/asked"))
    yield Case("POST a large policy", sends("POST", f"{REGISTRATIONS}/validatingadmissionpolicies", large_policy))
    bound = sends("POST", f"{REGISTRATIONS}/validatingadmissionpolicybindings", lambda: encoded(binding("large")))
    yield Case("POST what it is for", post("large", lambda: b'{"k":1}'), bound)
    yield Case("DELETE a large policy", sends("DELETE", f"{REGISTRATIONS}/validatingadmissionpolicies/large"))
    path = f"{REGISTRATIONS}/validatingwebhookconfigurations"
    yield Case("POST a large webhook configuration", sends("POST", path, large_configuration))
    yield Case("POST what its webhooks are for", post("other", lambda: b'{"k":1}'))
    yield Case("DELETE a large webhook configuration", sends("DELETE", f"{path}/large"))


def built_in() -> Iterator[Case]:
    path = f"{maps('default')}/keys"
    yield Case("POST ConfigMap, one value", sends("POST", maps("default"), lambda: config_map("one", 1, STORED)))
    yield Case("POST ConfigMap, 20,000 keys", sends("POST", maps("default"), lambda: config_map("keys", 20_000)))
    yield Case("small patch of 20,000 keys", patches(f"{path}?fieldManager=a", b'{"data":{"key-1":"y"}}'))
    yield Case("small strategic patch", patches(f"{path}?fieldManager=b", b'{"data":{"key-2":"y"}}', STRATEGIC))
    yield Case("PUT ConfigMap", sends("PUT", path, lambda: config_map("keys", 20_000, 740_000)))
    yield Case("large strategic patch", patches(path, config_map("keys", 20_000, 720_000), STRATEGIC))
    yield Case("apply ConfigMap", patches(f"{path}?fieldManager=c&force=true", config_map("keys", 20_000), APPLY))
    yield Case("GET ConfigMap as YAML", sends("GET", path, Accept=YAML))


def repeated() -> Iterator[Case]:
    """Yield writes of lists whose items are compared with each other, in large and in small bodies."""
    bindings = f"{REGISTRATIONS}/validatingadmissionpolicybindings"
    for count in (700, 30_000):
        owned, controlled = with_owners(f"o{count}", count), with_owners(f"c{count}", count, controller=True)
        bound = {"metadata": {"name": f"b{count}"}, "spec": {"policyName": "p", "validationActions": ["Deny"] * count}}
        yield Case(f"POST {count} owners", sends("POST", maps("default"), partial(bytes, owned)))
        yield Case(f"POST {count} controllers", sends("POST", maps("default"), partial(bytes, controlled)))
        yield Case(f"POST {count} equal actions", sends("POST", bindings, partial(encoded, bound)))
    for name, variables in (("small", 500), ("large", 9000)):
        create = sends("POST", PODS, partial(pod, name, "x", variables))
        change = patches(f"{PODS}/{name}", pod(name, "y", variables), STRATEGIC)
        yield Case(f"PATCH {variables} variables of a pod", change, create)


def granted() -> Iterator[Case]:
    """Yield requests about roles that grant more combinations of rights than can be listed."""
    many = [f"x{number}" for number in range(2000)]
    wide = {"rules": [{"verbs": many, "apiGroups": many, "resources": many}]}
    subjects = [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "wide"}

    def bind(server: MeasuredServer) -> None:
        fill(server, f"{RBAC}/clusterroles", [{"metadata": {"name": "wide"}, **wide}])
        body = {"metadata": {"name": "wide"}, "roleRef": reference, "subjects": subjects}
        fill(server, f"{RBAC}/clusterrolebindings", [body])

    asked = {"user": "u", "resourceAttributes": {"verb": "get", "resource": "pods"}}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": asked}
    yield Case("use a role of a billion rights", sends("POST", REVIEWS, lambda: encoded(review)), bind)
    selectors = {"aggregationRule": {"clusterRoleSelectors": [{}] * 100_000}}
    body = encoded({"metadata": {"name": "sums"}, **selectors})
    yield Case("POST a role with 100,000 selectors", sends("POST", f"{RBAC}/clusterroles", lambda: body))


def patched() -> Iterator[Case]:
    path = f"{THINGS}/copies"
    prepare = creates(lambda: b'{"a":{"b":"c"}}', "copies")
    copies = [{"op": "copy", "from": "/spec/a", "path": f"/spec/a/k{number}"} for number in range(40)]
    yield Case("JSON patch that copies itself", patches(path, encoded(copies), JSON_PATCH), prepare)
    adds = [{"op": "add", "path": f"/spec/n{number}", "value": number} for number in range(10_000)]
    yield Case("JSON patch of 10,000 operations", patches(path, encoded(adds), JSON_PATCH))
    yield Case("merge patch, 3 MB of maps 200 levels deep", patches(path, b'{"spec":%s}' % nested(BODY)))
    yield Case("merge patch 20,000 levels deep", patches(path, b'{"a":' * 20_000 + b"1" + b"}" * 20_000))


def read(count: int) -> Iterator[Case]:
    """Yield lists and watches of many objects, and of large ones."""
    many, large = maps("many"), maps("large")
    yield Case("list", sends("GET", many), with_maps("many", count, 2000))
    yield Case("list as a Table", sends("GET", many, Accept=TABLE))
    yield Case("list, metadata alone", sends("GET", many, Accept=METADATA))
    yield Case("list as YAML", sends("GET", f"{many}?limit=400", Accept=YAML))
    labels, fields = (",".join(f"!k{n}" for n in range(1000)), ",".join(f"metadata.name!={n}" for n in range(350)))
    yield Case("list by 1,000 labels", sends("GET", f"{many}?labelSelector={labels}"))
    yield Case("list by 350 fields", sends("GET", f"{many}?fieldSelector={fields}"))
    initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1"
    yield Case("watch with initial events", sends("GET", f"{many}?watch=true&{initial}"))
    yield Case("watch as a Table", sends("GET", f"{many}?watch=true&timeoutSeconds=1", Accept=TABLE))
    yield Case("watch of history", sends("GET", f"{many}?watch=true&resourceVersion=1&timeoutSeconds=1"))
    yield Case("list of large objects", sends("GET", large), with_maps("large", 50, 1_000_000))
    yield Case("list of large objects, indented", sends("GET", f"{large}?pretty=true"))
    yield Case("list of large objects, compressed", sends("GET", large, **{"Accept-Encoding": "gzip"}))
    yield Case("watch of large objects", sends("GET", f"{large}?watch=true&timeoutSeconds=1"))


def deleted(count: int) -> Iterator[Case]:
    yield Case("deletecollection of large objects", sends("DELETE", maps("large")))
    yield Case("deletecollection", sends("DELETE", maps("some")), with_maps("some", count, 2000))
    held = with_maps("held", count, 100, finalizers=["x.io/held"])
    yield Case("deletecollection, with finalizers", sends("DELETE", maps("held")), held)
    yield Case("DELETE a namespace", sends("DELETE", "/api/v1/namespaces/many"))
    yield Case("DELETE a namespace that finalizers hold", sends("DELETE", "/api/v1/namespaces/held"))
    yield Case("DELETE an owner", sends("DELETE", f"{maps('owned')}/owner"), with_dependents(count))
    closed = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "integer"}}}}}
    change = {"spec": {"versions": _definition("things", "Thing", closed)["spec"]["versions"]}}
    yield Case("PATCH a CRD's schema", patches(f"{CRDS}/things.x.io", encoded(change)), with_things(count))
    yield Case("DELETE a CRD", sends("DELETE", f"{CRDS}/things.x.io"))


def cases(count: int = 5000, yaml_size: int = BODY) -> Iterator[Case]:
    """Yield all cases; `count` is the number of objects in those with many."""
    yield from written(yaml_size)
    yield from defined()
    yield from judged()
    yield from built_in()
    yield from repeated()
    yield from granted()
    yield from patched()
    yield from read(count)
    yield from deleted(count)


def large_definition() -> bytes:
    rule = {"rule": "self.size() < 9"}
    text = {"type": "string", "maxLength": 9, "description": "x" * 20, "x-kubernetes-validations": [rule]}
    part = {"type": "object", "properties": {f"p{n}": text for n in range(50)}}
    schema = {"type": "object", "properties": {f"q{n}": part for n in range(15)}}
    return encoded(_definition("larges", "Large", schema))


def large_review() -> bytes:
    spec = {"user": "u", "extra": {f"k{n}": ["v"] for n in range(20_000)}, "nonResourceAttributes": {"path": "/"}}
    return encoded({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec})
