"""Role-based access control: rules, who holds them, what nobody may grant, and the roles every cluster starts with."""
