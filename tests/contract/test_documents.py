"""Documents through the services: indexed, brought up to date, found, walled off, purged."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from recollect.config.settings import EmbeddingSettings, Settings
from recollect.config.sharing import DocumentsSettings, TrustSettings
from recollect.orchestrator.access.grants import Grant, Grants
from recollect.orchestrator.access.identities import Identity
from recollect.protocol import errors
from recollect.protocol.operations import (
    AddMemory,
    DeleteDocument,
    DeleteMemory,
    GetMemory,
    History,
    IndexDocument,
    ListDocuments,
    ListMemories,
    Purge,
    SearchDocuments,
    SearchMemory,
    SyncDocuments,
    UpdateMemory,
)
from tests.harness.worlds import World

GUIDE = """# Apollo guide

How the {what} is run.

## Install

{install}

## Operate

{operate}
"""
THINGS = ["archive", "launcher", "console", "antenna", "valve", "hatch", "beacon", "cabin", "mast"]
INSTALL = "\n\n".join(
    f"Put the {a} beside the {b} before you look for its {c} on shelf {n}."
    for n, (a, b, c) in enumerate(
        zip(THINGS, THINGS[3:] + THINGS, THINGS[5:] + THINGS, strict=False)
    )
)
OPERATE = "\n\n".join(
    f"Turn the yellow key of the {a} until lamp {n} is lit, then leave the {b}."
    for n, (a, b) in enumerate(zip(THINGS, THINGS[4:] + THINGS, strict=False))
)


@pytest.fixture
def world(storage_url: str, tmp_path: Path, folder: Path) -> Iterator[World]:
    settings = Settings(
        embedding=EmbeddingSettings(provider="hashed"),
        documents=DocumentsSettings(roots=(str(folder),), chunk_chars=400, file_bytes_max=100_000),
    )
    world = World(storage_url, tmp_path / "data", settings)
    yield world
    world.close()


def guide(what: str = "rocket", install: str = INSTALL, operate: str = OPERATE) -> str:
    return GUIDE.format(what=what, install=install, operate=operate)


def chunks(world: World, document_id: str) -> list[dict[str, Any]]:
    """All chunks of a document, in their order."""
    found = world(SearchDocuments("anything at all", 100, document_id=document_id))["results"]
    return sorted(found, key=lambda hit: hit["metadata"]["position"])


def listed(world: World, **fields: Any) -> dict[str, str]:
    """The statuses of all documents, by the ends of their sources."""
    found = world(ListDocuments(**fields))["documents"]
    return {d["source"].rsplit("/", 1)[-1]: d["document_status"] for d in found}


def age(path: Path, seconds: int) -> None:
    """Let a file have been changed at another time."""
    at = path.stat().st_mtime - seconds
    os.utime(path, (at, at))


def test_a_text_becomes_chunks_that_say_where_they_stand(world: World) -> None:
    answer = world(IndexDocument(text=guide(), source="guide.md", namespace="project:apollo"))
    document = answer["document"]
    assert (document["title"], document["document_type"]) == ("Apollo guide", "markdown")
    assert (document["document_status"], document["error"]) == ("synced", None)
    assert answer["added"] == document["chunks"] > 3
    assert (answer["kept"], answer["removed"]) == (0, 0)
    found = chunks(world, document["id"])
    assert [c["metadata"]["position"] for c in found] == list(range(1, document["chunks"] + 1))
    for chunk in found:
        assert (chunk["memory_type"], chunk["source"]) == ("knowledge", "guide.md")
        assert chunk["namespace"] == "project:apollo"
        assert chunk["metadata"]["document_id"] == document["id"]
        assert chunk["metadata"]["title"] == "Apollo guide"
    last = found[-1]
    assert last["metadata"]["heading"] == "Apollo guide > Operate"
    assert "yellow key" in last["content"]
    stored = world(GetMemory(last["id"]))["memory"]
    assert stored["metadata"]["heading"] == "Apollo guide > Operate"


def test_the_best_passage_is_found_and_other_memories_are_not(world: World) -> None:
    world(AddMemory("Turn the yellow key until the lamp is lit.", "knowledge"))
    first = world(IndexDocument(text=guide(), source="a.md", namespace="project:apollo"))
    world(IndexDocument(text="The moon is far away.\n", source="b.txt"))
    best = world(SearchDocuments("turn the yellow key until the lamp is lit", 2, explain=True))
    assert best["count"] == 2
    assert all("Operate" in hit["metadata"]["heading"] for hit in best["results"])
    assert best["results"][0]["explanation"]["semantic"] > 0
    below = world(SearchDocuments("moon", 50, namespace="project:apollo"))["results"]
    assert {hit["source"] for hit in below} == {"a.md"}
    everything = world(SearchDocuments("moon", 50))
    assert everything["count"] == first["added"] + 1
    page = world(SearchDocuments("yellow key", 1))
    following = world(SearchDocuments("yellow key", 1, cursor=page["cursor"]))
    assert page["results"][0]["id"] != following["results"][0]["id"]


def test_only_what_changed_is_made_anew(world: World) -> None:
    def index(text: str) -> Any:
        return world(IndexDocument(text=text, source="guide.md"))

    first = index(guide())
    document_id = first["document"]["id"]
    before = {c["content"]: c["id"] for c in chunks(world, document_id)}
    again = index(guide())
    assert (again["added"], again["kept"], again["removed"]) == (0, first["added"], 0)
    assert again["document"] == first["document"]
    changed = index(guide(operate="Pull the red lever."))
    assert changed["document"]["id"] == document_id
    assert changed["added"] == 1 and changed["removed"] >= 1
    assert changed["kept"] == len(before) - changed["removed"]
    after = chunks(world, document_id)
    assert sum(before.get(c["content"]) == c["id"] for c in after) == changed["kept"]
    assert not any("yellow key" in c["content"] for c in after)
    assert [c["metadata"]["position"] for c in after] == list(range(1, len(after) + 1))
    moved = index(guide(install="Read this first.\n\n" + INSTALL, operate="Pull the red lever."))
    assert moved["added"] <= 3 < moved["kept"] + moved["added"]
    [lever] = [c for c in chunks(world, document_id) if "red lever" in c["content"]]
    [old] = [c for c in after if "red lever" in c["content"]]
    assert lever["id"] == old["id"]
    assert lever["metadata"]["line"] > old["metadata"]["line"]
    # A chunk that only moved is not written again.
    assert world(History(lever["id"]))["count"] == 1


def test_what_somebody_deleted_of_a_document_comes_back_when_it_is_indexed_again(
    world: World,
) -> None:
    first = world(IndexDocument(text=guide(), source="guide.md"))
    gone = chunks(world, first["document"]["id"])[1]
    world(DeleteMemory(gone["id"]))
    again = world(IndexDocument(text=guide(), source="guide.md"))
    assert (again["added"], again["kept"]) == (1, first["added"] - 1)
    back = chunks(world, first["document"]["id"])[1]
    assert back["content"] == gone["content"] and back["id"] != gone["id"]


def test_another_title_or_trust_reaches_the_chunks_that_stay(world: World) -> None:
    first = world(IndexDocument(text=guide(), source="guide.md"))
    named = world(IndexDocument(text=guide(), source="guide.md", title="By hand", trust=0.25))
    assert (named["added"], named["kept"]) == (0, first["added"])
    for chunk in chunks(world, first["document"]["id"]):
        assert (chunk["metadata"]["title"], chunk["trust"]) == ("By hand", 0.25)
    # A title that was given stays.
    later = world(IndexDocument(text=guide("ship"), source="guide.md"))
    assert later["document"]["title"] == "By hand"


def test_a_text_without_a_source_is_the_same_document_again(world: World) -> None:
    first = world(IndexDocument(text="plain words\n"))
    again = world(IndexDocument(text="plain words\n"))
    assert again["document"]["id"] == first["document"]["id"] and again["added"] == 0
    assert world(IndexDocument(text="plain words\n", namespace="user:b"))["added"] == 1
    assert world(IndexDocument(text="other words\n"))["added"] == 1


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "invalid_argument"),
        ({"path": "/x", "text": "y"}, "invalid_argument"),
        ({"path": "/x", "source": "y"}, "invalid_argument"),
        ({"text": "y", "source": "  "}, "invalid_argument"),
        ({"text": "y", "document_type": "pdf"}, "invalid_argument"),
        ({"text": "y", "namespace": "nowhere"}, "invalid_argument"),
        ({"text": "y", "source": "s" * 513}, "limit_exceeded"),
        ({"text": "y" * 100_001}, "limit_exceeded"),
        ({"text": ""}, "unreadable_document"),
        ({"text": " \n\t"}, "unreadable_document"),
        ({"text": "a\x00b"}, "unreadable_document"),
    ],
)
def test_what_cannot_be_indexed_is_refused_and_leaves_nothing(
    world: World, fields: dict[str, Any], code: str
) -> None:
    with pytest.raises(errors.RecollectError) as caught:
        world(IndexDocument(**fields))
    assert caught.value.code == code
    assert listed(world) == {}


def test_a_document_is_deleted_with_its_chunks_which_can_be_restored(world: World) -> None:
    kept = world(IndexDocument(text="Another text stays.\n", source="other.txt"))
    answer = world(IndexDocument(text=guide(), source="guide.md"))
    document_id = answer["document"]["id"]
    deleted = world(DeleteDocument(document_id))
    assert deleted["removed"] == answer["added"]
    assert listed(world) == {"other.txt": "synced"}
    assert [h["source"] for h in world(SearchDocuments("key", 50))["results"]] == ["other.txt"]
    with pytest.raises(errors.NotFound):
        world(DeleteDocument(document_id))
    with pytest.raises(errors.NotFound):
        world(SearchDocuments("key", document_id=document_id))
    everything = world(ListMemories(include_deleted=True, limit=100))["memories"]
    assert len(everything) == answer["added"] + kept["added"]


def test_documents_are_listed_page_by_page_and_by_status(world: World, folder: Path) -> None:
    for number in range(5):
        world(IndexDocument(text=f"text {number}", source=f"{number}.txt", namespace="user:a"))
    (folder / "broken.txt").write_bytes(b"\xff\xfe\xff")
    world(SyncDocuments(str(folder), "user:b"))
    found: list[str] = []
    cursor = None
    while True:
        page = world(ListDocuments(limit=2, cursor=cursor))
        found += [document["source"] for document in page["documents"]]
        if (cursor := page["cursor"]) is None:
            break
    assert found == [*(f"{n}.txt" for n in range(5)), str(folder / "broken.txt")]
    assert len(listed(world, namespace="user:a")) == 5
    assert listed(world, document_status="failed") == {"broken.txt": "failed"}


def test_a_folder_is_followed_through_new_changed_and_deleted_files(
    world: World, folder: Path
) -> None:
    (folder / "sub").mkdir()
    (folder / ".git").mkdir()
    (folder / "node_modules").mkdir()
    (folder / "guide.md").write_text(guide())
    (folder / "sub" / "tool.py").write_text("def answer():\n    return 42\n")
    for skipped in (".git/config.txt", "node_modules/a.js", ".hidden.md", "image.png"):
        (folder / skipped).write_text("not for the memory")

    def sync(**fields: Any) -> tuple[int, ...]:
        answer = world(SyncDocuments(str(folder), "project:apollo", **fields))
        assert answer["complete"] and answer["root"] == str(folder)
        assert answer["done"] == answer["files"]
        names = ("files", "synced", "unchanged", "failed", "removed")
        return tuple(answer[name] for name in names)

    assert sync() == (2, 2, 0, 0, 0)
    assert listed(world) == {"guide.md": "synced", "tool.py": "synced"}
    assert sync() == (2, 0, 2, 0, 0)
    # Touched only: the content is looked at, and nothing is written.
    age(folder / "guide.md", 100)
    before = world.storage.committed_seq
    assert sync() == (2, 0, 2, 0, 0)
    assert world.storage.committed_seq == before
    (folder / "guide.md").write_text(guide("ship"))
    age(folder / "guide.md", 200)
    (folder / "new.txt").write_text("fresh words\n")
    assert sync() == (3, 2, 1, 0, 0)
    (folder / "sub" / "tool.py").unlink()
    # Only what fits is synced, and only what fits can be missed.
    (folder / "later.txt").write_text("not yet\n")
    assert sync(pattern="*.md") == (1, 0, 1, 0, 0)
    assert sync(pattern="**/*.py") == (0, 0, 0, 0, 1)
    assert "tool.py" not in listed(world)
    assert world(SearchDocuments("return 42 answer", 50))["results"][0]["source"] != "tool.py"
    # A folder below the root can be synced alone.
    (folder / "sub" / "more.txt").write_text("more words\n")
    answer = world(SyncDocuments(str(folder / "sub"), "project:apollo"))
    assert (answer["files"], answer["synced"], answer["removed"]) == (1, 1, 0)
    assert sync() == (4, 1, 3, 0, 0)
    # The same files in another namespace are other documents.
    assert world(SyncDocuments(str(folder), "user:b"))["synced"] == 4
    assert sync() == (4, 0, 4, 0, 0)


def test_a_file_given_by_its_path_is_followed_by_the_sync_of_its_folder(
    world: World, folder: Path
) -> None:
    path = folder / "guide.md"
    path.write_text(guide())
    (folder / "odd.xyz").write_text("some words in a file of no known kind\n")
    first = world(IndexDocument(str(path), "By hand", trust=0.5))
    assert first["document"]["source"] == str(path)
    odd = world(IndexDocument(str(folder / "odd.xyz")))
    assert odd["document"]["document_type"] == "text"
    assert world(SyncDocuments(str(folder)))["unchanged"] == 1
    path.write_text(guide("ship"))
    age(path, 100)
    assert world(SyncDocuments(str(folder)))["synced"] == 1
    [hit] = world(SearchDocuments("how the ship is run", 1))["results"]
    assert (hit["metadata"]["title"], hit["trust"]) == ("By hand", 0.5)
    # What a sync would not take up by itself, it does not take away either.
    assert listed(world) == {"guide.md": "synced", "odd.xyz": "synced"}


def test_what_cannot_be_read_is_told_and_what_was_read_stays(world: World, folder: Path) -> None:
    good, bad, empty = folder / "good.md", folder / "bad.md", folder / "empty.md"
    good.write_text(guide())
    bad.write_bytes(b"caf\xe9")
    empty.write_bytes(b"")
    answer = world(SyncDocuments(str(folder)))
    assert (answer["synced"], answer["failed"], answer["complete"]) == (2, 1, True)
    [failure] = answer["failures"]
    assert failure["source"].endswith("bad.md") and "UTF-8" in failure["error"]
    assert listed(world) == {"bad.md": "failed", "empty.md": "synced", "good.md": "synced"}
    # What is broken is not read again while it stays as it is, and still told.
    assert world(SyncDocuments(str(folder)))["failed"] == 1

    good.write_bytes(b"\xff\xff no text any more")
    age(good, 100)
    answer = world(SyncDocuments(str(folder)))
    assert (answer["synced"], answer["failed"]) == (0, 2)
    assert listed(world)["good.md"] == "stale"
    found = world(SearchDocuments("turn the yellow key"))["results"]
    assert {hit["source"] for hit in found} == {str(good)}

    good.write_text(guide())
    bad.write_text("café\n")
    age(good, 200)
    age(bad, 100)
    assert world(SyncDocuments(str(folder)))["failed"] == 0
    assert listed(world) == {"bad.md": "synced", "empty.md": "synced", "good.md": "synced"}
    # And the old text, when it came back, was known again.
    assert world(IndexDocument(str(good)))["added"] == 0


def test_a_large_file_fails_by_the_name_of_its_limit(world: World, folder: Path) -> None:
    large = folder / "large.txt"
    large.write_text("x" * 100_001)
    with pytest.raises(errors.LimitExceeded) as caught:
        world(IndexDocument(str(large)))
    assert caught.value.details["limit"] == "documents.file_bytes_max"
    assert listed(world) == {"large.txt": "failed"}
    with pytest.raises(errors.NotFound):
        world(IndexDocument(str(folder / "absent.txt")))
    assert listed(world) == {"large.txt": "failed"}


def test_a_sync_that_runs_out_of_time_goes_on_at_the_next_call(world: World, folder: Path) -> None:
    for number in range(12):
        (folder / f"{number:02}.txt").write_text(f"file number {number}\n")
    (folder / "late.txt").write_text("first words\n")
    world(SyncDocuments(str(folder), pattern="late.txt"))
    (folder / "late.txt").write_text("second words, and more of them\n")

    def hurried() -> Any:
        # A deadline so near that the clock, which moves at each look, soon comes to it.
        now_us = world.clock.now_us()
        world.clock.advance((990 - now_us % 1000) / 1_000_000)
        return world(SyncDocuments(str(folder)), deadline_ms=world.clock.now_us() // 1000 + 1)

    answer = hurried()
    assert not answer["complete"] and 0 < answer["done"] < answer["files"] == 13
    statuses = listed(world)
    assert len(statuses) == 13
    assert sum(status == "pending" for status in statuses.values()) == 12 - answer["done"]
    assert statuses["late.txt"] == "stale"
    rounds, done = 1, answer["done"]
    while not answer["complete"]:
        answer = hurried()
        rounds += 1
        assert answer["done"] > done or answer["complete"]
        done = answer["done"]
        assert rounds <= 13
    assert rounds > 1 and set(listed(world).values()) == {"synced"}
    assert world(SyncDocuments(str(folder)))["unchanged"] == 13


def test_a_document_that_takes_longer_than_the_call_is_finished_by_itself(
    world: World, folder: Path
) -> None:
    (folder / "slow.txt").write_text("words that take their time\n")
    reading, go_on = threading.Event(), threading.Event()
    cut = world.orchestrator.parts.readers.cut

    async def slowly(*given: Any) -> Any:
        reading.set()
        await asyncio.to_thread(go_on.wait, 60)
        return await cut(*given)

    world.orchestrator.parts.readers.cut = slowly  # type: ignore[method-assign, assignment]

    def hurried() -> Any:
        return world(SyncDocuments(str(folder)), deadline_ms=world.clock.now_us() // 1000 + 100)

    try:
        for _ in range(2):
            answer = hurried()
            assert (answer["complete"], answer["files"], answer["done"]) == (False, 1, 0)
            assert reading.is_set()
    finally:
        go_on.set()
    answer = world(SyncDocuments(str(folder)))
    assert (answer["complete"], answer["done"], answer["failed"]) == (True, 1, 0)
    assert listed(world) == {"slow.txt": "synced"}


def test_a_file_whose_name_is_not_utf_8_stays_what_it_is(world: World, folder: Path) -> None:
    below = os.fsencode(folder) + b"/sub\xfe"
    os.mkdir(below)
    odd = below + b"/odd\xff.txt"
    with open(odd, "wb") as file:
        file.write(b"an odd name\n")
    os.utime(odd, (1_000_000_000, 1_000_000_000))
    assert world(SyncDocuments(str(folder)))["synced"] == 1
    [before] = world(ListDocuments())["documents"]
    assert before["source"].endswith("/sub\\xfe/odd\\xff.txt")
    answer = world(SyncDocuments(str(folder)))
    assert (answer["unchanged"], answer["removed"]) == (1, 0)
    assert world(ListDocuments())["documents"] == [before]
    os.unlink(odd)
    assert world(SyncDocuments(str(folder)))["removed"] == 1
    assert world(ListDocuments())["documents"] == []


def test_an_error_of_a_path_that_is_not_utf_8_is_answered(world: World, folder: Path) -> None:
    below = os.fsencode(folder) + b"/sub\xfe"
    os.mkdir(below)
    os.symlink(below, folder / "link")
    with open(below + b"/file.txt", "wb") as file:
        file.write(b"words\n")
    for operation, refusal in (
        (SyncDocuments(str(folder / "link" / "absent")), errors.NotFound),
        (SyncDocuments(str(folder / "link" / "file.txt")), errors.PathRefused),
        (IndexDocument(str(folder / "link" / "absent.txt")), errors.NotFound),
        (IndexDocument(str(folder / "link")), errors.PathRefused),
    ):
        with pytest.raises(refusal) as caught:
            world(operation)
        assert "sub\\xfe" in caught.value.details["path"]


def test_documents_behind_a_wall_look_absent(world: World, folder: Path) -> None:
    def identity(name: str, *grants: tuple[str, str]) -> Identity:
        return Identity(name, Grants(tuple(Grant(p, a) for p, a in grants)))  # type: ignore[arg-type]

    alice = identity("alice", ("user:alice", "write"))
    bob = identity("bob", ("user:bob", "write"), ("app:default", "write"))
    reader = identity("reader", ("user:alice", "read"))
    (folder / "guide.md").write_text(guide())
    answer = world(IndexDocument(text=guide(), source="a.md", namespace="user:alice"), alice)
    document_id = answer["document"]["id"]
    assert world(SearchDocuments("yellow key"), alice)["count"]
    assert world(SearchDocuments("yellow key", document_id=document_id), reader)["count"]
    assert world(ListDocuments(), bob)["documents"] == []
    assert world(SearchDocuments("yellow key"), bob)["results"] == []

    def refusal(document_id: str, operation: Any) -> tuple[str, str]:
        with pytest.raises(errors.NotFound) as caught:
            world(operation, bob)
        return caught.value.code, caught.value.message.replace(document_id, "it")

    for operation in (
        lambda given: DeleteDocument(given),
        lambda given: SearchDocuments("key", document_id=given),
    ):
        absent = "0" * 32
        assert refusal(document_id, operation(document_id)) == refusal(absent, operation(absent))
    for who in (bob, reader):
        with pytest.raises(errors.Forbidden):
            world(IndexDocument(text="x", source="a.md", namespace="user:alice"), who)
        with pytest.raises(errors.Forbidden):
            world(SyncDocuments(str(folder), "user:alice"), who)
    with pytest.raises(errors.Forbidden):
        world(DeleteDocument(document_id), reader)
    # The same source in another namespace is another document.
    own = world(IndexDocument(text=guide(), source="a.md"), bob)
    assert own["document"]["id"] != document_id and own["added"] == answer["added"]


def test_a_purged_chunk_leaves_nothing_with_its_document(world: World) -> None:
    marker = "quixotic zebra"
    text = "# The *quixotic* **zebra**\n\nA text.\n"
    answer = world(IndexDocument(text=text, source="notes.md"), key="k")
    assert answer["document"]["title"] == f"The {marker}"
    [chunk] = chunks(world, answer["document"]["id"])
    world(Purge(chunk["id"]))

    async def rows() -> list[Any]:
        def read(session: Any) -> list[Any]:
            return [
                session.execute(f"SELECT * FROM {table}")
                for table in ("documents", "document_chunks", "idempotency")
            ]

        return await world.storage.read(read)

    documents, placed, answers = world.run(rows())
    assert "zebra" not in str(documents) and placed == []
    assert "zebra" not in str(answers)
    assert listed(world) == {"notes.md": "synced"}


def stored(world: World, *tables: str) -> str:
    """All that stands in some tables, as one text."""

    async def rows() -> str:
        def read(session: Any) -> str:
            return str([session.execute(f"SELECT * FROM {table}") for table in tables])

        return await world.storage.read(read)

    return world.run(rows())


def test_a_purged_chunk_is_known_as_one_whatever_its_metadata_says(world: World) -> None:
    answer = world(IndexDocument(text="# The quixotic zebra\n\nA text.\n", source="notes.md"))
    [chunk] = chunks(world, answer["document"]["id"])
    world(UpdateMemory(chunk["id"], {"metadata": {"mine": True}}))
    world(Purge(chunk["id"]))
    assert "zebra" not in stored(world, "documents")
    assert stored(world, "document_chunks") == "[[]]"


def test_a_title_that_is_purged_stands_nowhere_else(world: World) -> None:
    filling = " ".join(f"Of things and of others, number {n}." for n in range(200))
    text = f"# The *quixotic* zebra\n\nIt runs.\n\n## Food\n\n{filling}\n"
    answer = world(IndexDocument(text=text, source="notes.md"))
    first, *others = chunks(world, answer["document"]["id"])
    assert "zebra" in first["content"] and others
    assert all("zebra" in other["metadata"]["heading"] for other in others)
    # The title is in the versions of the others as well.
    world(UpdateMemory(others[0]["id"], {"tags": ["food"]}))
    world(Purge(first["id"]))
    tables = ("documents", "document_chunks", "memories", "versions")
    assert "zebra" not in stored(world, *tables)
    assert world(SearchMemory("zebra"))["results"] == []
    world.settle()
    [fed] = [c for c in chunks(world, answer["document"]["id"]) if c["id"] == others[0]["id"]]
    assert (fed["metadata"]["title"], fed["metadata"]["heading"]) == ("notes.md", "Food")
    assert fed["content"] == others[0]["content"].removeprefix("The quixotic zebra\n\n")
    history = world(History(others[0]["id"]))["versions"]
    old = world(GetMemory(others[0]["id"], version=history[-1]["version"]))["memory"]
    assert old["metadata"]["title"] == "notes.md"


def test_what_an_earlier_text_said_takes_no_title_with_it(world: World) -> None:
    answer = world(IndexDocument(text="# The zebra\n\nIt runs.\n", source="notes.md"))
    [old] = chunks(world, answer["document"]["id"])
    world(IndexDocument(text="# The harbour\n\nIt sleeps.\n", source="notes.md"))
    world(Purge(old["id"]))
    [new] = chunks(world, answer["document"]["id"])
    assert new["metadata"]["title"] == "The harbour"
    assert "zebra" not in stored(world, "documents", "memories", "versions")


def test_secrets_in_a_document_are_kept_out_as_they_are_elsewhere(
    storage_url: str, tmp_path: Path
) -> None:
    key = "AKIA" + "QWERTYUIOPASDFGH"
    text = f"# Access {key}\n\nUse it with care.\n"

    def settings(mode: Literal["mask", "refuse"]) -> Settings:
        return Settings(
            embedding=EmbeddingSettings(provider="hashed"), trust=TrustSettings(secrets=mode)
        )

    world = World(storage_url, tmp_path / "masked", settings("mask"))
    try:
        first = world(IndexDocument(text=text, source="a.md"))
        assert key not in str(first)
        [chunk] = chunks(world, first["document"]["id"])
        assert key not in str(chunk) and "with care" in chunk["content"]
        again = world(IndexDocument(text=text, source="a.md"))
        assert (again["kept"], again["document"]) == (1, first["document"])
        assert world(History(chunk["id"]))["count"] == 1
    finally:
        world.close()
    world = World(storage_url, tmp_path / "masked", settings("refuse"))
    try:
        with pytest.raises(errors.SecretRefused):
            world(IndexDocument(text=text, source="b.md"))
    finally:
        world.close()


def test_every_change_of_a_document_is_in_the_journal(world: World, folder: Path) -> None:
    (folder / "bad.txt").write_bytes(b"\xff")
    first = world(IndexDocument(text="one two three\n", source="a.txt", namespace="user:a"))
    world(SyncDocuments(str(folder), "user:a"))
    world(DeleteDocument(first["document"]["id"]))

    async def journal() -> Any:
        return await world.storage.read(
            lambda session: session.execute(
                "SELECT operation, subject, namespace, detail FROM journal ORDER BY seq"
            )
        )

    entries = world.run(journal())
    of_document = [
        (operation, namespace)
        for operation, subject, namespace, _ in entries
        if subject == first["document"]["id"]
    ]
    assert of_document == [("index_document", "user:a"), ("delete_document", "user:a")]
    assert [e[3] for e in entries if e[0] == "sync_documents"] == ["failed"]
    # And each chunk has its own: it came, and it went.
    assert sum(e[0] in ("index_document", "delete_document") for e in entries) == 4


def test_a_long_document_is_hashed_while_others_are_served(
    world: World, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    sha256 = hashlib.sha256

    def noted(data: bytes = b"") -> Any:
        if len(data) >= 50_000:
            taken.append(threading.get_ident())
        return sha256(data)

    monkeypatch.setattr(hashlib, "sha256", noted)
    text = "A line of a long document about the sea.\n\n" * 2_000
    (folder / "long.txt").write_text(text)
    by_text = world(IndexDocument(text=text))
    by_path = world(IndexDocument(path=str(folder / "long.txt")))
    assert by_text["added"] == by_path["added"] > 100
    # The event loop runs in the thread of the test.
    assert taken
    assert threading.get_ident() not in taken
