"""Leases: taken, renewed and given back."""

from __future__ import annotations

from collections.abc import Callable

from recollect.orchestrator.calls import Call, record, writes
from recollect.orchestrator.clock import to_iso
from recollect.orchestrator.jobs import rows
from recollect.orchestrator.jobs.leases import Leases
from recollect.orchestrator.storage.interface import WriteTransaction
from recollect.protocol import records
from recollect.protocol.operations import (
    SCHEDULER_LEASE,
    AcquireLease,
    ReleaseLease,
    RenewLease,
)


class LeaseService:
    """Who holds which lease. A renewal, which comes every few seconds, leaves no trace beside its
    own row; who took a lease and gave it back stands in the journal."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases

    @writes(AcquireLease)
    def acquire_lease(
        self, call: Call, operation: AcquireLease
    ) -> Callable[[WriteTransaction], records.LeaseAcquired]:
        name, holder = operation.name, operation.holder
        ttl_us = int(operation.ttl_s * 1_000_000)

        def write(transaction: WriteTransaction) -> records.LeaseAcquired:
            lease, acquired = self._leases.acquire(transaction, name, holder, ttl_us, call.now_us)
            if acquired:
                self._lose_runs(transaction, name, lease.token, call.now_us)
                detail = f"{holder} took it as number {lease.token}"
                record(call, transaction, subject=name, detail=detail)
            return {
                "status": "success",
                "acquired": acquired,
                "holder": lease.holder,
                "token": lease.token if acquired else None,
                "expires_at": to_iso(lease.expires_us),
            }

        return write

    @writes(RenewLease)
    def renew_lease(
        self, call: Call, operation: RenewLease
    ) -> Callable[[WriteTransaction], records.LeaseRenewed]:
        ttl_us = int(operation.ttl_s * 1_000_000)

        def write(transaction: WriteTransaction) -> records.LeaseRenewed:
            lease = self._leases.renew(
                transaction,
                operation.name,
                operation.holder,
                operation.token,
                ttl_us,
                call.now_us,
            )
            return {
                "status": "success",
                "holder": lease.holder,
                "token": lease.token,
                "expires_at": to_iso(lease.expires_us),
            }

        return write

    @writes(ReleaseLease)
    def release_lease(
        self, call: Call, operation: ReleaseLease
    ) -> Callable[[WriteTransaction], records.LeaseReleased]:
        name, holder, token = operation.name, operation.holder, operation.token

        def write(transaction: WriteTransaction) -> records.LeaseReleased:
            self._leases.release(transaction, name, holder, token, call.now_us)
            self._lose_runs(transaction, name, token + 1, call.now_us)
            seq = record(call, transaction, subject=name, detail=f"{holder} gave it back")
            return {"status": "success", "released": True, "seq": seq}

        return write

    def _lose_runs(self, transaction: WriteTransaction, name: str, token: int, now_us: int) -> None:
        if name == SCHEDULER_LEASE:
            rows.lose(transaction, token, now_us)
