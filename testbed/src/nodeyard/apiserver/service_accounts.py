"""Service account tokens: TokenRequest, and authentication by token.

A token is valid as long as its service account exists, and the pod, secret or node it is bound to. An object that was
deleted and created again has another uid and does not count.
"""

from __future__ import annotations

from datetime import timedelta

from nodeyard.apiserver.errors import bad_request, conflict, invalid, not_found
from nodeyard.apiserver.kinds.service_account import TOKEN_REQUEST
from nodeyard.apiserver.resources import GroupResource
from nodeyard.apiserver.store import Store, Stored
from nodeyard.apiserver.tokens import ISSUER, Binding, Claims, Reference, TokenSigner
from nodeyard.apiserver.transport import User
from nodeyard.apiserver.users import AUTHENTICATED, ServiceAccountName
from nodeyard.kube import fields
from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.process.clock import Clock

_ACCOUNTS = GroupResource("", "serviceaccounts")
_BINDABLE = {
    "Pod": GroupResource("", "pods"),
    "Secret": GroupResource("", "secrets"),
    "Node": GroupResource("", "nodes"),
}
_EXTRA = "authentication.kubernetes.io/"


class ServiceAccountTokens:
    """Issues and validates tokens for the service accounts of a store."""

    def __init__(self, store: Store, clock: Clock, signer: TokenSigner | None = None) -> None:
        self._store = store
        self._clock = clock
        self._signer = signer or TokenSigner()

    def create(self, namespace: str, name: str, request: Object) -> Object:
        """Handle POST of `serviceaccounts/NAME/token`; return the TokenRequest with its token."""
        metadata, spec = request.get("metadata") or {}, request.get("spec") or {}
        _check_url(namespace, name, metadata)
        account = self._store.get(_ACCOUNTS, namespace, name)
        if account is None:
            raise not_found("", "serviceaccounts", name)
        if (metadata.get("uid") or account.uid) != account.uid:
            why = (
                f"the UID in the token request ({metadata['uid']}) does not match the UID of the service account "
                f"({account.uid})"
            )
            raise conflict(TOKEN_REQUEST.group, TOKEN_REQUEST.kind, name, why)
        seconds = 3600 if spec.get("expirationSeconds") is None else spec["expirationSeconds"]
        _check_duration(seconds)
        audiences = tuple(spec.get("audiences") or (ISSUER,))
        reference = spec.get("boundObjectRef")
        binding = self._bind(account, reference)
        now = self._clock.now()
        return {
            "kind": TOKEN_REQUEST.kind,
            "apiVersion": TOKEN_REQUEST.api_version,
            "metadata": {
                **metadata,
                "name": name,
                "namespace": namespace,
                "uid": account.uid,
                "creationTimestamp": format_rfc3339(now),
            },
            "spec": {"audiences": list(audiences), "expirationSeconds": seconds, "boundObjectRef": reference},
            "status": {
                "token": self._signer.issue(binding, audiences, now, seconds),
                "expirationTimestamp": format_rfc3339(now + timedelta(seconds=seconds)),
            },
        }

    def identify(self, token: str, audiences: tuple[str, ...] = (ISSUER,)) -> User | None:
        """Return the user of a valid token for one of these audiences, else None."""
        claims = self._signer.read(token, self._clock.now())
        if claims is None or not set(audiences) & set(claims.aud):
            return None
        binding = claims.binding
        if not self._is_alive(_ACCOUNTS, binding.namespace, binding.serviceaccount):
            return None
        for kind, reference in (("Pod", binding.pod), ("Secret", binding.secret)):
            if reference and not self._is_alive(_BINDABLE[kind], binding.namespace, reference):
                return None
        if binding.node and not binding.pod and not self._is_alive(_BINDABLE["Node"], "", binding.node):
            return None
        account = ServiceAccountName(binding.namespace, binding.serviceaccount.name)
        groups = (*account.groups, AUTHENTICATED)
        return User(account.username, groups, binding.serviceaccount.uid, _extra(claims))

    def audiences(self, token: str) -> tuple[str, ...]:
        claims = self._signer.read(token, self._clock.now())
        return claims.aud if claims else ()

    def _is_alive(self, resource: GroupResource, namespace: str, reference: Reference) -> bool:
        stored = self._store.get(resource, namespace, reference.name)
        return stored is not None and stored.uid == reference.uid

    def _bind(self, account: Stored, reference: Object | None) -> Binding:
        namespace, name = account.key
        owner = Reference(name, account.uid)
        if reference is None:
            return Binding(namespace, owner)
        kind, bound_name = reference.get("kind", ""), reference.get("name", "")
        resource = _BINDABLE.get(kind)
        if resource is None or reference.get("apiVersion", "v1") != "v1":
            group, _, version = str(reference.get("apiVersion", "")).rpartition("/")
            raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
        stored = self._store.get(resource, "" if kind == "Node" else namespace, bound_name)
        if stored is None:
            raise not_found("", resource.plural, bound_name)
        bound = Reference(bound_name, stored.uid)
        if reference.get("uid", bound.uid) != bound.uid:
            why = (
                f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
            raise conflict("", kind, bound_name, why)
        if kind != "Pod":
            return Binding(namespace, owner, **{kind.lower(): bound})
        return Binding(namespace, owner, pod=bound, node=self._node_of(stored, name))

    def _node_of(self, pod: Stored, account: str) -> Reference | None:
        spec = pod.object().get("spec") or {}
        if spec.get("serviceAccountName", "") != account:
            raise bad_request(
                f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount name.'
            )
        name = spec.get("nodeName")
        if not name:
            return None
        node = self._store.get(_BINDABLE["Node"], "", name)
        return Reference(name, node.uid if node else "")


def _extra(claims: Claims) -> dict[str, tuple[str, ...]]:
    extra: dict[str, tuple[str, ...]] = {f"{_EXTRA}credential-id": (f"JTI={claims.jti}",)}
    for noun, reference in (("node", claims.binding.node), ("pod", claims.binding.pod)):
        if reference:
            extra[f"{_EXTRA}{noun}-name"] = (reference.name,)
            if reference.uid:
                extra[f"{_EXTRA}{noun}-uid"] = (reference.uid,)
    return extra


def _check_url(namespace: str, name: str, metadata: Object) -> None:
    for field, wanted in (("name", name), ("namespace", namespace)):
        given = metadata.get(field) or wanted
        if given != wanted:
            error = fields.invalid(f"metadata.{field}", given, f"must match the service account {field} if specified")
            raise invalid(TOKEN_REQUEST.group, TOKEN_REQUEST.kind, name, [error])


def _check_duration(seconds: int) -> None:
    path = "spec.expirationSeconds"
    if seconds < 600:
        detail = "may not specify a duration less than 10 minutes"
    elif seconds > 1 << 32:
        detail = "may not specify a duration larger than 2^32 seconds"
    else:
        return
    raise invalid(TOKEN_REQUEST.group, TOKEN_REQUEST.kind, "", [fields.invalid(path, seconds, detail)])
