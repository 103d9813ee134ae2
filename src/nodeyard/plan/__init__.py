"""Plans as pure data: actions, blocked objects and decisions, and how the CLI renders them."""
