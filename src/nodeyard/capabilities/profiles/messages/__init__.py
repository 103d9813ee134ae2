"""Messages of profiles: one type per reason, for actions, conditions, Events, `why` and the dashboard.

A text about a fault names the object, the field or annotation key, the value and the remedy.
"""
