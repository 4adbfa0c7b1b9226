"""Groups of commands whose modules are brought in only when one of them is called.

The names and helps of the groups themselves stand in `app`, so that the help of the whole, and
every command that has nothing to do with them, need not wait.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import typer
from typer.core import TyperGroup


class LazyGroup(TyperGroup):
    """A group that is there by name, and whose commands come when they are asked for."""

    # Typer has its own copy of click or the installed one, by its version: hence Any.
    def list_commands(self, ctx: Any) -> list[str]:
        return self._real().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return self._real().get_command(ctx, cmd_name)

    @abstractmethod
    def _group(self) -> typer.Typer:
        """The group itself, from its module."""

    def _real(self) -> TyperGroup:
        command = typer.main.get_command(self._group())
        assert isinstance(command, TyperGroup)
        return command


class ModelsGroup(LazyGroup):
    """`recollect models …`."""

    def _group(self) -> typer.Typer:
        from recollect.cli.models_command import models

        return models


class TasksGroup(LazyGroup):
    """`recollect tasks …`."""

    def _group(self) -> typer.Typer:
        from recollect.cli.agents.tasks_command import tasks

        return tasks


class SessionsGroup(LazyGroup):
    """`recollect sessions …`."""

    def _group(self) -> typer.Typer:
        from recollect.cli.sessions_command import sessions

        return sessions


class DocumentsGroup(LazyGroup):
    """`recollect documents …`."""

    def _group(self) -> typer.Typer:
        from recollect.cli.documents_command import documents

        return documents


class KeysGroup(LazyGroup):
    """`recollect keys …`."""

    def _group(self) -> typer.Typer:
        from recollect.cli.keys_command import keys

        return keys


class JobsGroup(LazyGroup):
    """`recollect jobs …`."""

    def _group(self) -> typer.Typer:
        from recollect.cli.jobs_command import jobs

        return jobs
