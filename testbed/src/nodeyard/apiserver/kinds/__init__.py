"""The kinds that Kubernetes has built in: their types, defaults, validation and columns."""
