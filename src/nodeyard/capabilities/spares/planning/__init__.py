"""The steps of the spares plan; `plan.py` calls them in order."""
