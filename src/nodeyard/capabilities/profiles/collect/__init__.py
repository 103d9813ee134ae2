"""Read snapshots from the cache: of nodes, and of profiles, roles and ProfileServices."""
