"""Settings of what makes one memory fit for many: keys, trust, sessions, documents, consolidation.

Declared like all others, see settings.py.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

# fmt: off


class AccessSettings(Struct, frozen=True):
    """Who is let in. `recollect keys` makes keys and grants."""

    require_keys: Annotated[bool, Meta(description=(
        "Ask every client for a CURVE key, also on loopback. Bound to anything but loopback, keys "
        "are always asked for."))] = False


class TrustSettings(Struct, frozen=True):
    """What is kept out of the memory, or out of its way."""

    secrets: Annotated[Literal["off", "mask", "refuse"], Meta(description=(
        "What to do with passwords, keys and tokens in what is stored: `mask` stores it with the "
        "secret blotted out, `refuse` stores nothing."))] = "off"
    echoes: Annotated[bool, Meta(description=(
        "Recognise a memory that only repeats what the same agent was just served, and do not "
        "store it again."))] = True
    echo_window_s: Annotated[float, Meta(gt=0, le=86_400, description=(
        "How long what an agent was served counts as just served."))] = 900.0
    echoes_kept_max: Annotated[int, Meta(ge=1, le=100_000, description=(
        "Memories served to one agent that are kept in view for that."))] = 256


class SessionsSettings(Struct, frozen=True):
    """Sessions and their state."""

    event_bytes_max: Annotated[int, Meta(ge=2, le=16_777_216, description=(
        "Bytes of one event, as JSON."))] = 262_144
    state_keys_max: Annotated[int, Meta(ge=1, le=1_000_000, description=(
        "Keys in the state of one session, user or app."))] = 1_000
    state_value_bytes_max: Annotated[int, Meta(ge=2, le=16_777_216, description=(
        "Bytes of one value of the state, as JSON."))] = 65_536
    state_bytes_max: Annotated[int, Meta(ge=2, le=67_108_864, description=(
        "Bytes of all values in the state of one session, user or app."))] = 4_194_304
    temp_sessions_max: Annotated[int, Meta(ge=1, le=1_000_000, description=(
        "Sessions whose `temp:` state is held at once; of more, the one used longest ago loses "
        "its own."))] = 10_000
    temp_bytes_max: Annotated[int, Meta(ge=2, le=1 << 40, description=(
        "Bytes of all the `temp:` state that is held at once; beyond that likewise."
        ))] = 268_435_456
    temp_hours: Annotated[float, Meta(gt=0, le=87_600, description=(
        "How long orchestrators of one database share the `temp:` state of a session in Redis "
        "after it was last used."))] = 24.0


class DocumentsSettings(Struct, frozen=True):
    """Files that may be read into the memory, and how they are cut."""

    roots: Annotated[tuple[str, ...], Meta(description=(
        "Folders that documents may be read from; none by default. Nothing outside them is ever "
        "read, whatever path or link is given."))] = ()
    chunk_chars: Annotated[int, Meta(ge=200, le=20_000, description=(
        "About how long a chunk is; headings, paragraphs and functions are kept whole where they "
        "fit."))] = 1_200
    file_bytes_max: Annotated[int, Meta(ge=1, le=1_073_741_824, description=(
        "Bytes of one file; a larger one is refused."))] = 20_971_520
    files_max: Annotated[int, Meta(ge=1, le=10_000_000, description=(
        "Files in one root; a larger one is refused."))] = 100_000
    chunks_max: Annotated[int, Meta(ge=1, le=1_000_000, description=(
        "Chunks of one document; a longer one is refused."))] = 10_000
    read_s_max: Annotated[float, Meta(gt=0, le=3_600, description=(
        "Longest time that reading and cutting one document may take; it is done in a process of "
        "its own."))] = 60.0


class ConsolidationSettings(Struct, frozen=True):
    """How like memories are found and settled."""

    duplicate_similarity: Annotated[float, Meta(gt=0, le=1, description=(
        "Nearness in meaning from which memories are compared word by word for saying the "
        "same."))] = 0.9
    conflict_similarity: Annotated[float, Meta(gt=0, le=1, description=(
        "Nearness in meaning from which memories that differ are compared for "
        "contradiction."))] = 0.75
    examined_max: Annotated[int, Meta(ge=2, le=1_000_000, description=(
        "Memories of a namespace that one run looks at, the newest first."))] = 10_000
    shrink_max: Annotated[float, Meta(gt=0, le=1, description=(
        "The largest part by which one run may make the memories of a namespace fewer; a run that "
        "would take more does nothing."))] = 0.5
    llm_url: Annotated[Annotated[str, Meta(min_length=1)] | None, Meta(description=(
        "An endpoint that speaks OpenAI's chat protocol, for the strategy `llm_based`; "
        "`/chat/completions` is added."))] = None
    llm_model: Annotated[str, Meta(min_length=1, description="Its model.")] = "gpt-4o-mini"
    llm_key_variable: Annotated[str, Meta(min_length=1, description=(
        "Environment variable that holds the endpoint's key."))] = "OPENAI_API_KEY"
    llm_timeout_s: Annotated[float, Meta(gt=0, le=600, description=(
        "Longest wait for one answer of the endpoint."))] = 60.0
