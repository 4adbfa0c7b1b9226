"""Long-term memory: how things are done, what went wrong, what was changed, what is known."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from recollect.protocol import records
from recollect.protocol.operation import Operation, operation
from recollect.protocol.operations import fields


class LongtermOptions(Operation[records.LongtermStored], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE
    importance: fields.Importance = 0.5
    metadata: fields.Metadata = None
    tags: fields.Tags = None
    source: Annotated[str | None, Meta(description="Where it comes from.")] = None
    trust: fields.Trust = 1.0


@operation(access="write", http=("POST", "/v1/procedures"))
class StoreProcedure(LongtermOptions, frozen=True):
    """Keep how something is done, step by step. The same name again is a new version of it."""

    name: Annotated[str, Meta(min_length=1, description="Its name, unique in the namespace.")]
    steps: Annotated[list[str], Meta(min_length=1, description="What to do, in order.")]
    description: Annotated[str, Meta(description="What it is for, and when to use it.")] = ""


class GetProcedureOptions(Operation[records.ProcedureFetched], frozen=True, kw_only=True):
    namespace: fields.Namespace = fields.DEFAULT_NAMESPACE


@operation(access="read", http=("GET", "/v1/procedures/{name}"))
class GetProcedure(GetProcedureOptions, frozen=True):
    """A procedure by its name."""

    name: Annotated[str, Meta(min_length=1, description="Its name.")]


@operation(access="write", http=("POST", "/v1/incidents"))
class StoreIncident(LongtermOptions, frozen=True):
    """Keep what went wrong, why, and what mended it."""

    title: Annotated[str, Meta(min_length=1, description="What happened, in a line.")]
    description: Annotated[str, Meta(description="What happened, in full.")] = ""
    severity: Annotated[
        Literal["low", "medium", "high", "critical"],
        Meta(description="low, medium, high or critical."),
    ] = "medium"
    cause: Annotated[str, Meta(description="Why it happened, if that is known.")] = ""
    resolution: Annotated[str, Meta(description="What mended it, if it is mended.")] = ""
    occurred_at: fields.Moment = None


class ResolveIncidentOptions(Operation[records.LongtermStored], frozen=True, kw_only=True):
    expected_version: fields.ExpectedVersion = None


@operation(access="write", http=("POST", "/v1/incidents/{incident_id}/resolve"))
class ResolveIncident(ResolveIncidentOptions, frozen=True):
    """Say what mended an incident, and why it happened."""

    incident_id: Annotated[str, Meta(min_length=1, description="Id of the incident.")]
    resolution: Annotated[str, Meta(min_length=1, description="What mended it.")]
    cause: Annotated[
        str | None, Meta(description="Why it happened; what was known stays if absent.")
    ] = None


@operation(access="write", http=("POST", "/v1/config-changes"))
class RecordConfigChange(LongtermOptions, frozen=True):
    """Keep that a setting was changed, from what to what, and why."""

    component: Annotated[str, Meta(min_length=1, description="What it is a setting of.")]
    parameter: Annotated[str, Meta(min_length=1, description="The setting.")]
    old_value: Annotated[Any, Meta(description="Any JSON value: what it was.")] = None
    new_value: Annotated[Any, Meta(description="Any JSON value: what it is now.")] = None
    reason: Annotated[str, Meta(description="Why.")] = ""


class ConfigHistoryOptions(Operation[records.ConfigChangesListed], frozen=True, kw_only=True):
    namespace: fields.NamespaceFilter = None
    limit: fields.Limit = 50
    cursor: fields.Cursor = None


@operation(access="read", http=("GET", "/v1/config-changes"))
class ConfigHistory(ConfigHistoryOptions, frozen=True):
    """How the settings of a component were changed, the latest first."""

    component: Annotated[str, Meta(min_length=1, description="What they are settings of.")]
    parameter: Annotated[str | None, Meta(description="Only this setting.")] = None


@operation(access="write", http=("POST", "/v1/knowledge"))
class StoreKnowledge(LongtermOptions, frozen=True):
    """Keep something that is known. The same title again is a new version of it."""

    title: Annotated[str, Meta(min_length=1, description="Its title, unique in the namespace.")]
    content: fields.Content
