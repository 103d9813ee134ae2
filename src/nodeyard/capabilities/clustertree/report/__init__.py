"""Reports the result of a reconcile: status, events and metrics."""
