"""The dashboard: one web page and its live feed. It knows no capability by name."""
