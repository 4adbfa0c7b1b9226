"""The methods of both clients, each declared once from its operation.

`Method` is a descriptor that carries the parameters and the result of an operation, so that editors
and type checkers see `client.add_memory(content, …)` with its real signature: it returns the
result on a blocking client, and something to await on an asyncio client.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from types import FunctionType, MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    cast,
    get_type_hints,
    overload,
)

import msgspec

from recollect.client.examples import EXAMPLES
from recollect.protocol import operations as ops
from recollect.protocol.operation import Operation, result_of

if TYPE_CHECKING:
    from inspect import Signature

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")
R_co = TypeVar("R_co", covariant=True)
S_co = TypeVar("S_co", covariant=True)


class Blocking:
    """Marks a client whose methods return the result."""


class Awaiting:
    """Marks a client whose methods return something to await."""


class Caller(Protocol):
    """What a client must have for its methods to work: the one generic door."""

    def call(self, operation: Operation[Any], /) -> Any: ...


class Method(Generic[P, R]):
    """One operation as a method of both clients."""

    def __init__(self, operation: Callable[P, Operation[R]]) -> None:
        self.operation = cast("type[Operation[R]]", operation)
        self.__doc__ = self.operation.__doc__
        # Made at the first use, because signatures take long to make and most are never used.
        self._function: FunctionType | None = None

    @overload
    def __get__(self, instance: None, owner: type) -> Callable[..., Any]: ...
    @overload
    def __get__(self, instance: Blocking, owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, instance: Awaiting, owner: type) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(self, instance: object, owner: type) -> Callable[..., Any]:
        function = self._function
        if function is None:
            function = self._function = _function_of(self.operation)
        # A plain bound method: the cheapest thing to call, and what help() and inspect expect.
        return function if instance is None else MethodType(function, instance)


class BlockingEither(Protocol[P, R_co, Q, S_co]):
    """A bound method of a blocking client that takes an id, or a namespace and a key."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, *args: Q.args, **kwargs: Q.kwargs) -> S_co: ...


class AwaitingEither(Protocol[P, R_co, Q, S_co]):
    """The same of an asyncio client."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]: ...
    @overload
    def __call__(self, *args: Q.args, **kwargs: Q.kwargs) -> Coroutine[Any, Any, S_co]: ...


class Either(Generic[P, R, Q, S]):
    """Two operations under one name: by id, or by namespace and key.

    An id holds no colon and a namespace always does, so the first argument tells which is meant.
    """

    def __init__(self, by_id: Callable[P, Operation[R]], by_key: Callable[Q, Operation[S]]) -> None:
        self.operation = cast("type[Operation[R]]", by_id)
        self.by_key = cast("type[Operation[S]]", by_key)
        example = EXAMPLES[self.operation.spec.name]
        self.__doc__ = (
            f"{self.operation.__doc__} Or by key: {self.by_key.__doc__}\n\nExample:\n    {example}"
        )

        def function(client: Caller, /, *args: Any, **kwargs: Any) -> Any:
            keyed = "namespace" in kwargs or (args and isinstance(args[0], str) and ":" in args[0])
            return client.call((self.by_key if keyed else self.operation)(*args, **kwargs))

        function.__doc__ = self.__doc__
        self._function = function

    def __set_name__(self, owner: type, name: str) -> None:
        # Of several names, the first is its own.
        if self._function.__name__ == "function":
            self._function.__name__ = name
            self._function.__qualname__ = f"Operations.{name}"

    @overload
    def __get__(self, instance: None, owner: type) -> Callable[..., Any]: ...
    @overload
    def __get__(self, instance: Blocking, owner: type) -> BlockingEither[P, R, Q, S]: ...
    @overload
    def __get__(self, instance: Awaiting, owner: type) -> AwaitingEither[P, R, Q, S]: ...
    def __get__(self, instance: object, owner: type) -> Any:
        return self._function if instance is None else MethodType(self._function, instance)


def _function_of(operation: type[Operation[Any]]) -> FunctionType:
    def function(self: Caller, /, *args: Any, **kwargs: Any) -> Any:
        try:
            made = operation(*args, **kwargs)
        except TypeError as error:
            raise _misused(operation, kwargs, error) from None
        return self.call(made)

    function.__name__ = operation.spec.name
    function.__qualname__ = f"Operations.{operation.spec.name}"
    signature = _signature_of(operation)
    function.__doc__ = _doc_of(operation, signature.parameters)
    function.__dict__["__signature__"] = signature
    return cast(FunctionType, function)


def _misused(operation: type[Operation[Any]], given: Iterable[str], error: TypeError) -> TypeError:
    """What is wrong with the arguments of a call, by the name of its method."""
    from difflib import get_close_matches

    name, known = operation.spec.name, operation.__struct_fields__
    for argument in given:
        if argument not in known:
            near = get_close_matches(argument, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known)}."
            return TypeError(f"{name}() has no argument {argument!r}: {hint}")
    return TypeError(f"{name}(): {error}; help(MemoryClient.{name}) shows what it takes.")


def _signature_of(operation: type[Operation[Any]]) -> Signature:
    from inspect import Parameter, Signature, signature

    plain = get_type_hints(operation)
    # A default that is made anew for each call is shown as what is made.
    made = {
        field.name: field.default_factory()
        for field in msgspec.structs.fields(operation)
        if field.default_factory is not msgspec.NODEFAULT
    }
    declared = [
        parameter.replace(annotation=plain[name], default=made.get(name, parameter.default))
        for name, parameter in signature(operation).parameters.items()
    ]
    own = Parameter("self", Parameter.POSITIONAL_ONLY)
    return Signature([own, *declared], return_annotation=result_of(operation))


def _doc_of(operation: type[Operation[Any]], names: Iterable[str]) -> str:
    """The operation's description, a line for each argument that has one, and an example."""
    lines = [(operation.__doc__ or "").strip(), ""]
    hints = get_type_hints(operation, include_extras=True)
    for name in names:
        for meta in getattr(hints.get(name), "__metadata__", ()):
            if isinstance(meta, msgspec.Meta) and meta.description:
                lines.append(f"{name}: {meta.description}")
    if example := EXAMPLES.get(operation.spec.name):
        lines += ["", "Example:", f"    {example}"]
    return "\n".join(lines).strip()


