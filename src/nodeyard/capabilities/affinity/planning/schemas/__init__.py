"""Schemas of applications: from the JSON schema of a chart to the structural schema of a CRD."""
