"""Executes plans: bounded concurrency, preconditions, and one failing object never stops the others.

applier     plan in, outcome out; uses action_graph (order), writers (one per cluster: sends, confirms lost answers),
                retry (backoff, Retry-After) and outcome (results)
status      status writer: last in a pass, and only if the status differs
recorder    Kubernetes Events: deduplicated into series
"""
