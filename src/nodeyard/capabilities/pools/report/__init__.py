"""Reports of a reconcile: status, events and metrics."""
