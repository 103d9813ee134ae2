"""CustomResourceDefinitions: what they must be, and the resources they make."""
