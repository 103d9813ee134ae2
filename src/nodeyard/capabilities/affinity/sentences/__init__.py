"""Reasons and facts to sentences, part by part; `messages` joins them."""
