"""The dashboard as a process: beside the operator, or alone with a user's kubeconfig."""
