"""The RBAC kinds as they are stored."""

from nodeyard.apiserver.resources import GroupResource

GROUP = "rbac.authorization.k8s.io"
ROLES = GroupResource(GROUP, "roles")
CLUSTER_ROLES = GroupResource(GROUP, "clusterroles")
ROLE_BINDINGS = GroupResource(GROUP, "rolebindings")
CLUSTER_ROLE_BINDINGS = GroupResource(GROUP, "clusterrolebindings")
