"""RBAC: rules, roles, bindings, escalation checks and the bootstrap policy."""
