"""What is particular to each built-in kind, one strategy each, a family a module."""
