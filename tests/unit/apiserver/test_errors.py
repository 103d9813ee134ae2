from nodeyard.apiserver.errors import CAUSES_MAX, CAUSES_SIZE, invalid
from nodeyard.kube.fields import invalid as wrong
from nodeyard.kube.fields import required


def test_a_422_names_every_error() -> None:
    error = invalid("", "Pod", "p", [required("spec.a"), required("spec.b")])

    assert error.message == 'Pod "p" is invalid: [spec.a: Required value, spec.b: Required value]'
    assert error.details is not None
    assert [cause["field"] for cause in error.details["causes"]] == ["spec.a", "spec.b"]


def test_a_422_counts_the_errors_beyond_the_limit() -> None:
    error = invalid("", "Pod", "p", [required(f"spec.f{number}") for number in range(CAUSES_MAX + 5)])

    assert error.message.endswith(f"spec.f{CAUSES_MAX - 1}: Required value, and 5 more]")
    assert error.details is not None
    assert len(error.details["causes"]) == CAUSES_MAX


def test_a_422_counts_the_errors_whose_texts_would_make_it_large() -> None:
    error = invalid("", "Pod", "p", [wrong("spec.a", "x" * CAUSES_SIZE, f"fault {number}") for number in range(5)])

    assert error.message.endswith(": fault 0, and 4 more]")
    assert len(error.message) < CAUSES_SIZE + 100
