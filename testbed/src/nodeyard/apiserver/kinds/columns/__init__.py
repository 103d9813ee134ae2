"""What `kubectl get` shows of built-in kinds: columns, and the cells of a row."""
