"""Configuration of a service on a node: validated as the service reads it, rendered into files, never rewritten."""
