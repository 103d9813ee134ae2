"""The steps of the spares plan, one module each; `plan.py` tells in which order they are taken."""
