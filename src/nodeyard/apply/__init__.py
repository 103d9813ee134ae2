"""Carries plans out: bounded, with preconditions, one failing object never stopping the others.

applier     a plan to an outcome: schedule and running (what may start), sending (verbs), settling (no answer),
            verdicts (what an answer means), patience (how often to ask again)
status      the status of objects, last and only where it differs
recorder    Kubernetes Events, counted rather than repeated
"""
