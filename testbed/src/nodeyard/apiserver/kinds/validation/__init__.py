"""What the real server refuses of built-in kinds, and the words it refuses it with.

Every function returns the errors of one piece of an object, in the order in which the server finds them. Metadata is
not checked here: that is the same for all kinds and done in `nodeyard.apiserver.metadata`.
"""
