"""Process facilities for modules with side effects: clock, logs, metrics, HTTP server, certificates."""
