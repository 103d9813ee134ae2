"""The engine: turns watch events into plans and plans into writes, for every registered capability."""
