"""What `load` takes, what it refuses and how it says so."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recollect.config
from recollect.client.encoding import PAYLOAD_BYTES_MAX
from recollect.config import ConfigError, Problem, Settings, find_config, load
from recollect.config.declarations import KEYS, SECTIONS, value_of
from recollect.config.document import plain_value
from recollect.config.environment import LIKE_PATH, from_text


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memory_config.yaml"


def refusal(
    path: Path | None = None,
    environ: dict[str, str] | None = None,
    overrides: dict[str, object] | None = None,
) -> tuple[Problem, ...]:
    with pytest.raises(ConfigError) as caught:
        load(path, environ or {}, overrides or {})
    return caught.value.problems


def only(problems: tuple[Problem, ...]) -> Problem:
    assert len(problems) == 1, problems
    return problems[0]


def refused_text(file: Path, text: str) -> Problem:
    file.write_text(text)
    return only(refusal(file))


# What is accepted, and which source wins.


def test_nothing_given_means_the_defaults() -> None:
    assert load(None, {}) == Settings()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment\n",
        "---\n",
        "null\n",
        "storage:\n",
        "storage: {}\n",
        "\ufeffstorage:\n",
    ],
)
def test_a_file_that_says_nothing_means_the_defaults(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    assert load(file, {}) == Settings()


def test_later_sources_win_over_earlier_ones(file: Path) -> None:
    file.write_text("storage:\n  readers: 5\n  page_cache_mb: 5\n  group_commit_max: 5\n")
    environ = {"RECOLLECT_STORAGE_READERS": "6", "RECOLLECT_STORAGE_PAGE_CACHE_MB": "6"}
    storage = load(file, environ, {"storage.readers": 7}).storage
    assert (storage.readers, storage.page_cache_mb, storage.group_commit_max) == (7, 6, 5)
    assert storage.write_queue_max == Settings().storage.write_queue_max


@pytest.mark.parametrize(
    ("variable", "text", "dotted", "value"),
    [
        ("RECOLLECT_NETWORK_BIND", "ipc:///tmp/r.sock", "network.bind", "ipc:///tmp/r.sock"),
        ("RECOLLECT_STORAGE_DATA", "2024", "storage.data", "2024"),
        ("RECOLLECT_DATA", "/srv/memory", "storage.data", "/srv/memory"),
        ("RECOLLECT_REDIS_URL", "off", "redis.url", "off"),
        ("RECOLLECT_CIRCUIT_BREAKER_FAIL_MAX", "9", "circuit_breaker.fail_max", 9),
        ("RECOLLECT_STORAGE_WRITE_QUEUE_MAX", "10_000", "storage.write_queue_max", 10_000),
        ("RECOLLECT_CIRCUIT_BREAKER_RESET_TIMEOUT_S", "2", "circuit_breaker.reset_timeout_s", 2.0),
        ("RECOLLECT_DECAY_FADE_THRESHOLD", "1e-3", "decay.fade_threshold", 0.001),
        ("RECOLLECT_LOGGING_LEVEL", "debug", "logging.level", "debug"),
        ("RECOLLECT_LOGGING_FILE", "r.log", "logging.file", "r.log"),
        ("RECOLLECT_LOGGING_FILE", "1", "logging.file", "1"),
        ("RECOLLECT_LOGGING_FILE", "null", "logging.file", None),
        ("RECOLLECT_LOGGING_FILE", "", "logging.file", None),
        ("RECOLLECT_JOBS_DECAY_SCHEDULE", "@daily", "jobs.decay.schedule", "@daily"),
        ("RECOLLECT_JOBS_DECAY_ENABLED", "false", "jobs.decay.enabled", False),
        ("RECOLLECT_JOBS_RETENTION_DELETED_DAYS", "30", "jobs.retention.deleted_days", 30.0),
    ],
)
def test_a_variable_is_read_in_the_type_of_its_key(
    variable: str, text: str, dotted: str, value: object
) -> None:
    found = value_of(load(None, {variable: text}), dotted)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("dotted", KEYS)
def test_every_key_can_be_set_by_its_variable(dotted: str) -> None:
    key = KEYS[dotted]
    text = "null" if key.default is None else str(key.default)
    if isinstance(key.default, tuple):
        text = (os.pathsep if key.dotted in LIKE_PATH else ",").join(key.default)
    assert value_of(load(None, {key.variable: text}), dotted) == key.default


def test_no_two_keys_share_a_variable() -> None:
    assert len({key.variable for key in KEYS.values()}) == len(KEYS)


def test_variables_read_elsewhere_and_variables_of_others_are_left_alone() -> None:
    names = ["RECOLLECT_ENDPOINT", "RECOLLECT_CONFIG", "RECOLLECT_FAILPOINTS", "PATH", "REDIS_URL"]
    assert load(None, dict.fromkeys(names, "anything")) == Settings()


def test_a_list_is_a_list_in_the_file_and_like_a_path_in_a_variable(file: Path) -> None:
    file.write_text("documents:\n  roots: [docs, /srv/notes]\n")
    assert load(file, {}).documents.roots == ("docs", "/srv/notes")
    variable = {"RECOLLECT_DOCUMENTS_ROOTS": "docs:/srv/notes"}
    assert load(None, variable).documents.roots == ("docs", "/srv/notes")
    file.write_text("documents:\n  roots: [docs, [deeper]]\n")
    with pytest.raises(ConfigError, match="list of plain texts"):
        load(file, {})


def test_true_and_false_are_understood_and_nothing_else(file: Path) -> None:
    file.write_text("access:\n  require_keys: true\n")
    assert load(file, {}).access.require_keys is True
    file.write_text("access:\n  require_keys: yes\n")
    with pytest.raises(ConfigError, match="must be true or false"):
        load(file, {})


def test_the_word_off_needs_no_quotes_in_the_file(file: Path) -> None:
    file.write_text("redis:\n  url: off\n")
    assert load(file, {}).redis.url == "off"


def test_a_whole_number_is_taken_where_a_number_is_wanted(file: Path) -> None:
    file.write_text("gateway:\n  timeout_s: 3\n")
    timeout_s = load(file, {}).gateway.timeout_s
    assert (timeout_s, type(timeout_s)) == (3.0, float)


def test_an_override_may_be_a_value_a_path_or_text_to_be_read() -> None:
    overrides = {"storage.data": Path("/srv/m"), "storage.readers": "8", "gateway.timeout_s": 2}
    settings = load(None, {}, overrides)
    assert settings.storage.data == str(Path("/srv/m"))
    assert settings.storage.readers == 8
    assert settings.gateway.timeout_s == 2.0


@pytest.mark.parametrize(
    ("dotted", "address"),
    [
        ("network.bind", "tcp://0.0.0.0:0"),
        ("network.bind", "tcp://*:7331"),
        ("network.bind", "tcp://[::1]:7331"),
        ("network.bind", "tcp://localhost:*"),
        ("storage.url", "postgresql://me:secret@db/recollect"),
        ("redis.url", "embedded"),
        ("redis.url", "redis://127.0.0.1:6379/0"),
        ("redis.url", "unix:///run/redis.sock"),
        ("redis.url", "rediss://me:secret@cache"),
        ("health.webhook_url", "https://me:secret@hooks.example:8443/alerts?to=x"),
    ],
)
def test_addresses_of_every_known_form_are_taken(dotted: str, address: str) -> None:
    assert value_of(load(None, {}, {dotted: address}), dotted) == address


# What is refused, and how it is reported.


def test_a_missing_file_is_named(file: Path) -> None:
    problem = only(refusal(file))
    assert problem.source == str(file)
    assert "no such file" in problem.message


def test_a_folder_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    assert "cannot be read" in only(refusal(tmp_path)).message


@pytest.mark.parametrize(
    ("text", "line", "key", "suggestion"),
    [
        ("network:\n  bnd: x\n", 2, "network.bnd", "did you mean `network.bind`?"),
        ("\n\nnetwrok:\n  bind: x\n", 3, "netwrok", "did you mean `network`?"),
        ("storage:\n  bind: x\n", 2, "storage.bind", "did you mean `network.bind`?"),
        ("bind: tcp://127.0.0.1:1\n", 1, "bind", "did you mean `network.bind`?"),
        (
            "gateway:\n  bind: 0.0.0.0:80\n",
            2,
            "gateway.bind",
            "where it listens is `gateway.host` and `gateway.port`",
        ),
        ("network.bind: x\n", 1, "network.bind", "write `bind:` under `network:`"),
        ("limits:\n  zzzzzz: {a: [1]}\n", 2, "limits.zzzzzz", ""),
    ],
)
def test_an_unknown_name_is_refused_with_its_line_and_the_nearest_known_one(
    file: Path, text: str, line: int, key: str, suggestion: str
) -> None:
    problem = refused_text(file, text)
    assert (problem.source, problem.key) == (f"{file}:{line}", key)
    assert problem.message.startswith("no such")
    assert problem.suggestion == suggestion


@pytest.mark.parametrize(
    ("text", "key", "message"),
    [
        ("storage:\n  readers: many\n", "storage.readers", "a whole number, 1 to 64, not 'many'"),
        ("storage:\n  readers: '4'\n", "storage.readers", "a whole number, 1 to 64, not '4'"),
        ("storage:\n  readers: 4.5\n", "storage.readers", "a whole number, 1 to 64, not 4.5"),
        ("storage:\n  readers: 010\n", "storage.readers", "a whole number, 1 to 64, not '010'"),
        ("storage:\n  readers: true\n", "storage.readers", "a whole number, 1 to 64, not true"),
        ("storage:\n  readers: null\n", "storage.readers", "a whole number, 1 to 64, not null"),
        ("storage:\n  readers: 0\n", "storage.readers", "a whole number, 1 to 64, not 0"),
        ("storage:\n  idempotency_hours: 1\n", "storage.idempotency_hours", "24 to 8760, not 1"),
        ("limits:\n  page_items_max: 999\n", "limits.page_items_max", "1000 to 100000, not 999"),
        (
            f"limits:\n  payload_bytes_max: {PAYLOAD_BYTES_MAX + 1}\n",
            "limits.payload_bytes_max",
            f"a whole number, 1024 to {PAYLOAD_BYTES_MAX}, not {PAYLOAD_BYTES_MAX + 1}",
        ),
        ("limits:\n  batch_items_max: 1\n", "limits.batch_items_max", "1000 to 1000000, not 1"),
        ("decay:\n  fade_threshold: 1\n", "decay.fade_threshold", "above 0, below 1, not 1"),
        ("gateway:\n  timeout_s: .nan\n", "gateway.timeout_s", "and finite, not nan"),
        ("gateway:\n  timeout_s: -.inf\n", "gateway.timeout_s", "and finite, not -inf"),
        ("gateway:\n  timeout_s: 1e999\n", "gateway.timeout_s", "and finite, not inf"),
        ("gateway:\n  timeout_s: nan\n", "gateway.timeout_s", "not 'nan'"),
        ("storage:\n  data:\n", "storage.data", "must be text, not null"),
        ("storage:\n  data: ''\n", "storage.data", "must not be empty"),
        ("storage:\n  data: 2024\n", "storage.data", "must be text, not 2024"),
        ("storage:\n  data: [a]\n", "storage.data", "must be one value"),
        ("storage:\n  data: {a: b}\n", "storage.data", "must be one value"),
        ("storage:\n  data: !secret a\n", "storage.data", "tags such as"),
        ("storage:\n  data: !!python/name:os.system\n", "storage.data", "tags such as"),
        (f"storage:\n  readers: {'9' * 5000}\n", "storage.readers", "not '999"),
        (f"storage:\n  readers: {'9' * 4000}\n", "storage.readers", "not 999"),
        ("logging:\n  level: loud\n", "logging.level", "one of `debug`, `info`, `warning`"),
        (
            "embedding:\n  provider: magic\n",
            "embedding.provider",
            "must be one of `local`, `hashed`",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_its_line_and_what_is_wanted(
    file: Path, text: str, key: str, message: str
) -> None:
    problem = refused_text(file, text)
    assert (problem.source, problem.key) == (f"{file}:2", key)
    assert message in problem.message
    assert len(problem.message) < 200


def test_a_misspelt_choice_gets_the_nearest_one(file: Path) -> None:
    problem = refused_text(file, "logging:\n  level: warn\n")
    assert problem.suggestion == "did you mean `warning`?"


def test_text_that_looks_like_a_number_is_told_to_take_quotes(file: Path) -> None:
    assert refused_text(file, "storage:\n  data: 7\n").suggestion == "put quotes around it"


@pytest.mark.parametrize(
    ("text", "line", "key", "first"),
    [
        ("storage:\n  readers: 1\n  data: x\n  readers: 2\n", 4, "storage.readers", 2),
        ("storage:\n  readers: 1\nstorage:\n  data: x\n", 3, "storage", 1),
    ],
)
def test_a_name_given_twice_is_refused_with_both_lines(
    file: Path, text: str, line: int, key: str, first: int
) -> None:
    problem = refused_text(file, text)
    assert (problem.source, problem.key) == (f"{file}:{line}", key)
    assert problem.message == f"given twice, first in line {first}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("storage:\n  data: 'x\n", 3),
        ("storage:\n\tdata: x\n", 2),
        ("storage: {\n", 2),
        ("storage:\n  data: x\n---\nstorage:\n", 3),
        ("storage:\n  data: *nowhere\n", 2),
    ],
)
def test_broken_yaml_is_refused_with_its_line(file: Path, text: str, line: int) -> None:
    problem = refused_text(file, text)
    assert problem.source == f"{file}:{line}"
    assert problem.message.startswith("not valid YAML")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("- storage\n", 1, "must hold sections"),
        ("just words\n", 1, "must hold sections"),
        ("\nstorage: 5\n", 2, "must hold keys"),
        ("storage: [readers]\n", 1, "must hold keys"),
        ("storage:\n  ? [a, b]\n  : 1\n", 2, "a name must be plain text"),
    ],
)
def test_a_file_of_another_shape_is_refused_with_its_line(
    file: Path, text: str, line: int, message: str
) -> None:
    problem = refused_text(file, text)
    assert problem.source == f"{file}:{line}"
    assert message in problem.message


@pytest.mark.parametrize(
    "raw",
    [b"storage:\n  data: \xff\n", b"storage: \x00\n", b"[" * 20_000, b"# " + b"x" * 2_000_000],
    ids=["not UTF-8", "control character", "deep nesting", "too large"],
)
def test_a_file_that_is_no_configuration_at_all_is_refused_politely(file: Path, raw: bytes) -> None:
    file.write_bytes(raw)
    assert only(refusal(file)).source.startswith(str(file))


@pytest.mark.parametrize(
    ("variable", "suggestion"),
    [
        ("RECOLLECT_NETWORK_BND", "did you mean `RECOLLECT_NETWORK_BIND`?"),
        ("RECOLLECT_BIND", "did you mean `RECOLLECT_NETWORK_BIND`?"),
        ("RECOLLECT_STORAGE_BIND", "did you mean `RECOLLECT_NETWORK_BIND`?"),
        ("RECOLLECT_NETWRK_BIND", "did you mean `RECOLLECT_NETWORK_BIND`?"),
        ("RECOLLECT_DATTA", "did you mean `RECOLLECT_DATA`?"),
        ("RECOLLECT_ENDPOIN", "did you mean `RECOLLECT_ENDPOINT`?"),
        ("RECOLLECT_QQQQQQ", ""),
    ],
)
def test_an_unknown_variable_is_refused_by_its_name(variable: str, suggestion: str) -> None:
    problem = only(refusal(environ={variable: "x"}))
    assert (problem.source, problem.message) == (variable, "no such variable")
    assert problem.suggestion == suggestion


def test_a_wrong_value_in_a_variable_names_the_variable_and_the_key() -> None:
    problem = only(refusal(environ={"RECOLLECT_STORAGE_READERS": "lots"}))
    assert (problem.source, problem.key) == ("RECOLLECT_STORAGE_READERS", "storage.readers")


def test_two_variables_for_one_key_must_agree() -> None:
    same = {"RECOLLECT_DATA": "/a", "RECOLLECT_STORAGE_DATA": "/a"}
    assert load(None, same).storage.data == "/a"
    problem = only(refusal(environ=same | {"RECOLLECT_STORAGE_DATA": "/b"}))
    assert problem.message == "contradicts RECOLLECT_DATA"


def test_an_unknown_or_wrong_override_is_refused() -> None:
    unknown, wrong = refusal(overrides={"storage.dta": "x", "storage.readers": "none"})
    assert (unknown.source, unknown.suggestion) == ("command line", "did you mean `storage.data`?")
    assert (wrong.source, wrong.key) == ("command line", "storage.readers")


@pytest.mark.parametrize(
    ("dotted", "address", "said"),
    [
        ("network.bind", "udp://127.0.0.1:1", "must begin with `tcp://` or `ipc://`"),
        ("network.bind", "127.0.0.1:7331", "must begin with `tcp://` or `ipc://`"),
        ("network.bind", "tcp://127.0.0.1", "needs a host and a port"),
        ("network.bind", "tcp://:7331", "needs a host and a port"),
        ("network.bind", "tcp://[::1", "needs a host and a port"),
        ("network.bind", "tcp://::1:7331", "needs brackets around an IPv6 host"),
        ("network.bind", "tcp://127.0.0.1:", "needs a port"),
        ("network.bind", "tcp://127.0.0.1:70000", "needs a port"),
        ("network.bind", "tcp://127.0.0.1:x", "needs a port"),
        ("network.bind", "ipc://", "needs a path"),
        ("storage.url", "postgres://db/x", "did you mean `postgresql://`?"),
        ("storage.url", "sqlite:///x.db", "name the folder in `storage.data`"),
        ("storage.url", "mysql://db/x", "must be `sqlite` or begin with `postgresql://`"),
        ("redis.url", "redis://", "must be `off`, `embedded`, or an address"),
        ("redis.url", "embeded", "did you mean `embedded`?"),
        ("redis.url", "redis://host:abc/0", "a port in it must be a number"),
        ("redis.url", "redis://host:70000", "a port in it must be a number"),
        ("health.webhook_url", "hooks.example/x", "must begin with `http://` or `https://`"),
        ("health.webhook_url", "https://hooks.example/x\n", "an end of a line"),
        ("health.webhook_url", "https://hooks.example:x/", "needs a host, and a port"),
        ("health.webhook_url", "https://hooks.example:99999/", "needs a host, and a port"),
        ("health.webhook_url", "https:///x", "needs a host"),
    ],
)
def test_an_address_of_unknown_form_is_refused(dotted: str, address: str, said: str) -> None:
    problem = only(refusal(overrides={dotted: address}))
    assert problem.key == dotted
    assert said in str(problem)


def test_a_password_in_a_refused_address_is_not_repeated() -> None:
    environ = {
        "RECOLLECT_STORAGE_URL": "postgres://me:hunter2@db/x",
        "RECOLLECT_REDIS_URL": "redis:/:hunter2@cache",
    }
    assert all("hunter2" not in str(problem) for problem in refusal(environ=environ))


def test_keys_that_contradict_each_other_are_refused_where_they_were_given(file: Path) -> None:
    problem = refused_text(file, "storage:\n  group_commit_max: 5000\n")
    assert (problem.source, problem.key) == (f"{file}:2", "storage.group_commit_max")
    assert problem.message == "is 5000, but `storage.write_queue_max` is only 4096"


def test_a_contradiction_is_reported_at_the_key_that_was_changed(file: Path) -> None:
    problem = refused_text(file, "storage:\n  write_queue_max: 100\n")
    assert (problem.source, problem.key) == (f"{file}:2", "storage.group_commit_max")


def test_a_refused_value_does_not_also_count_as_a_contradiction(file: Path) -> None:
    file.write_text("storage:\n  group_commit_max: 5000\n  write_queue_max: lots\n")
    assert only(refusal(file)).key == "storage.write_queue_max"


def test_all_problems_of_all_sources_come_in_one_readable_message(file: Path) -> None:
    file.write_text("network:\n  bnd: x\nstorage:\n  readers: 0\n  url: mongodb://x\n")
    with pytest.raises(ConfigError) as caught:
        load(file, {"RECOLLECT_DATTA": "x"}, {"gateway.timeout_s": -1})
    assert str(caught.value).splitlines() == [
        "The configuration was refused because of 5 problems:",
        f"  - {file}:2: network.bnd: no such key; did you mean `network.bind`?",
        f"  - {file}:4: storage.readers: must be a whole number, 1 to 64, not 0",
        "  - RECOLLECT_DATTA: no such variable; did you mean `RECOLLECT_DATA`?",
        "  - command line: gateway.timeout_s: must be a number, above 0, at most 3600, not -1",
        f"  - {file}:5: storage.url: must be `sqlite` or begin with `postgresql://`",
    ]


def test_a_broken_file_does_not_hide_problems_of_the_variables(file: Path) -> None:
    file.write_text("storage: {\n")
    assert len(refusal(file, {"RECOLLECT_STORAGE_READERS": "0"})) == 2


def test_a_config_error_survives_pickling() -> None:
    error = ConfigError([Problem("a.yaml:1", "x.y", "is wrong")])
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@settings(deadline=None)  # however busy the machine is
@given(st.text())
def test_any_text_in_the_file_gives_settings_or_a_config_error(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        assert isinstance(load(file, {}), Settings)
    except ConfigError as error:
        assert error.problems


@settings(deadline=None)  # however busy the machine is
@given(st.sampled_from(sorted(KEYS)), st.text())
def test_any_text_in_a_variable_gives_a_valid_value_or_a_config_error(key: str, text: str) -> None:
    try:
        settings = load(None, {KEYS[key].variable: text})
    except ConfigError as error:
        assert {problem.source for problem in error.problems} == {KEYS[key].variable}
    else:
        assert msgspec.convert(msgspec.to_builtins(settings), Settings) == settings


@settings(deadline=None)  # however busy the machine is
@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans())
def test_a_plain_scalar_is_read_back_as_it_was_written(value: object) -> None:
    assert plain_value(str(value)) == value
    assert type(plain_value(str(value))) is type(value)


# Sections within sections.


def test_a_section_within_a_section_is_read_and_the_rest_keeps_its_defaults(file: Path) -> None:
    file.write_text("jobs:\n  decay:\n    limit: 7\n  backup:\n    keep: 2\n  retention:\n")
    jobs = load(file, {"RECOLLECT_JOBS_BACKUP_KEEP": "3"}, {"jobs.decay.enabled": False}).jobs
    assert (jobs.decay.limit, jobs.decay.enabled, jobs.backup.keep) == (7, False, 3)
    usual = Settings().jobs
    assert (jobs.decay.schedule, jobs.retention) == (usual.decay.schedule, usual.retention)


@pytest.mark.parametrize(
    ("text", "line", "key", "said"),
    [
        ("jobs:\n  decoy:\n    limit: 1\n", 2, "jobs.decoy", "did you mean `jobs.decay`?"),
        ("jobs:\n  decay:\n    limt: 1\n", 3, "jobs.decay.limt", "`jobs.decay.limit`?"),
        ("jobs:\n  decay: 5\n", 2, "jobs.decay", "must hold keys"),
        ("jobs: 5\n", 1, "jobs", "must hold keys"),
        ("jobs:\n  decay:\n    limit: {a: 1}\n", 3, "jobs.decay.limit", "must be one value"),
        ("jobs:\n  decay:\n    limit: 0\n", 3, "jobs.decay.limit", "1 to 100000, not 0"),
        ("jobs:\n  decay: {}\n  decay: {}\n", 3, "jobs.decay", "given twice, first in line 2"),
        ("decay:\n  schedule: x\n", 2, "decay.schedule", "no such key"),
        ("jobs:\n  decay:\n    schedule: 61 * * * *\n", 3, "jobs.decay.schedule", "from 0 to 59"),
        ("jobs:\n  decay:\n    schedule: hourly\n", 3, "jobs.decay.schedule", "five fields"),
        ("jobs:\n  decay:\n    schedule: '@often'\n", 3, "jobs.decay.schedule", "@hourly"),
        ("scheduler:\n  timezone: Mars/Olympus\n", 2, "scheduler.timezone", "not a time zone"),
    ],
)
def test_what_is_wrong_within_a_section_is_said_with_its_line(
    file: Path, text: str, line: int, key: str, said: str
) -> None:
    problem = refused_text(file, text)
    assert (problem.source, problem.key) == (f"{file}:{line}", key)
    assert said in str(problem)


def test_a_misspelt_variable_of_an_inner_section_gets_the_nearest() -> None:
    problem = only(refusal(environ={"RECOLLECT_JOBS_DECAY_SCHEDUL": "x"}))
    assert problem.suggestion == "did you mean `RECOLLECT_JOBS_DECAY_SCHEDULE`?"


# Where the file is looked for.


def test_the_named_file_wins_over_the_variable_and_the_usual_place(file: Path) -> None:
    file.touch()
    cwd = file.parent
    environ = {"RECOLLECT_CONFIG": "variable.yaml"}
    assert find_config("named.yaml", environ, cwd) == cwd / "named.yaml"
    assert find_config("/etc/named.yaml", environ, cwd) == Path("/etc/named.yaml")
    assert find_config(None, environ, cwd) == cwd / "variable.yaml"
    assert find_config(None, {"RECOLLECT_CONFIG": ""}, cwd) == file
    assert find_config(None, {}, cwd) == file


def test_no_file_is_found_where_none_is(tmp_path: Path) -> None:
    assert find_config(None, {}, tmp_path) is None


# The package.


def test_the_package_exports_what_it_lists_and_every_section() -> None:
    exported = set(recollect.config.__all__)
    assert all(hasattr(recollect.config, name) for name in exported)
    outer = {section.struct.__name__ for path, section in SECTIONS.items() if "." not in path}
    assert outer < exported


def test_settings_cannot_be_changed_in_place() -> None:
    with pytest.raises(AttributeError):
        Settings().storage.readers = 9  # type: ignore[misc]


def test_a_list_in_a_variable_is_cut_at_commas_and_not_at_the_colons_within_its_values() -> None:
    environ = {
        "RECOLLECT_GATEWAY_ORIGINS_ALLOWED": "https://app.example.org, https://b.example:8443",
        "RECOLLECT_CLIENT_ENDPOINTS": "tcp://a:7331,tcp://b:7331",
        "RECOLLECT_JOBS_CONSOLIDATION_NAMESPACES": "user:alice",
        "RECOLLECT_JOBS_DOCUMENT_SYNC_FOLDERS": "project:harbour=/srv/docs",
        "RECOLLECT_DOCUMENTS_ROOTS": "/srv/docs:/srv/a, b",
    }
    loaded = load(None, environ)
    assert loaded.gateway.origins_allowed == ("https://app.example.org", "https://b.example:8443")
    assert loaded.client.endpoints == ("tcp://a:7331", "tcp://b:7331")
    assert loaded.jobs.consolidation.namespaces == ("user:alice",)
    assert loaded.jobs.document_sync.folders == ("project:harbour=/srv/docs",)
    assert loaded.documents.roots == ("/srv/docs", "/srv/a, b")


@pytest.mark.parametrize(
    ("dotted", "text"),
    [
        ("gateway.origins_allowed", "//app.example.org"),
        ("gateway.origins_allowed", "https"),
        ("gateway.origins_allowed", "https://app.example.org/"),
        ("gateway.origins_allowed", "https://me:secret@app.example.org"),
        ("jobs.consolidation.namespaces", "alice"),
        ("jobs.consolidation.namespaces", "users:alice"),
        ("jobs.document_sync.folders", "/srv/docs"),
        ("jobs.document_sync.folders", "project=/srv/docs"),
        ("jobs.document_sync.folders", "project:harbour="),
    ],
)
def test_an_entry_of_a_list_that_can_mean_nothing_is_refused(dotted: str, text: str) -> None:
    problem = only(refusal(overrides={dotted: [text]}))
    assert problem.key == dotted
    assert problem.suggestion.startswith("write them as ")
    assert "secret" not in str(problem)


def test_a_list_of_texts_with_commas_may_be_json() -> None:
    key = KEYS["gateway.origins_allowed"]
    origins = ["https://a.example:8443,", "http://b.example"]
    assert from_text(key, msgspec.json.encode(origins).decode()) == origins
    assert from_text(key, "[not json") == "[not json"
