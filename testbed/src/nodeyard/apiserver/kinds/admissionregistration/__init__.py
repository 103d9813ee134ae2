"""Kinds that configure admission."""
