"""The vocabulary of Kubernetes, pure: names, fields, selectors, quantities, patches. No I/O, no clock."""
