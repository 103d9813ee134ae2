"""What each kind says of itself after a pass. Pure."""
