"""Admission: plugins that mutate and validate every write before it is stored."""
