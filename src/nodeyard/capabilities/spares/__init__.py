"""Spares: takes spare nodes and makes them what a template says, keeps them so, and gives them back.

Read in this order: `types` (what a user writes), `snapshot` (what is looked at), `plan` and `planning` (what is
decided), `status` and `events` (what is said about it), `messages` (in which words).
"""
