"""Named placement classes: tenants allow them, applications choose one, admission enforces it on pods."""
