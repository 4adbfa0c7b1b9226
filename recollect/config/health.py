"""Settings of the health manager: what it watches how often, when it worries, whom it tells.

Declared like all others, see settings.py.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

# fmt: off


class HealthSettings(Struct, frozen=True):
    """The process that watches everything, tells how it is, and serves the dashboard."""

    host: Annotated[str, Meta(min_length=1, description=(
        "Address that its web side listens on. Beyond loopback nothing is shown without the token."
        ))] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535, description=(
        "Its port; 0 takes any free one."))] = 7332
    dashboard: Annotated[bool, Meta(description=(
        "Serve the dashboard, where the extra `dashboard` is installed."))] = True
    hosts_allowed: Annotated[tuple[str, ...], Meta(description=(
        "Names by which browsers may ask for it, beside those of the address itself; any other "
        "Host or Origin is refused."))] = ()
    token_file: Annotated[Annotated[str, Meta(min_length=1)] | None, Meta(description=(
        "File of the token to sign in with, made at the first start; null is `health/token` in "
        "the data folder."))] = None
    session_hours: Annotated[float, Meta(gt=0, le=8760, description=(
        "How long somebody who signed in stays so."))] = 12.0
    probe_interval_s: Annotated[float, Meta(ge=0.02, le=3600, description=(
        "Pause between two looks at the orchestrator; those at Redis, the scheduler, the gateway "
        "and breakers follow it."))] = 2.0
    probe_timeout_s: Annotated[float, Meta(ge=0.02, le=600, description=(
        "Longest wait for the answer to one question of a probe."))] = 2.0
    canary_interval_s: Annotated[float, Meta(ge=0.02, le=86_400, description=(
        "Pause between two canaries: a memory that is written, searched, read and deleted."
        ))] = 60.0
    canary_slow_ms: Annotated[int, Meta(ge=1, le=600_000, description=(
        "A canary that takes longer than this is a sign of trouble."))] = 5000
    index_interval_s: Annotated[float, Meta(ge=0.02, le=604_800, description=(
        "Pause between two comparisons of the vector index with the database, which repair what "
        "differs."))] = 3600.0
    index_timeout_s: Annotated[float, Meta(ge=0.1, le=3600, description=(
        "Longest wait for one comparison."))] = 120.0
    bad_in_a_row: Annotated[int, Meta(ge=1, le=100, description=(
        "Looks in a row that have to be bad before a state gets worse."))] = 3
    good_in_a_row: Annotated[int, Meta(ge=1, le=100, description=(
        "Looks in a row that have to be good before a state gets better."))] = 3
    unanswered_max: Annotated[int, Meta(ge=1, le=100, description=(
        "Looks in a row that the orchestrator may leave unanswered before it counts as down."
        ))] = 2
    writer_lag_s_max: Annotated[float, Meta(gt=0, le=3600, description=(
        "Wait of the oldest write beyond which the orchestrator is degraded."))] = 2.0
    queue_share_max: Annotated[float, Meta(gt=0, le=1, description=(
        "Part of `storage.write_queue_max` that may wait before it is degraded; of "
        "`network.in_flight_max` likewise."))] = 0.8
    disk_free_mb_min: Annotated[int, Meta(ge=0, le=1 << 30, description=(
        "Free disk space below which it is degraded."))] = 1024
    growth_mb_per_week_max: Annotated[int, Meta(ge=1, le=1 << 30, description=(
        "Growth of the database in a week beyond which it is degraded."))] = 10_240
    embedding_lag_s_max: Annotated[float, Meta(gt=0, le=604_800, description=(
        "How long a memory may wait for its vector before the index is degraded."))] = 300.0
    job_late_s_max: Annotated[float, Meta(gt=0, le=604_800, description=(
        "How late a job may be before the scheduler is degraded."))] = 300.0
    breaker_window_s: Annotated[float, Meta(gt=0, le=86_400, description=(
        "How long a client's report of an open circuit, a timeout or nobody at the endpoint counts "
        "as recent."))] = 120.0
    gateway_url: Annotated[Annotated[str, Meta(min_length=1)] | None, Meta(description=(
        "Address at which the gateway is asked whether it is ready; null asks the one that has "
        "left word in the data folder, if there is one."))] = None
    webhook_url: Annotated[Annotated[str, Meta(min_length=1)] | None, Meta(description=(
        "Where a change of state is told by an HTTP POST of JSON; null tells nobody."))] = None
    webhook_timeout_s: Annotated[float, Meta(gt=0, le=600, description=(
        "Longest wait for one answer of it."))] = 5.0
    webhook_attempts_max: Annotated[int, Meta(ge=1, le=20, description=(
        "Attempts for one alert, the first included; the pause between them doubles."))] = 4
    webhook_backoff_ms: Annotated[int, Meta(ge=1, le=60_000, description=(
        "Pause before the second attempt."))] = 500
    alerts_waiting_max: Annotated[int, Meta(ge=1, le=100_000, description=(
        "Alerts that may wait for the webhook or the orchestrator; the oldest make room."
        ))] = 100
    history_max: Annotated[int, Meta(ge=1, le=1_000_000, description=(
        "Changes of state that are kept in `health/history.jsonl` of the data folder."))] = 1000
    counts_interval_s: Annotated[float, Meta(ge=0, le=3600, description=(
        "The orchestrator counts memories for `metrics` at most so often, and never for more than "
        "a hundredth of its time."))] = 10.0
