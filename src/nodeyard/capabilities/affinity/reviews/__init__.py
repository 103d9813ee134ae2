"""Admission reviews of each kind. A review is pure: it decides from the request and the cache."""
