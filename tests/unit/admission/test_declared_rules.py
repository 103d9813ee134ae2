"""Webhook rules for kinds that users declare."""

from __future__ import annotations

from typing import Any

from nodeyard.runtime.webhooks import Webhook, WebhookRule, allowed

KNOWN = WebhookRule("example.dev", ("widgets",))


def webhook(**given: Any) -> Webhook:
    return Webhook(name="widgets", rules=(KNOWN,), review=lambda _review, _view: allowed(), **given)


def declared(view: Any) -> list[WebhookRule]:
    return [WebhookRule("example.dev", (each,)) for each in view]


def test_dynamic_rules_are_added_to_the_static_ones() -> None:
    found = webhook(further=declared).as_of(["gadgets"])  # type: ignore[arg-type]
    assert found.rules == (KNOWN, WebhookRule("example.dev", ("gadgets",)))


def test_the_same_view_gives_the_same_webhook() -> None:
    one = webhook(further=declared)
    assert one.as_of(["a", "b"]) == one.as_of(["a", "b"])  # type: ignore[arg-type]
    assert one.as_of(["a"]) != one.as_of(["b"])  # type: ignore[arg-type]


def test_a_webhook_without_further_rules_stays_as_it_is() -> None:
    plain = webhook()
    assert plain.as_of(["gadgets"]) is plain  # type: ignore[arg-type]
