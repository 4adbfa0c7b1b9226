"""Executions as agents tell of them: three kinds of task, each with good and bad ends."""

from __future__ import annotations

from typing import NamedTuple


class Told(NamedTuple):
    """What somebody did, and what came of it."""

    description: str
    summary: str
    success: bool
    errors: tuple[str, ...] = ()


DEPLOYMENTS = [
    Told(
        "Deploy checkout-service v2.14.0 to production",
        "Took a database snapshot, deployed to the canary first and watched error rates for 15 "
        "minutes before promoting. Everything stayed green.",
        True,
    ),
    Told(
        "Deploy checkout service 2.15.1 to prod",
        "Rolled out to canary, checked the Grafana dashboard, then promoted to all pods. No "
        "errors.",
        True,
    ),
    Told(
        "Release checkout-service v2.16.0 to production",
        "Skipped the canary because of the deadline and pushed straight to all pods. Got 502s "
        "within two minutes and had to roll back.",
        False,
        (
            "502 Bad Gateway from ingress after 118 s",
            "rollback took 9 minutes",
        ),
    ),
    Told(
        "Ship checkout-service 2.16.1 to production",
        "Deployed to canary first, waited for the error rate to settle, then promoted "
        "gradually. Smoke tests passed.",
        True,
    ),
    Told(
        "Deploy checkout-service v2.17.0 to production on 2026-10-02",
        "Pushed straight to all pods at 17:45 on Friday. The new config map was missing so the "
        "pods crash-looped; rolled back.",
        False,
        (
            "CrashLoopBackOff: pod checkout-7f9c4d-xk2lp",
            "502 Bad Gateway from ingress after 95 s",
        ),
    ),
    Told(
        "Deploy checkout service v2.17.1 to production",
        "Applied the config map before the rollout, deployed to the canary first, and the smoke"
        " tests passed. JIRA OPS-4412 closed.",
        True,
    ),
    Told(
        "Roll out checkout-service v2.18.0 to production",
        "Did not run the smoke tests and skipped the canary since the change was small. Payment"
        " calls timed out and I rolled back.",
        False,
        ("timeout calling payments after 30 s",),
    ),
    Told(
        "Deploy checkout-service v2.18.1 to production",
        "Canary first, watched error rates, smoke tests passed, promoted to everything. "
        "Finished in 20 minutes.",
        True,
    ),
]
MIGRATIONS = [
    Told(
        "Run the database migration that adds a status column to orders",
        "Added the column as nullable, backfilled in batches of 5000 rows, then set NOT NULL. "
        "No locks were noticed by users.",
        True,
    ),
    Told(
        "Migrate the orders table: add customer_tier column",
        "Used CREATE INDEX CONCURRENTLY and backfilled in batches of 1000 with a sleep between."
        " Took 40 minutes but nobody noticed.",
        True,
    ),
    Told(
        "Database migration: add an index on orders.created_at",
        "Ran a plain CREATE INDEX on the live table; it took an exclusive lock and the writes "
        "queued up for six minutes. Cancelled it.",
        False,
        ("lock timeout: canceling statement due to lock timeout (pid 48211)",),
    ),
    Told(
        "Run the migration that renames orders.total to orders.total_cents",
        "Renamed the column in one step. The old application version was still running and "
        "failed with unknown column errors. Reverted.",
        False,
        ('column "total" does not exist',),
    ),
    Told(
        "Migration: make orders.email NOT NULL",
        "Ran ALTER TABLE on the live table in one transaction, which took an exclusive lock and"
        " blocked all writes. Killed the session after four minutes.",
        False,
        ("lock timeout: canceling statement due to lock timeout (pid 51877)",),
    ),
    Told(
        "Database migration to split orders.name into first and last",
        "Added new columns as nullable, deployed code that writes both, backfilled in batches, "
        "then dropped the old column a week later.",
        True,
    ),
    Told(
        "Run the database migration adding a foreign key from orders to customers",
        "Added the constraint NOT VALID, then validated it separately. Set lock_timeout to 2s "
        "and retried twice.",
        True,
    ),
]
FLAKY_TESTS = [
    Told(
        "Fix the flaky test test_checkout_total in CI",
        "Ran it 200 times locally with a random seed and found that it depended on test order. "
        "Isolated the fixture and it has been stable since.",
        True,
    ),
    Told(
        "Fix flaky test test_websocket_reconnect",
        "Replaced the sleep with an explicit wait on the connection event. 500 runs without a "
        "failure.",
        True,
    ),
    Told(
        "Stabilise the flaky test test_upload_large_file",
        "Increased the timeout from 5 to 30 seconds. It still failed on CI the next day.",
        False,
        (
            "AssertionError: upload not finished",
            "TimeoutError after 30 s",
        ),
    ),
    Told(
        "Fix the flaky test test_login_rate_limit",
        "Added a retry decorator so that it reruns three times. It hid the problem and it "
        "failed again on CI after a week.",
        False,
        ("AssertionError: 429 != 200",),
    ),
    Told(
        "Fix flaky test test_search_pagination",
        "Reproduced it locally by running it with a random seed, saw that two tests shared a "
        "fixture, isolated the fixture.",
        True,
    ),
    Told(
        "Make the flaky test test_email_digest reliable",
        "Increased the timeout again and marked it as slow. Still failed on CI, so I "
        "quarantined it.",
        False,
        ("TimeoutError after 60 s",),
    ),
    Told(
        "Fix the flaky test test_export_csv",
        "Froze the clock and replaced the sleep with an explicit wait. Reproduced locally first"
        " with 100 runs.",
        True,
    ),
    Told(
        "Fix flaky test test_cache_eviction on CI",
        "Replaced the sleep with an explicit wait and froze the clock; 300 runs without a failure.",
        True,
    ),
    Told(
        "Fix the flaky test test_notifications_order",
        "Just added a longer sleep. It passed once and then still failed on CI.",
        False,
        ("AssertionError: [2, 1] != [1, 2]",),
    ),
]
