"""Admission: what is asked about every write before it is stored. Mutating first, then validating."""
