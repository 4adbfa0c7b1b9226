"""What counts as a secret, and what does not."""

from __future__ import annotations

import random
import string
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.orchestrator.trust.secret_policy import SecretPolicy
from recollect.orchestrator.trust.secret_shapes import find_secrets, masked, secret_by_name
from recollect.protocol.errors import SecretRefused

RANDOM = random.Random(20260131)


def made(length: int, characters: str = string.ascii_letters + string.digits) -> str:
    """Something that a generator could have made; no key of anybody."""
    return "".join(RANDOM.choice(characters) for _ in range(length))


PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{made(64)}\n{made(64)}\n-----END RSA PRIVATE KEY-----"
JWT = f"eyJ{made(20)}.eyJ{made(40)}.{made(43)}"

# The text around, and the secret in it.
SECRETS: list[tuple[str, str]] = [
    ("Use {} for the model.", f"sk-proj-{made(48)}"),
    ("key {}", f"sk-{made(48)}"),
    ("Anthropic: {}.", f"sk-ant-api03-{made(80)}-AA"),
    ("aws_access_key_id = {}", f"AKIA{made(16, string.ascii_uppercase + '234567')}"),
    ("aws_secret_access_key = {}", made(40, string.ascii_letters + string.digits + "+/") + "1a"),
    ("git clone https://{}@github.com/a/b", f"ghp_{made(36)}"),
    ("{}", f"github_pat_{made(22)}_{made(59)}"),
    ("export GITLAB={}", f"glpat-{made(20)}"),
    ("SLACK={}", f"xoxb-{made(12, string.digits)}-{made(12, string.digits)}-{made(24)}"),
    ("post to https://{}", f"hooks.slack.com/services/T{made(8)}/B{made(8)}/{made(24)}"),
    ("stripe {}", f"sk_live_{made(24)}"),
    ("maps?key={}", f"AIza{made(35)}"),
    ("client {}", f"GOCSPX-{made(28)}"),
    ("huggingface-cli login --token {}", f"hf_{made(34)}"),
    ("//registry.npmjs.org/:_authToken={}", f"npm_{made(36)}"),
    ("twine -p {}", f"pypi-AgEIcHlwaS5vcmc{made(60)}"),
    ("{}", f"SG.{made(22)}.{made(43)}"),
    ("the cookie is {} today", JWT),
    ("Authorization: Bearer {}", f"{made(30)}7"),
    ("curl -H 'authorization: bearer {}'", f"{made(40)}8"),
    ("The key:\n{}\nand no more.", PEM),
    ("postgresql://app:{}@db.local:5432/app", "s3cr3t-pw"),
    ("redis://:{}@cache:6379/0", "hunter2"),
    ("mongodb+srv://root:{}@cluster0.abc.mongodb.net", "correcthorse"),
    ('password = "{}"', "swordfish"),
    ("password: {}", "Tr0ub4dor&3"),
    ("'passwd': '{}'", "opensesame"),
    ("DB_PASSWORD={}", "swordfish"),
    ("export ADMIN_PWD={}", "letmeinplease"),
    ("Anna's wifi password is {}.", "Tr0ub4dor&3"),
    ('The password was "{}", of all things.', "swordfish"),
    ("I set the passphrase to {} yesterday", "k9#mm2!zz"),
    ("api_key: {}", f"{made(16)}4f"),
    ('"client_secret": "{}"', f"{made(24)}9z"),
    ("X-Api-Key: {}", f"{made(24)}1b"),
    ("The API key for staging is {}", f"{made(28)}2c"),
    ("token={}", "0123456789abcdef0123456789abcdef01234567"),
    ("Our deploy secret, which nobody may know: {}", f"{made(32)}5d"),
    ("credentials for the bucket {}", f"{made(40)}6e"),
    # As Amazon's own example: with slashes in it, and hardly a digit.
    ("aws_secret_access_key = {}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY"),
    ("Recollect: {}.", f"rk_{'Qx7_-k2mB9' * 4}-Z_"),
]

HARMLESS: list[str] = [
    "export PWD=/home/alice/work",
    "PWD=/srv/app2\nOLDPWD=/srv/app1",
    'pwd = "/srv/app"',
    "Anna prefers green tea.",
    "The password must have at least 12 characters and 1 digit.",
    "password: required",
    "Password = <your password>",
    "password = getpass.getpass()",
    "password=os.environ['DB_PASSWORD']",
    "password: ${DB_PASSWORD}",
    "DB_PASSWORD=$OTHER_PASSWORD",
    'password = ""',
    "password=None",
    "password: ********",
    "password=changeme",
    "The password is wrong.",
    "Her password is the name of a dog.",
    "The password was changed to something longer.",
    "I forgot my password to the forum",
    "token: the unit in which models read text",
    "secret = load_secret(name)",
    "secret: never give up",
    "token = tokens[i]",
    "self.token = token",
    "The model has a context of 200000 tokens: 4096 for output.",
    "max_tokens=4096",
    "tokens: 12345678",
    "The primary key is 550e8400-e29b-41d4-a716-446655440000",
    "session token id 01a1e891-0a7c-702e-9710-b8a19b8756e2",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b fixed it",
    "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "See https://example.org/a/very/long/path/to/something?page=12",
    "postgresql://localhost:5432/app",
    "postgresql://user:password@localhost/db",
    "https://user:<password>@host/",
    "mailto:anna@example.org or ssh://git@example.org:22/x",
    "The basic authentication mechanism of the protocol",
    "bearer of bad news, or Bearer authentication schemes",
    "sk-learn and sk-image are libraries; scikit-learn-extra-long-name too",
    "task-management-and-more, risk-assessment-of-everything-we-have",
    "The API key is stored in the vault, not here.",
    "An API key: a text that lets a program in.",
    "api_key: str | None = None",
    "access_key: settings.access_key",
    "private key handling in recollect/orchestrator/access/own_keys.py",
    "secret_access_key_rotation_reminder_for_the_whole_team",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQ\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\nMIIBIjANBgkqhkiG9w0BAQ\n-----END CERTIFICATE-----",
    "The credentials of the author are impressive: Cambridge1998",
    "AKIA is how AWS keys begin, ghp_ how those of GitHub do.",
    "eyJ is how a JSON web token begins.",
    "x" * 5_000,
    "0123456789" * 500,
    "Der Schlüssel liegt unter der Matte. 密码在桌子上。",
    "def verify_token(token: str, expected: bytes) -> bool: ...",
    "password: str = field(repr=False)",
    "if password == confirmation: raise ValueError",
    "the passcode is four digits long",
    "Rotate access keys: every 90 days",
]


