"""The model that gives memories their vectors."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation


@operation(access="admin", everywhere=True, http=("POST", "/v1/embedding:reembed"), replay=False)
class Reembed(Operation[records.ReembeddingStarted], frozen=True):
    """Embed all memories anew with another model, in the background. Searches go on with the old
    one until the new one has caught up; `stats` shows how far it is."""

    model: Annotated[
        str,
        Meta(min_length=1, description="A name that `recollect models list` knows, or a folder."),
    ]
    provider: Annotated[
        Literal["local", "hashed", "openai"], Meta(description="Who embeds with it.")
    ] = "local"
    dimensions: Annotated[
        Annotated[int, Meta(ge=8, le=8192)] | None,
        Meta(description="Length of a vector, where the model leaves the choice."),
    ] = None