def method(operation: Callable[P, Operation[R]]) -> Method[P, R]:
    """The method of both clients that calls this operation."""
    return Method(operation)


def either(
    by_id: Callable[P, Operation[R]], by_key: Callable[Q, Operation[S]]
) -> Either[P, R, Q, S]:
    """The method of both clients that calls one of two operations."""
    return Either(by_id, by_key)


class Operations:
    """Every operation as a method; the two clients inherit it."""

    add_memory = method(ops.AddMemory)
    get_memory = method(ops.GetMemory)
    update_memory = method(ops.UpdateMemory)
    delete_memory = method(ops.DeleteMemory)
    restore = either(ops.Restore, ops.RestoreByKey)
    history = either(ops.History, ops.HistoryByKey)
    purge = method(ops.Purge)
    reinforce_memory = method(ops.ReinforceMemory)
    get_children = method(ops.GetChildren)
    list_memories = method(ops.ListMemories)
    count = method(ops.Count)

    put = method(ops.Put)
    get_by_key = method(ops.GetByKey)
    update_by_key = method(ops.UpdateByKey)
    delete_by_key = method(ops.DeleteByKey)
    history_by_key = method(ops.HistoryByKey)
    restore_by_key = method(ops.RestoreByKey)
    diff = method(ops.Diff)
    search_namespace = method(ops.SearchNamespace)
    list_namespaces = method(ops.ListNamespaces)
    squash_versions = method(ops.SquashVersions)

    search_memory = method(ops.SearchMemory)
    semantic_search = method(ops.SemanticSearch)
    recall = method(ops.Recall)

    batch_add_memories = method(ops.BatchAddMemories)
    batch_get_memories = method(ops.BatchGetMemories)

    add_relationship = method(ops.AddRelationship)
    get_related_memories = method(ops.GetRelatedMemories)

    create_context_group = method(ops.CreateContextGroup)
    add_to_group = method(ops.AddToGroup)
    get_memories_by_group = method(ops.GetMemoriesByGroup)

    create_session = method(ops.CreateSession)
    get_session = method(ops.GetSession)
    append_event = method(ops.AppendEvent)
    list_events = method(ops.ListEvents)
    update_status = method(ops.UpdateStatus)
    get_state = method(ops.GetState)
    set_state = method(ops.SetState)
    list_sessions = method(ops.ListSessions)
    list_active_sessions = method(ops.ListActiveSessions)
    terminate_session = method(ops.TerminateSession)
    archive_session = method(ops.ArchiveSession)
    delete_session = method(ops.DeleteSession)

    index_document = method(ops.IndexDocument)
    sync_documents = method(ops.SyncDocuments)
    list_documents = method(ops.ListDocuments)
    delete_document = method(ops.DeleteDocument)
    search_documents = method(ops.SearchDocuments)

    find_conflicts = method(ops.FindConflicts)
    consolidate = method(ops.Consolidate)
    forget_source = method(ops.ForgetSource)
    undo = method(ops.Undo)
    get_run = method(ops.GetRun)
    list_runs = method(ops.ListRuns)

    push_event = method(ops.PushEvent)
    recent_events = method(ops.RecentEvents)
    update_metric = method(ops.UpdateMetric)
    get_metrics = method(ops.GetMetrics)
    set_active_task = method(ops.SetActiveTask)
    active_tasks = method(ops.ActiveTasks)
    system_snapshot = method(ops.SystemSnapshot)

    store_goal = method(ops.StoreGoal)
    update_goal = method(ops.UpdateGoal)
    get_goal = method(ops.GetGoal)
    active_goals = method(ops.ActiveGoals)
    save_task = method(ops.SaveTask)
    get_task = method(ops.GetTask)
    update_task_status = method(ops.UpdateTaskStatus)
    set_task_phase = method(ops.SetTaskPhase)
    tasks_for_goal = method(ops.TasksForGoal)
    save_step = method(ops.SaveStep)
    list_steps = method(ops.ListSteps)
    save_agent_state = method(ops.SaveAgentState)
    get_agent_state = method(ops.GetAgentState)
    save_preference = method(ops.SavePreference)
    get_preference = method(ops.GetPreference)
    list_preferences = method(ops.ListPreferences)
    save_persona = method(ops.SavePersona)
    get_persona = method(ops.GetPersona)
    recent_summaries = method(ops.RecentSummaries)

    log_decision = method(ops.LogDecision)
    record_outcome = method(ops.RecordOutcome)
    get_decision = method(ops.GetDecision)
    find_similar_decisions = method(ops.FindSimilarDecisions)
    list_decisions = method(ops.ListDecisions)

    store_procedure = method(ops.StoreProcedure)
    get_procedure = method(ops.GetProcedure)
    store_incident = method(ops.StoreIncident)
    resolve_incident = method(ops.ResolveIncident)
    record_config_change = method(ops.RecordConfigChange)
    config_history = method(ops.ConfigHistory)
    store_knowledge = method(ops.StoreKnowledge)

    store_execution = method(ops.StoreExecution)
    search_similar = method(ops.SearchSimilar)
    extract_pattern = method(ops.ExtractPattern)
    search_patterns = method(ops.SearchPatterns)
    find_pattern = method(ops.FindPattern)
    pattern_feedback = method(ops.PatternFeedback)
    task_context = method(ops.TaskContext)

    assemble_context = method(ops.AssembleContext)
    replay_context = method(ops.ReplayContext)

    migrate = method(ops.Migrate)

    fade_memories = method(ops.FadeMemories)
    apply_retention = method(ops.ApplyRetention)
    trim_answers = method(ops.TrimAnswers)
    keep_backup = method(ops.KeepBackup)
    export_records = method(ops.ExportRecords)
    import_records = method(ops.ImportRecords)
    backfill_embeddings = method(ops.BackfillEmbeddings)
    maintain_index = method(ops.MaintainIndex)
    check_index = method(ops.CheckIndex)
    optimise_storage = method(ops.OptimiseStorage)
    check_integrity = method(ops.CheckIntegrity)

    audit_log = method(ops.AuditLog)
    verify_audit = method(ops.VerifyAudit)
    read_changes = method(ops.ReadChanges)
    trim_journal = method(ops.TrimJournal)

    who_am_i = method(ops.WhoAmI)
    create_identity = method(ops.CreateIdentity)
    list_identities = method(ops.ListIdentities)
    grant_access = method(ops.GrantAccess)
    revoke_access = method(ops.RevokeAccess)
    create_bearer_key = method(ops.CreateBearerKey)
    revoke_bearer_key = method(ops.RevokeBearerKey)

    acquire_lease = method(ops.AcquireLease)
    renew_lease = method(ops.RenewLease)
    release_lease = method(ops.ReleaseLease)
    announce_jobs = method(ops.AnnounceJobs)
    list_jobs = method(ops.ListJobs)
    request_job = method(ops.RequestJob)
    begin_job = method(ops.BeginJob)
    report_job = method(ops.ReportJob)
    finish_job = method(ops.FinishJob)
    get_job_run = method(ops.GetJobRun)
    job_history = method(ops.JobHistory)

    ping = method(ops.Ping)
    stats = method(ops.Stats)
    analytics = method(ops.Analytics)
    metrics = method(ops.Metrics)
    backup = method(ops.Backup)
    reembed = method(ops.Reembed)
    report_errors = method(ops.ReportErrors)
    recent_errors = method(ops.RecentErrors)

    add = remember = add_memory
    get = either(ops.GetMemory, ops.GetByKey)
    update = either(ops.UpdateMemory, ops.UpdateByKey)
    delete = forget = either(ops.DeleteMemory, ops.DeleteByKey)
    search = search_memory
