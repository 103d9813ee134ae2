"""An embedded Kubernetes API server: a transport-free core, `Server.handle(request)`, under a thin HTTP front.

    request ─▶ authenticate ─▶ authorize ─▶ route ─▶ decode ─▶ patch/apply ─▶ mutate ─▶ validate ─▶ admit ─▶ store
                                                                                             watchers ◀─┘

It serves demo, simulation and tests. What it claims it does as kube-apiserver does; docs/apiserver.md lists where not.
"""
