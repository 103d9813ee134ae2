"""The demo: a simulated fleet with every capability at work on it."""
