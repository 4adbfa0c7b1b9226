"""The namespaces of users and apps: every name has one, and no two names share one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.config.settings import LimitsSettings
from recollect.orchestrator.sessions.homes import app_namespace, readable_sessions, user_namespace
from recollect.orchestrator.validation import Validator

names = st.text(
    st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1, max_size=20
)


@given(name=names)
def test_every_name_has_a_namespace_of_its_own(name: str) -> None:
    validator = Validator(LimitsSettings())
    for namespace in (user_namespace(name), app_namespace(name)):
        assert validator.namespace(namespace) == namespace
        assert namespace.count(":") == 1


@given(one=names, other=names)
def test_two_names_never_share_one(one: str, other: str) -> None:
    assert (user_namespace(one) == user_namespace(other)) is (one == other)


@given(name=names)
def test_the_grant_on_a_users_namespace_names_that_user(name: str) -> None:
    sql, params = readable_sessions((user_namespace(name),))
    assert sql.startswith("user_id IN (?) AND ")
    assert params[0] == name


def test_a_grant_elsewhere_shows_no_session() -> None:
    assert readable_sessions(("project:x", "user:alice:notes"))[0] == "FALSE"
    assert readable_sessions(())[0] == "FALSE"
    assert readable_sessions(None)[0] == "TRUE"
    assert "user_id" not in readable_sessions(("user", "user:alice"))[0]
