"""What changes something: refused to whoever is not signed in, and done for whoever is."""

from __future__ import annotations

from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import System, looking
from tests.browser.looking import Look
from tests.browser.scheduling import HOME


def sign_in(look: Look, token: str) -> Page:
    page = look.page
    page.goto(f"{look.url}/sign-in")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{look.url}/")
    return page


def test_jobs_are_only_looked_at_unless_one_is_signed_in(look: Look, system: System) -> None:
    page = look.go("/jobs", "Jobs")
    expect(page.get_by_text("The disk is <b>full</b>.")).to_be_visible()
    look.keep("jobs")
    with system.orchestrator.client() as client:
        before = client.job_history()["count"]
        page.get_by_role("button", name="Run now: Decay").click(force=True)
        expect(page.get_by_text("Sign in to do this")).to_be_visible()
        page.get_by_role("button", name="Undo: Consolidation").click(force=True)
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert client.job_history()["count"] == before
        assert client.count(namespace=HOME)["count"] == 1


def test_whoever_is_signed_in_runs_and_undoes_jobs(browser: Browser, system: System) -> None:
    with (
        looking(browser, system.health.url) as look,
        system.orchestrator.client() as client,
    ):
        page = sign_in(look, system.token)
        look.go("/jobs", "Jobs")
        page.get_by_role("button", name="Dry run: Decay").click()
        page.get_by_role("dialog").get_by_role("button", name="Dry run").click()
        expect(page.get_by_text("Asked for: run")).to_be_visible()
        expect(page.get_by_text("Requested", exact=True).first).to_be_visible()
        latest = client.job_history("decay", 1)["runs"][0]
        assert (latest["run_status"], latest["dry_run"]) == ("requested", True)

        page.get_by_role("button", name="Undo: Consolidation").click()
        look.keep("jobs-undo")
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        assert client.count(namespace=HOME)["count"] == 1
        page.get_by_role("button", name="Undo: Consolidation").click()
        page.get_by_role("dialog").get_by_role("button", name="Undo").click()
        expect(page.get_by_text("Undone: 1 restored")).to_be_visible()
        expect(page.get_by_text("undone", exact=True)).to_be_visible()
        assert client.count(namespace=HOME)["count"] == 2
        look.keep("jobs-undone")

        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_text("Read only", exact=True)).to_be_visible()
