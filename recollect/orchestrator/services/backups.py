"""Backups: one where the caller says, or one beside the data in the place of the oldest."""

from __future__ import annotations

import asyncio
import errno
from functools import partial
from pathlib import Path
from typing import Any

from recollect.orchestrator.calls import Call, reads
from recollect.orchestrator.jobs.fencing import check_fence
from recollect.orchestrator.maintenance import backups
from recollect.orchestrator.off_loop import to_the_end
from recollect.orchestrator.storage.copies import remove_copy
from recollect.orchestrator.storage.interface import Storage
from recollect.protocol import records
from recollect.protocol.errors import InvalidArgument, LeaseLost, StorageFailed, StorageFull
from recollect.protocol.operations import Backup, KeepBackup


class BackupService:
    """Copies the store while it is at work."""

    def __init__(self, storage: Storage, data: Path) -> None:
        self._storage = storage
        self._kept = data / backups.FOLDER_NAME
        # One at a time: what another is just making is not to be taken for what a kill left.
        self._lock = asyncio.Lock()

    @reads(Backup)
    async def backup(self, call: Call, operation: Backup) -> records.BackupMade:
        folder = Path(operation.path)
        if "\x00" in operation.path or not folder.is_absolute():
            raise InvalidArgument("path is not absolute; give the whole path.", field="path")
        manifest = await self._copied(folder)
        return {
            "status": "success",
            "path": manifest["path"],
            "seq": manifest["seq"],
            "bytes": manifest["bytes"],
            "sha256": manifest["sha256"],
        }

    @reads(KeepBackup)
    async def keep_backup(self, call: Call, operation: KeepBackup) -> records.BackupKept:
        async with self._lock:
            folder = self._kept / backups.name_of(call.now_us)
            manifest = await self._copied(folder.absolute())
            if problems := await self._storage.problems_of_backup(str(folder)):
                await to_the_end(remove_copy, folder)
                raise StorageFailed(
                    f"The backup was not kept, since it is damaged: {problems[0]}. "
                    "`recollect doctor` looks at the database itself."
                )
            await self._check_lease(call, folder)
            removed = await to_the_end(backups.remove_oldest, self._kept, operation.keep)
        return {
            "status": "success",
            "path": manifest["path"],
            "seq": manifest["seq"],
            "bytes": manifest["bytes"],
            "sha256": manifest["sha256"],
            "removed": removed,
        }

    async def _check_lease(self, call: Call, folder: Path) -> None:
        """Keep no copy of a caller whose lease has passed on: whoever has it makes their own."""
        try:
            await self._storage.read(partial(check_fence, call))
        except LeaseLost:
            await to_the_end(remove_copy, folder)
            raise

    async def _copied(self, folder: Path) -> dict[str, Any]:
        """A copy of the store in a new folder; nothing is left of one that fails."""
        try:
            return await self._storage.backup(str(folder))
        except FileExistsError:
            raise InvalidArgument(
                f"{folder} exists already; name a new folder.", field="path"
            ) from None
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise StorageFull(
                    "The disk is full; the backup was not made. Free some space.",
                    reason=str(error),
                ) from error
            raise StorageFailed(f"The backup could not be written: {error}.") from error
