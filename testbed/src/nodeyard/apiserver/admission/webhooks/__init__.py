"""Admission webhooks: configurations, calls and reviews."""
