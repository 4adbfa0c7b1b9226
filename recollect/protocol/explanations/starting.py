"""Errors of starting Recollect: configuration, folders, ports, packages, models."""

from __future__ import annotations

from recollect.protocol.explanations.explanation import Explanation

STARTING = (
    Explanation(
        "config",
        "The configuration was refused; nothing was started.",
        (
            "a section or a setting is misspelt, or a value is not one that it takes",
            "a RECOLLECT_* variable sets something that there is not",
            "the file that was named is not there",
        ),
        (
            "The message lists every problem, with file and line, or the variable.",
            "docs/configuration.md lists every setting; memory_config.yaml holds the defaults.",
        ),
        """\
$ recollect up --config my.yaml
Error: The configuration was refused because of one problem:
  - /srv/my.yaml:1: netwrok: no such section; did you mean `network`?
Put these right; nothing was started.
(config)""",
    ),
    Explanation(
        "folder_in_use",
        "Another process works on the data folder; two would damage it.",
        ("an orchestrator or `recollect up` runs on it already",),
        (
            "Use that one: `recollect ping` tells whether it answers.",
            "Stop it with `recollect down --data DIR`, or give the new one a folder of its own.",
        ),
        """\
$ recollect orchestrator --data ./memories
Error: ./memories is in use by another orchestrator (process 4711). Stop that one, or give this …
(folder_in_use)""",
    ),
    Explanation(
        "already_up",
        "Recollect is up already on that data folder.",
        ("`recollect up --detach` was asked for a second time",),
        ("`recollect status` shows how it is, `recollect down` stops it.",),
        """\
$ recollect up --detach
Error: Recollect is up already on /srv/recollect-data (process 4711).
`recollect status` shows how it is, `recollect down` stops it.
(already_up)""",
    ),
    Explanation(
        "address_in_use",
        "Another process listens at the address already.",
        (
            "a second orchestrator, gateway or dashboard was started with the same port",
            "another program has the port",
        ),
        (
            "If it is Recollect, use it: `recollect ping`.",
            "Else choose another port: --bind for the orchestrator, gateway.port or health.port "
            "for the others.",
        ),
        """\
$ recollect up
Error: Another process listens there already: Address already in use (addr='tcp://127.0.0.1:7331').
Stop that one, or choose another port with --bind. …
(address_in_use)""",
    ),
    Explanation(
        "bind_failed",
        "The orchestrator cannot listen at the endpoint.",
        ("this machine has no such address", "the folder of an ipc:// endpoint is not there"),
        ("Choose another with --bind; tcp://127.0.0.1:7331 is the usual one.",),
        """\
$ recollect orchestrator --bind tcp://203.0.113.7:7331
Error: The endpoint cannot be bound: …
(bind_failed)""",
    ),
    Explanation(
        "nobody_known",
        "The endpoint can be reached from other machines, and nobody has a key yet.",
        ("it was bound to more than loopback before the first key was made",),
        (
            "Make a key first: `recollect keys new NAME --grant PATTERN=ACCESS --data DIR`.",
            "Or stay on this machine: tcp://127.0.0.1:PORT.",
        ),
        """\
$ recollect up --bind tcp://0.0.0.0:7331
Error: tcp://0.0.0.0:7331 can be reached from other machines, and nobody has a key yet. …
(nobody_known)""",
    ),
    Explanation(
        "start_failed",
        "A process ended before it was ready; the message has the last that it said.",
        ("its settings or its surroundings are wrong, as its log says",),
        ("Read what it said, and `recollect logs`; `recollect doctor` looks for trouble.",),
        """\
$ recollect up --detach
Error: It did not come up (exit code 1).
  …
(start_failed)""",
    ),
    Explanation(
        "slow_start",
        "It is still starting after a long time; it was left running.",
        ("a large store is opened, or an index is made anew", "the machine is very busy"),
        ("`recollect status` shows how it goes; the log that the message names says why.",),
        """\
$ recollect up --detach
Error: It is still starting after 120 s, as process 4711.
(slow_start)""",
    ),
    Explanation(
        "slow_stop",
        "It still runs after the time that it has to end.",
        ("what it has accepted is still being answered",),
        ("Ask again: the second time it does not wait for anybody. Nothing is lost.",),
        """\
$ recollect down
Error: Process 4711 still runs after 40 s.
Ask again, and it does not wait for anybody.
(slow_stop)""",
    ),
    Explanation(
        "unknown_process",
        "No process of that name can be left out, or it is not known which one holds the folder.",
        ("--without names something else than scheduler, gateway or health",),
        ("Use one of the names that the message lists.",),
        """\
$ recollect up --without redis
Error: There is no process 'redis' that could be left out.
These can: scheduler, gateway, health.
(unknown_process)""",
    ),
    Explanation(
        "extra_missing",
        "A package is not installed that this needs.",
        ("Recollect was installed without the extra that brings it",),
        ("Install the extra that the message names, such as pip install 'recollect[all]'.",),
        """\
$ recollect mcp
Error: This needs the package mcp, which is not installed.
pip install 'recollect[gateway]' brings it.
(extra_missing)""",
    ),
    Explanation(
        "schema",
        "The database was written by a newer Recollect than this one.",
        ("an older release was started on the folder of a newer one",),
        ("Install the release that wrote it, or a newer one. Nothing was changed.",),
        """\
$ recollect up
Error: The database has schema 9, but this version of Recollect knows only up to 7. …
(schema)""",
    ),
    Explanation(
        "database_damaged",
        "The database cannot be read, so nothing of it is served.",
        ("the file was cut, overwritten or damaged by its disk",),
        (
            "`recollect doctor --data DIR` looks closer.",
            "`recollect restore BACKUP --data NEW_FOLDER` brings a backup back.",
            "Keep the damaged folder until that is done.",
        ),
        """\
$ recollect up
Error: The database cannot be read: file is not a database.
`recollect doctor` looks closer; `recollect restore BACKUP --data NEW_FOLDER` brings a backup back.
(database_damaged)""",
    ),
    Explanation(
        "os_error",
        "The operating system refused a file or a folder.",
        ("it is not there, or this user may not use it",),
        ("Check the path that the message names, and who may use it.",),
        """\
$ recollect up --data /var/lib/recollect
Error: The system refused: Permission denied: /var/lib/recollect.
Check the path and who may use it.
(os_error)""",
    ),
    Explanation(
        "model",
        "A model cannot be had or used.",
        ("it stands for a family: what happens has a code of its own",),
        ("`recollect models list` shows which models there are and which are installed.",),
        """\
$ recollect models list""",
    ),
    Explanation(
        "model_unknown",
        "There is no model of that name to install.",
        ("the name is misspelt, or the model is one of your own",),
        (
            "`recollect models list` shows the names.",
            "A folder of your own with model.onnx and tokenizer.json is named where a model is "
            "asked for.",
        ),
        """\
$ recollect models install nosuch
Error: There is no model 'nosuch' to install; there is all-MiniLM-L6-v2. …
(model_unknown)""",
    ),
    Explanation(
        "model_unavailable",
        "No source gave the model.",
        ("there is no network, or a proxy is in between",),
        (
            "Try again, or give a folder or archive that has it: `recollect models install "
            "--help`.",
            "Recollect runs without it too, on its light embedder.",
        ),
        """\
$ recollect models install
Error: …
(model_unavailable)""",
    ),
    Explanation(
        "model_checksum",
        "The files are not those that are known, so they were not installed.",
        ("the download was cut or changed on its way",),
        ("Try again; from another source if it stays so.",),
        """\
$ recollect models install
Error: …
(model_checksum)""",
    ),
    Explanation(
        "model_busy",
        "Another process installs the same model just now.",
        ("two were started at once",),
        ("Wait for it, then try again.",),
        """\
$ recollect models install
Error: …
(model_busy)""",
    ),
    Explanation(
        "model_damaged",
        "The installed model cannot be used.",
        ("its files were cut, changed or deleted",),
        ("`recollect models install` puts it right.",),
        """\
$ recollect doctor
fail  model  …""",
    ),
    Explanation(
        "model_missing",
        "The model is not installed.",
        ("it was never installed, or RECOLLECT_MODELS names another folder",),
        ("`recollect models install NAME` installs it.",),
        """\
$ recollect models path
Error: The model all-MiniLM-L6-v2 is not installed in …
(model_missing)""",
    ),
)
