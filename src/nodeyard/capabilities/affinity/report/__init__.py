"""Status, events and metrics of a reconcile."""
