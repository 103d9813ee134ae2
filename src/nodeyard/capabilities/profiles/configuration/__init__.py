"""The configuration a node's service gets: judged as its service will read it, rendered into files, never rewritten."""
