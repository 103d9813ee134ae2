"""Carries plans out: bounded, with preconditions, one failing object never stopping the others."""
