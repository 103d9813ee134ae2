"""ValidatingAdmissionPolicy: CEL validations of writes."""
