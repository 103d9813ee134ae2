"""The reconcile loop: workqueue, workers, reconciler, planner threads and results."""
