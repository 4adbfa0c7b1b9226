"""Sessions: the conversations and runs that memories come from."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation


@operation(access="write", http=("POST", "/v1/sessions"), mcp=True)
class CreateSession(Operation[records.SessionCreated], frozen=True):
    """Begin a session; pass its id to set_session_id and new memories belong to it."""

    user_id: Annotated[str, Meta(min_length=1, max_length=256, description="Whose session it is.")]
    session_type: Annotated[
        str, Meta(min_length=1, max_length=64, description="What kind of session.")
    ] = "conversation"
    session_metadata: Annotated[
        dict[str, Any] | None, Meta(description="Any JSON object to keep with it.")
    ] = None
