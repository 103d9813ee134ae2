"""Admission of each kind. A review is a pure function of the request and the cache."""
