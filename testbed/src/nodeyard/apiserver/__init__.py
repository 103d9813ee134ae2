"""An embedded Kubernetes API server: a core without transport, `Server.handle(request)`, behind an HTTPS listener.

    request ─▶ authenticate ─▶ authorize ─▶ route ─▶ decode ─▶ patch/apply ─▶ mutate ─▶ validate ─▶ admit ─▶ store
                                                                                             watchers ◀─┘

It serves the demo, the simulation and tests. docs/apiserver.md lists the differences to kube-apiserver.
"""
