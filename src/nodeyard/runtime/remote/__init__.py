"""Remote clusters: the transport, connection, health probe and caches of each."""
