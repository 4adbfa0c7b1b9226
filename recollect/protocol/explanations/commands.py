"""Errors that only the command line has."""

from __future__ import annotations

from recollect.protocol.explanations.explanation import Explanation

COMMANDS = (
    Explanation(
        "usage",
        "The options of a call do not go together.",
        ("two options name two different things",),
        ("Leave out the one that the message says; `recollect COMMAND --help` has an example.",),
        """\
$ recollect backup ./monday --data ./memories --endpoint tcp://127.0.0.1:7331
Error: --data and --endpoint name two sources.
Give one of them.
(usage)""",
    ),
    Explanation(
        "ambiguous_id",
        "Several ids end in what was given.",
        ("tables show the end of an id, and a short end fits more than one",),
        ("Give more of the id; --full-ids shows them whole.",),
        """\
$ recollect get 4ab2
Error: 2 ids end in 4ab2: …
Give more of the id.
(ambiguous_id)""",
    ),
    Explanation(
        "ambiguous_label",
        "Several bearer keys of an identity have that label.",
        ("the same label was given twice",),
        ("Name the key by its id, which the message and `recollect keys list` show.",),
        """\
$ recollect keys revoke planner --bearer laptop
Error: planner has 2 bearer keys with the label 'laptop': …
(ambiguous_label)""",
    ),
    Explanation(
        "bad_file",
        "The file cannot be imported: it is not there, not whole, or of no known kind.",
        (
            "it was cut or changed after it was exported",
            "it is from a program that is not told by its content",
        ),
        (
            "Export again, or use another copy.",
            "Name the program with --from; docs/import-export.md lists those that are known.",
        ),
        """\
$ recollect import notes.json
Error: notes.json: it is neither an export of Recollect nor of a program that is known.
If it is from one of mem0, langgraph, mcp-memory, chatgpt, claude, say so with --from.
(bad_file)""",
    ),
    Explanation(
        "bad_key_file",
        "The file is not there, or is not a key file.",
        ("another file was named, or its content was changed",),
        ("Check the path; `recollect keys new NAME` makes a new key.",),
        """\
$ recollect keys list --key-file notes.txt
Error: notes.txt is not a key file: a line has no colon.
(bad_key_file)""",
    ),
    Explanation(
        "file_exists",
        "The file for the new key is there already, and no key is ever written over.",
        ("a key of that name was made before",),
        ("Choose another file with --out.",),
        """\
$ recollect keys new planner
Error: planner.key is there already, and no key is ever written over.
Choose another file with --out.
(file_exists)""",
    ),
    Explanation(
        "backup_damaged",
        "The backup is not what its manifest says, so nothing was restored.",
        ("a file of it was changed, cut or lost after it was made",),
        ("Use another backup.",),
        """\
$ recollect restore ./backups/monday --data ./restored
Error: The copy in ./backups/monday is not what its manifest says: it was changed or damaged …
(backup_damaged)""",
    ),
    Explanation(
        "backup_unfinished",
        "The folder is no backup, or one that was not finished.",
        ("making it was broken off", "another folder was named"),
        ("Use another backup; `recollect backup DEST` makes a new one.",),
        """\
$ recollect restore ./backups --data ./restored
Error: ./backups has no manifest.json: it is not a backup, or it was not finished.
(backup_unfinished)""",
    ),
    Explanation(
        "no_log",
        "There is no log in the data folder, or none of that name.",
        ("nothing was started there by `recollect up`", "--data names another folder"),
        ("Name the data folder with --data; the message lists the logs that it has.",),
        """\
$ recollect logs
Error: There is no log yet in recollect-data/logs.
`recollect up` writes them. --data names another folder.
(no_log)""",
    ),
    Explanation(
        "no_scheduler",
        "The run was asked for, and no scheduler is at work that would begin it.",
        ("`recollect up --without scheduler`, or only an orchestrator was started",),
        ("`recollect up` starts everything, `recollect scheduler` the scheduler alone.",),
        """\
$ recollect jobs run decay
Error: No scheduler is at work; the run waits for one.
(no_scheduler)""",
    ),
    Explanation(
        "reembedding_failed",
        "Embedding everything anew ended early; the memories keep the vectors they had.",
        ("the new model or its server failed, as the message says",),
        ("Mend that, and run `recollect reembed` again.",),
        """\
$ recollect reembed --model text-embedding-3-small --provider openai
Error: Embedding with text-embedding-3-small ended early: …
(reembedding_failed)""",
    ),
)
