"""AdmissionReview requests as an API server sends them."""

import json


def question(**request):
    complete = {
        "uid": "u-1",
        "kind": {"group": "labels.test", "version": "v1", "kind": "LabelRule"},
        "resource": {"group": "labels.test", "version": "v1", "resource": "labelrules"},
        "requestKind": {"group": "labels.test", "version": "v1", "kind": "LabelRule"},
        "operation": "CREATE",
        "userInfo": {"username": "jane", "groups": ["devs"], "extra": {"a": ["b"]}},
        "object": {},
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions"},
        **request,
    }
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": complete}
    return json.dumps(review).encode()
