"""AffinityClass: tenants allow classes, applications choose one, admission enforces it on pods."""
