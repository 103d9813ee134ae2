"""What a decision is, pure: actions, plans, refusals, explanations, and how they are shown."""
