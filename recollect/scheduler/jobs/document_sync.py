"""Brings documents up to date with their files: those of the folders that were named, or of the
folders in which the files of known documents lie."""

from __future__ import annotations

import os
from collections.abc import Iterator
from glob import escape
from typing import NamedTuple

from recollect.protocol.operations import ListDocuments, SyncDocuments
from recollect.scheduler.work import STEPS_MAX, Job, Skipped, Work

PAGE = 500
DOCUMENTS_MAX = 1_000_000
# One step works until shortly before its deadline, and the next one goes on.
STEP_S = 30.0
COUNTED = ("synced", "failed", "removed")


class Place(NamedTuple):
    """A folder to bring up to date, or those of its files that fit a pattern."""

    namespace: str
    folder: str
    pattern: str | None = None


async def run(work: Work) -> None:
    if not work.settings.documents.roots:
        raise Skipped("documents.roots names no folder that documents may be read from.")
    if work.dry_run:
        raise Skipped("What has changed in a file is only known when it is read.")
    named = work.settings.jobs.document_sync.folders
    places = list(_named(named)) if named else await _known(work)
    work.counts.update(folders=len(places), files=0)
    for place in places:
        for _ in range(STEPS_MAX):
            answer = await work.call(
                SyncDocuments(place.folder, place.namespace, pattern=place.pattern), STEP_S
            )
            work.add(answer, COUNTED)
            await work.tell(at=place.folder, done=answer["done"], of=answer["files"])
            if answer["complete"]:
                break
        work.counts["files"] += answer["files"]


def _named(folders: tuple[str, ...]) -> Iterator[Place]:
    for text in folders:
        namespace, _, folder = text.partition("=")
        yield Place(namespace, folder)


async def _known(work: Work) -> list[Place]:
    """The folders of known documents: of each namespace and root the innermost that holds them all,
    and there only files of the kinds that are known. What was never read in stays out."""
    roots = [os.path.realpath(os.path.expanduser(root)) for root in work.settings.documents.roots]
    sources: dict[tuple[str, str], list[str]] = {}
    cursor = None
    for _ in range(DOCUMENTS_MAX // PAGE):
        page = await work.call(ListDocuments(limit=work.page(PAGE), cursor=cursor))
        for document in page["documents"]:
            source = document["source"]
            root = next((r for r in roots if source.startswith(r.rstrip("/") + "/")), None)
            if root is not None:
                sources.setdefault((document["namespace"], root), []).append(source)
        cursor = page["cursor"]
        if cursor is None:
            break
    places = []
    for (namespace, _), found in sources.items():
        folder = os.path.commonpath([os.path.dirname(source) for source in found])
        if len(found) == 1:
            places.append(Place(namespace, folder, escape(os.path.basename(found[0]))))
            continue
        names = sorted({_alike(source) for source in found})
        places += [Place(namespace, folder, f"**/{name}") for name in names]
    return places


def _alike(source: str) -> str:
    """A pattern of the names of files like a known one: of its kind, or if its name has no ending
    that tells it, of its very name."""
    name = os.path.basename(source)
    ending = os.path.splitext(name)[1]
    return f"*{escape(ending)}" if ending else escape(name)


JOB = Job("document_sync", run, lambda settings: bool(settings.documents.roots))