@pytest.mark.parametrize(("text", "secret"), SECRETS, ids=[text for text, _ in SECRETS])
def test_a_secret_is_found_and_blotted_out_whole(text: str, secret: str) -> None:
    whole = text.format(secret)
    found = find_secrets(whole)
    assert len(found) == 1, found
    blotted = masked(whole, found)
    assert secret not in blotted and "[masked " in blotted
    before, after = text.split("{}")
    assert blotted.startswith(before[:3]) and blotted.endswith(after[-3:])
    # What was blotted out is not taken for a secret again.
    assert find_secrets(blotted) == []


@pytest.mark.parametrize("text", HARMLESS, ids=[text[:40] for text in HARMLESS])
def test_what_only_speaks_of_secrets_is_none(text: str) -> None:
    assert find_secrets(text) == []


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("password", "swordfish", "password"),
        ("db_password", "swordfish", "password"),
        ("Passphrase", "four words in a row", "password"),
        ("api_key", "4f9a8b7c6d5e4f3a", "token"),
        ("clientSecret", "Zx81-qq9-Lm2", "token"),
        ("auth.token", "0a1b2c3d4e5f6071", "token"),
        ("password", "", None),
        ("password", "<hidden>", None),
        ("password", "[masked password]", None),
        ("token", "hello", None),
        ("token", "the word that was read", None),
        ("tokens", "many", None),
        ("password_hint", "the dog of my aunt", None),
        ("key", "550e8400-e29b-41d4-a716-446655440000", None),
    ],
)
def test_a_value_is_judged_by_the_name_it_goes_by(name: str, text: str, kind: str | None) -> None:
    assert secret_by_name(name, text) == kind


def test_several_secrets_in_one_text_are_each_blotted_out() -> None:
    one, two = SECRETS[0][1], SECRETS[10][1]
    text = f"First {one}, then {two}; and {one} again."
    assert masked(text, find_secrets(text)) == (
        "First [masked OpenAI key], then [masked Stripe key]; and [masked OpenAI key] again."
    )


NESTED = {
    "a": [1, None, {"note": f"see {SECRETS[1][1]}"}, "plain"],
    "login": {"user": "anna", "password": "swordfish"},
}


def test_values_are_masked_wherever_the_secret_is() -> None:
    cleaned = SecretPolicy("mask").value("metadata", NESTED)
    assert cleaned == {
        "a": [1, None, {"note": "see [masked OpenAI key]"}, "plain"],
        "login": {"user": "anna", "password": "[masked password]"},
    }
    harmless = {"a": [1, {"b": "c"}]}
    assert SecretPolicy("mask").value("metadata", harmless) is harmless
    assert SecretPolicy("mask").value("metadata", cleaned) is cleaned


def test_a_refusal_names_the_field_and_the_kind_and_not_the_secret() -> None:
    with pytest.raises(SecretRefused) as caught:
        SecretPolicy("refuse").value("metadata", NESTED)
    assert caught.value.details == {"field": "metadata.a[2].note", "kind": "OpenAI key"}
    assert SECRETS[1][1] not in str(caught.value)
    with pytest.raises(SecretRefused, match=r"metadata seems to hold a secret \(OpenAI key\)"):
        SecretPolicy("mask").value("metadata", {SECRETS[1][1]: 1})
    with pytest.raises(SecretRefused, match=r"^key seems"):
        SecretPolicy("mask").name("key", SECRETS[1][1])


@settings(max_examples=200, deadline=None)
@given(
    st.text(max_size=60),
    st.sampled_from([secret for text, secret in SECRETS if text == "{}" or "sk-" in secret]),
    st.text(max_size=60),
)
def test_whatever_stands_around_a_key_none_of_it_is_left(before: str, key: str, after: str) -> None:
    text = f"{before} {key} {after}"
    blotted = masked(text, find_secrets(text))
    assert key not in blotted
    assert masked(blotted, find_secrets(blotted)) == blotted


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300))
def test_any_text_can_be_looked_through(text: str) -> None:
    found = find_secrets(text)
    assert all(0 <= one.start < one.end <= len(text) for one in found)
    assert all(one.end <= two.start for one, two in pairwise(found))


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "unit", ["password: ", "a:", "token ", "://x:", "-----BEGIN ", "eyJ.", "="]
)
def test_a_long_text_made_to_be_slow_is_not(unit: str) -> None:
    find_secrets((unit * 200_000)[:200_000])
