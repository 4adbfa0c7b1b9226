"""Leases: who may do the work that only one may do at a time, and until when.

The token of a lease grows with every holder, and when it is given back; by it their writes are
fenced. When a lease ends is judged by a clock that does not jump: it has ended when this
orchestrator has seen it unrenewed for as long as it lasts. So a wall clock that is put forward by a
day takes no lease from its holder, and one that is put back keeps none alive; and after a restart,
a lease lasts its whole time once more.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from recollect.orchestrator.jobs.fencing import lost
from recollect.orchestrator.storage.interface import Session, WriteTransaction
from recollect.protocol.errors import LimitExceeded

LEASES_MAX = 10_000

FIND = "SELECT holder, token, acquired_us, renewed_us, expires_us FROM leases WHERE name = ?"
COUNT = "SELECT count(*) FROM leases"
TAKE = """
INSERT INTO leases (name, holder, token, acquired_us, renewed_us, expires_us)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, token = excluded.token,
    acquired_us = excluded.acquired_us, renewed_us = excluded.renewed_us,
    expires_us = excluded.expires_us
"""
RENEW = "UPDATE leases SET renewed_us = ?, expires_us = ? WHERE name = ?"
NOBODY = ""


class Lease(msgspec.Struct, frozen=True):
    """One row of `leases`, without its name."""

    holder: str
    token: int
    acquired_us: int
    renewed_us: int
    expires_us: int

    @property
    def held(self) -> bool:
        """Whether it was taken and not given back since."""
        return self.holder != NOBODY


class Sighting(msgspec.Struct, frozen=True):
    """When a lease was first seen as it is, by the clock that does not jump."""

    token: int
    renewed_us: int
    at_s: float


class Leases:
    """Takes, renews and gives back leases. Touched by the writer's thread alone."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._seen: dict[str, Sighting] = {}

    def acquire(
        self, transaction: WriteTransaction, name: str, holder: str, ttl_us: int, now_us: int
    ) -> tuple[Lease, bool]:
        """The lease as it is then, and whether it was given to whoever asks.

        A holder that asks anew is given a new token: what it began under the old one is to have no
        effect any more.
        """
        before = find(transaction, name)
        if before is None:
            self._check_room(transaction)
        elif before.held and before.holder != holder and not self._ended(name, before):
            return before, False
        token = 1 if before is None else before.token + 1
        lease = Lease(holder, token, now_us, now_us, now_us + ttl_us)
        transaction.execute(TAKE, (name, *msgspec.structs.astuple(lease)))
        self._note(name, lease)
        return lease, True

    def renew(
        self,
        transaction: WriteTransaction,
        name: str,
        holder: str,
        token: int,
        ttl_us: int,
        now_us: int,
    ) -> Lease:
        """Keep a lease for longer; also one that has run out, as long as nobody has taken it."""
        before = _held(transaction, name, holder, token)
        lease = msgspec.structs.replace(before, renewed_us=now_us, expires_us=now_us + ttl_us)
        transaction.execute(RENEW, (lease.renewed_us, lease.expires_us, name))
        self._note(name, lease)
        return lease

    def release(
        self, transaction: WriteTransaction, name: str, holder: str, token: int, now_us: int
    ) -> None:
        """Give a lease back; what is still under way under it has no effect from then on."""
        before = _held(transaction, name, holder, token)
        free = Lease(NOBODY, token + 1, before.acquired_us, now_us, now_us)
        transaction.execute(TAKE, (name, *msgspec.structs.astuple(free)))
        self._seen.pop(name, None)

    def _ended(self, name: str, lease: Lease) -> bool:
        seen = self._seen.get(name)
        if seen is None or (seen.token, seen.renewed_us) != (lease.token, lease.renewed_us):
            self._note(name, lease)
            return False
        ttl_s = (lease.expires_us - lease.renewed_us) / 1_000_000
        return self._monotonic() - seen.at_s >= ttl_s

    def _note(self, name: str, lease: Lease) -> None:
        self._seen[name] = Sighting(lease.token, lease.renewed_us, self._monotonic())

    def _check_room(self, transaction: WriteTransaction) -> None:
        ((count,),) = transaction.execute(COUNT)
        if count >= LEASES_MAX:
            raise LimitExceeded(
                f"There are {count:,} leases already, which is the limit leases_max.",
                limit="leases_max",
                maximum=LEASES_MAX,
            )


def find(session: Session, name: str) -> Lease | None:
    """A lease as it lies in its table, if it was ever taken."""
    found = session.execute(FIND, (name,))
    return Lease(*found[0]) if found else None


def _held(session: Session, name: str, holder: str, token: int) -> Lease:
    lease = find(session, name)
    if lease is None or lease.token != token or lease.holder != holder:
        raise lost(name, token)
    return lease
