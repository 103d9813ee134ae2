"""ValidatingAdmissionPolicy: rules about objects, written as expressions and judged inside the server."""
