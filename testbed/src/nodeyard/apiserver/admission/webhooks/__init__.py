"""Admission webhooks: which are meant, what they are asked, how they are reached and what their answer does."""
