"""Hashes whatever may be secret in the objects of a bundle.

    redactor = Redactor()
    redactor.redact("Pod", pod)

Nothing is kept because it looks harmless to a list of forbidden fields. A text is kept only if it is an identifier in a
field that names something (`_NAMING`), or word by word: words of Kubernetes and of Nodeyard (words.txt), numbers,
quantities, times, addresses and names that such fields have. Every other word becomes `hashed-…`: equal words have
equal hashes within one bundle, so that comparisons still hold, and the key of the hash is forgotten with the process.

Arguments, environments, headers, the data of Secrets and ConfigMaps, and fields that are called like a credential are
hashed whatever they say. A kubeconfig becomes one that names no server. The keys of managedFields name only what the
object itself shows.
"""

from __future__ import annotations

import binascii
import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import blake2b
from importlib.resources import files
from typing import Any, Final

import msgspec

from nodeyard.client.errors import ConfigError
from nodeyard.client.kubeconfig import parse_kubeconfig
from nodeyard.kube.json import Json, Object
from nodeyard.kube.names import APPROVALS, APPROVE

HASHED: Final = "hashed-"


def _split(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NAMING: Final = _split(
    """
    action apiVersion architecture bootID cidr clusterName component containerID effect fieldType generateName
    group holderIdentity host hostIP hostname image imageID ip kernelVersion key kind kubeProxyVersion
    kubeletVersion machineID manager name names namespace nodeClass nodeName operatingSystem operation operator
    osImage phase plural podCIDR podIP protocol providerID qosClass reason reportingController
    reportingInstance resource resourceVersion schedulerName singular status subresource systemUUID
    topologyKey type uid version zone
    """
)
"""Fields that name something."""
_NAMING_ENDS: Final = ("Name", "Ref", "Class", "Kind", "Version", "Policy", "Group", "Namespace", "Zone", "Region")
_NAMING_BELOW: Final = _split(
    """
    accessModes addresses allowedAffinityClasses allocatable capacity clusterNetwork conditionTypes finalizers
    involvedObject labels limits matchExpressions matchFields matchLabels nodeSelector nodeSelectorTerms
    ownerReferences podCIDRs regarding requests scope selector taints tolerations workerPools
    """
)
"""Fields below which everything names something."""
_SECRET: Final = re.compile(
    r"(?i)pass(word|wd|phrase)|secret|token|credential|kubeconfig|private.?key|api.?key|access.?key|auth|cookie|bearer|"
    r"session|userdata|cloudinit|(?<![a-z])pin(?![a-z])"
)
_NO_SECRET_ENDS: Final = (*_NAMING_ENDS, "Refs", "Names", "Mode", "Type", "Path", "Audience", "Audiences", "Seconds")
_HASHED_BELOW: Final = frozenset(
    ("args", "command", "httpHeaders", "env", "stringData", "binaryData", "files", "users")
)
_NAMES_OF_HASHED: Final = frozenset(("name", "fieldPath", "key", "apiVersion", "resource", "containerName", "divisor"))
"""Fields that are kept below a hashed one: the name of a variable, and where its value is from."""
_DATA: Final = frozenset(("Secret", "ConfigMap"))
_OWN_DOMAINS: Final = (
    "nodeyard.dev", "nyallocator.cybozu.io", "lattice.dev", "kosmos.io", "kosmos-io", "cozystack.io", "openstack.org",
    "cluster.x-k8s.io", "autoscaler.kubernetes.io", "deployment.kubernetes.io", "daemonset.kubernetes.io",
)  # fmt: skip
"""Domains of annotations whose values decide something."""
_OWN_ANNOTATIONS: Final = ("leafNodeMode",)
_FOR_PEOPLE: Final = (APPROVALS, APPROVE)
_USER_CONTENT: Final = ("apps.cozystack.io", "helm.toolkit.fluxcd.io")
"""Groups whose specs hold whatever a chart takes."""
_SCHEMA: Final = "openAPISchema"
"""The schema of an application, as JSON: public like a CRD's, and its properties name the fields of applications."""
_ANNOTATIONS: Final = "annotations"
_CREDENTIAL: Final = (
    r"(?:pass(?:word|wd|phrase)|secret|token|credential|(?:private|api|access).?key|(?<![a-z])(?:pin|pwd)(?![a-z]))"
)
_GIVEN: Final = re.compile(
    rf"""({_CREDENTIAL}[\w.-]{{0,40}}["'\\]{{0,4}}\s{{0,3}}[:=]\s{{0,3}}["'\\]{{0,4}}|--[\w-]{{0,40}}{_CREDENTIAL}\s{{1,3}})"""
    r"""([^\s"'\\,;&@<>{}\[\]]+)""",
    re.IGNORECASE,
)
"""A credential in a text, after its name."""
_GIVEN_IN_URL: Final = re.compile(r"(://[^/\s:@]{0,100}:)([^/\s@]+)(?=@)")
_NAME_BYTES: Final = 512
_CREDENTIALS_IN_URL: Final = re.compile(r"://[^/\s]*@|-----BEGIN|\n")
WORD: Final = re.compile(r"""[^\s,;:=()\[\]{}"'`|<>/@&?#\\!*$%^~+]+""")
_SHAPE: Final = re.compile(
    r"""
    [+-]?\d{1,12}(\.\d{1,9})?([numkKMGTPE]|[KMGTPE]i|e\d{1,2}|MiB|GiB|%)?         # numbers and quantities
    | (\d{1,6}(\.\d{1,3})?(ns|us|ms|[smhd]))+                                      # durations
    | \d{4}-\d\d-\d\d(T\d\d)?                                                      # dates; the rest are numbers
    | \d\d(\.\d{1,9})?Z
    | \d{1,3}(\.\d{1,3}){3}                                                        # addresses
    | v\d{1,3}((alpha|beta)\d{1,2})? | v?\d{1,4}(\.\d{1,4}){1,3}(-(alpha|beta|rc|eks|gke|k3s)\.?\d{0,4})?
    | \d{1,4}-\d{1,4}
    | [-._]{1,3}
    """,
    re.VERBOSE | re.ASCII,
)
_INI_SECTION: Final = re.compile(r"^\[[A-Za-z0-9_.-]{1,60}\]$", re.MULTILINE)
_INI_LINE: Final = re.compile(r"(\s*)([a-z][a-z0-9_]{1,60})(\s*=\s*)(.*)", re.DOTALL)
_HEX_GROUPS: Final = re.compile(r"[0-9a-fA-F]{0,4}(:[0-9a-fA-F]{0,4}){2,7}(/\d{1,3})?", re.ASCII)
_MOST_CACHED: Final = 100_000

_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder().decode


@lru_cache(1)
def known_words() -> frozenset[str]:
    """Return the words that Kubernetes and Nodeyard use in messages and fields."""
    return frozenset(files("nodeyard.bundle").joinpath("words.txt").read_text("ascii").split())


class Redactor:
    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._words = known_words()
        self._names: set[str] = set()
        """Identifiers that naming fields have."""
        self._plain: set[str] = set()
        """Texts that need no hash."""

    def redact(self, kind: str, obj: Object) -> Object:
        """Return the object without what may be secret."""
        group = str(obj.get("apiVersion", "")).rpartition("/")[0]
        found: Object = {}
        for key, value in obj.items():
            if key == "metadata" and isinstance(value, dict):
                found[key] = self._metadata(value)
            elif kind in _DATA and key in ("data", "stringData", "binaryData"):
                found[key] = self._hash_below(value)
            elif key == "spec" and group in _USER_CONTENT:
                found[key] = self._content(value, key)
            elif key == "spec" and kind == "CustomResourceDefinition":
                found[key] = value
            else:
                found[key] = self._field(key, value)
        metadata = found.get("metadata")
        if isinstance(metadata, dict) and metadata.get("managedFields"):
            metadata["managedFields"] = self._managed_fields(metadata["managedFields"], found)
        return found

    def learn(self, *names: str) -> None:
        """Keep these names wherever they are mentioned."""
        for each in names:
            self._name(each)

    def text(self, text: str) -> str:
        """Return a text for people, in which every word that is not known is hashed."""
        if text in self._plain:
            return text
        if _INI_SECTION.search(text):
            return "".join(map(self._ini_line, text.splitlines(keepends=True)))
        found = self._replace_words(text)
        if found == text or _HEX_GROUPS.fullmatch(text):
            if len(self._plain) >= _MOST_CACHED:
                self._plain.clear()
            self._plain.add(text)
            return text
        return found

    def _ini_line(self, line: str) -> str:
        """Redact a line of an INI file, whose options keep their names."""
        option = _INI_LINE.fullmatch(line)
        if option is None:
            return self._replace_words(line)
        indent, name, equals, value = option.groups()
        ending = value[len(value.rstrip()) :]
        value = value.rstrip()
        value = self._hash(value) if value and _SECRET.search(name) else self._replace_words(value)
        return f"{indent}{name}{equals}{value}{ending}"

    def texts(self, value: Json) -> Json:
        """Return a JSON value whose texts are redacted word by word; keys are kept."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.texts(each) for key, each in value.items()}
        return [self.texts(each) for each in value] if isinstance(value, list) else value

    # one value

    def _field(self, key: str, value: Json) -> Json:
        if isinstance(value, dict):
            if key in _HASHED_BELOW:
                return self._hash_below(value)
            if key == _ANNOTATIONS:
                return {name: self._annotation(name, each) for name, each in value.items()}
            if key in _NAMING_BELOW:
                return self._names_below(value)
            return {name: self._field(name, each) for name, each in value.items()}
        if isinstance(value, list):
            if key in _HASHED_BELOW:
                return self._hash_below(value)
            if key in _NAMING_BELOW:
                return self._names_below(value)
            return [self._field(key, each) for each in value]
        if not isinstance(value, str) or not value:
            return value
        if key == _SCHEMA:
            return self._schema(value)
        if _is_secret(key):
            return self._hash_value(value)
        is_name = key in _NAMING or key.endswith(_NAMING_ENDS)
        return self._name(value) if is_name else self.text(value)

    def _schema(self, value: str) -> str:
        """Keep a schema, and learn the names of its fields."""
        try:
            schema = _decode(value)
        except (msgspec.DecodeError, RecursionError):
            return self.text(value)
        fields = set[str]()
        _collect(schema, fields, set())
        self.learn(*fields)
        return value

    def _content(self, value: Json, key: str) -> Json:
        """Redact what users wrote for a chart: here a field that is called `name` may hold anything."""
        if _SECRET.search(key):
            return self._hash_all(value)
        if isinstance(value, dict):
            if key != "values" and "values" in value:
                rest = {name: self._field(name, each) for name, each in value.items() if name != "values"}
                return {**rest, "values": self._content(value["values"], "values")}
            return {self.text(name): self._content(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [self._content(each, key) for each in value]
        return self.text(value) if isinstance(value, str) else value

    def _hash_all(self, value: Json) -> Json:
        """Hash everything below a field that is called like a credential."""
        if isinstance(value, dict):
            return {self.text(name): self._hash_all(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._hash_all(each) for each in value]
        return value if value is None or isinstance(value, bool) else self._hash(str(value))

    def _names_below(self, value: Json) -> Json:
        if isinstance(value, dict):
            return {key: self._names_below(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._names_below(each) for each in value]
        return self._name(value) if isinstance(value, str) else value

    def _name(self, value: str) -> str:
        if value in self._names:
            return value
        if len(value) > _NAME_BYTES or _CREDENTIALS_IN_URL.search(value):
            return self.text(value)
        self._names.add(value)
        return value

    def _hash_below(self, value: Json) -> Json:
        if isinstance(value, dict):
            return {
                key: each if key in _NAMES_OF_HASHED and isinstance(each, str) else self._hash_below(each)
                for key, each in value.items()
            }
        if isinstance(value, list):
            return [self._hash_below(each) for each in value]
        return self._hash_value(value) if isinstance(value, str) and value else value

    def _hash_value(self, value: str) -> str:
        """Hash a value that stays valid base64 if it is, and a kubeconfig if it is one."""
        try:
            content = b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            return self._hash(value)
        hashed = self._hash(value)
        return b64encode((_kubeconfig(hashed) if _is_kubeconfig(content) else hashed).encode()).decode()

    def _hash(self, value: str) -> str:
        return HASHED + blake2b(value.encode("utf-8", "surrogatepass"), key=self._key, digest_size=6).hexdigest()

    def _replace_words(self, text: str) -> str:
        for given in (_GIVEN, _GIVEN_IN_URL):
            text = given.sub(lambda found: found[1] + self._hash(found[2]), text)
        return WORD.sub(self._replace_word, text)

    def _replace_word(self, match: re.Match[str]) -> str:
        token = match[0]
        word = token.rstrip(".…")
        if not word or self._is_known(word):
            return token
        return self._hash(word) + token[len(word) :]

    def _is_known(self, word: str) -> bool:
        return (
            word in self._words
            or ("." in word and self._words.issuperset(word.split(".")))
            or word in self._names
            or word.strip("-_") in self._names
            or word.strip("-_").lower() in self._words
            or word.startswith(HASHED)
            or _SHAPE.fullmatch(word) is not None
        )

    # metadata

    def _metadata(self, metadata: Object) -> Object:
        found: Object = {}
        for key, value in metadata.items():
            if key == _ANNOTATIONS and isinstance(value, dict):
                found[key] = {name: self._annotation(name, each) for name, each in value.items()}
            elif key == "managedFields":
                found[key] = value
            else:
                found[key] = self._names_below(value)
        return found

    def _annotation(self, key: str, value: Json) -> Json:
        if not isinstance(value, str):
            return self._hash_below(value)
        domain = key.partition("/")[0]
        if key in _FOR_PEOPLE:
            return self.text(value)
        if domain.endswith(_OWN_DOMAINS) or key in _OWN_ANNOTATIONS:
            return value
        return self._hash(value) if "last-applied" in key or _SECRET.search(key) else self.text(value)

    def _managed_fields(self, entries: Json, shown: Object) -> Json:
        if not isinstance(entries, list):
            return []
        keys, values = set[str](), set[str]()
        _collect(shown, keys, values)
        return [
            {
                name: self._field_set(value, keys, values) if name == "fieldsV1" else self._names_below(value)
                for name, value in entry.items()
            }
            for entry in entries
            if isinstance(entry, dict)
        ]

    def _field_set(self, value: Json, keys: set[str], values: set[str]) -> Json:
        if not isinstance(value, dict):
            return {}
        return {
            self._path_element(name, keys, values): self._field_set(below, keys, values)
            for name, below in value.items()
        }

    def _path_element(self, name: str, keys: set[str], values: set[str]) -> str:
        prefix, rest = name[:2], name[2:]
        if name == "." or prefix == "i:":
            return name if rest.lstrip("-").isdigit() or name == "." else self._hash(name)
        if prefix == "f:":
            return name if rest in keys or self._is_known(rest) else prefix + self._hash(rest)
        if prefix not in ("k:", "v:"):
            return self._hash(name)
        try:
            named = _decode(rest)
        except msgspec.DecodeError:
            return prefix + _encode(self._hash(rest)).decode()
        found = _map_texts(named, lambda text: text if text in values or self._is_known(text) else self._hash(text))
        return name if found == named else prefix + _encode(found).decode()


def _is_secret(key: str) -> bool:
    return _SECRET.search(key) is not None and not key.endswith(_NO_SECRET_ENDS)


def _collect(value: Json, keys: set[str], values: set[str]) -> None:
    """Collect the keys and texts of a JSON value, without those of managedFields."""
    if isinstance(value, dict):
        keys.update(value)
        for key, each in value.items():
            if key != "managedFields":
                _collect(each, keys, values)
    elif isinstance(value, list):
        for each in value:
            _collect(each, keys, values)
    elif isinstance(value, str):
        values.add(value)


def _map_texts(value: Json, change: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {change(key): _map_texts(each, change) for key, each in value.items()}
    return [_map_texts(each, change) for each in value] if isinstance(value, list) else value


def _is_kubeconfig(content: bytes) -> bool:
    if b"clusters" not in content:
        return False
    try:
        parse_kubeconfig(content, source="")
    except (ConfigError, ValueError, RecursionError):
        return False
    return True


def _kubeconfig(name: str) -> str:
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "hashed", "cluster": {"server": f"https://{name}.invalid"}}],
        "users": [{"name": "hashed", "user": {}}],
        "contexts": [{"name": "hashed", "context": {"cluster": "hashed", "user": "hashed"}}],
        "current-context": "hashed",
    }
    return _encode(config).decode()
