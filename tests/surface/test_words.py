"""The words that a bundle keeps are those of the texts of today, and no common passwords."""

from __future__ import annotations

import pytest
from tools.words import PASSWORDS, WORDS, words

from nodeyard.bundle.redaction import HASHED, Redactor, known_words


def test_the_words_of_bundles_have_not_drifted():
    assert WORDS.read_text("ascii").split() == words(), "run `make crds`"


def test_no_common_password_is_a_word_of_bundles():
    assert not {each.lower() for each in known_words()} & PASSWORDS


@pytest.mark.parametrize("word", sorted(PASSWORDS))
def test_a_common_password_is_hashed_in_a_text(word):
    assert Redactor().text(word).startswith(HASHED)
