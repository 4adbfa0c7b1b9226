"""Every page with real data, on a wide and on a narrow screen."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import System
from tests.browser.looking import Look


def test_the_overview_tells_how_the_system_is(look: Look, system: System) -> None:
    page = look.go("/", "Overview")
    expect(page).to_have_title("Overview · Recollect")
    for component in ("Orchestrator", "Canary", "Scheduler"):
        expect(page.get_by_text(component, exact=True)).to_be_visible()
    expect(page.get_by_text("Memories by tier")).to_be_visible()
    expect(page.get_by_text("recall took longer than 10 s")).to_be_visible()
    expect(page.locator(".stat .value").first).not_to_have_text("—")
    expect(page.locator(".chart canvas")).to_have_count(3)
    look.keep("overview")


def test_memories_are_searched_and_their_scores_explained(look: Look, system: System) -> None:
    page = look.go("/memories", "Memories")
    expect(page.locator("a.line").first).to_be_visible()
    look.keep("memories")
    page.get_by_label("Search", exact=True).fill("deploy window of apollo")
    page.keyboard.press("Enter")
    page.wait_for_url("**/memories?query=*")
    first = page.locator(".line").first
    expect(first).to_contain_text("Deploy window of Apollo")
    first.get_by_text("Why this score").click()
    expect(first.locator(".why")).to_contain_text("Words")
    look.keep("search")
    first.get_by_role("link").click()
    page.wait_for_url(f"**/memories/{system.filled.changed_id}")
    expect(page.locator(".content")).to_contain_text("Deploys are on Tuesdays")


def test_a_memory_shows_its_versions_strength_links_and_audit(look: Look, system: System) -> None:
    page = look.go(f"/memories/{system.filled.changed_id}", "Memory")
    expect(page.locator(".diff .minus")).to_have_text("-Deploys are on Fridays at noon.")
    expect(page.locator(".diff .plus")).to_have_text("+Deploys are on Tuesdays at noon.")
    expect(page.get_by_text("state: agreed")).to_be_visible()
    expect(page.locator(".chart canvas")).to_be_visible()
    expect(page.get_by_text("supports", exact=True)).to_be_visible()
    expect(page.get_by_text("update_memory", exact=True)).to_have_count(2)
    look.keep("memory")


def test_what_looks_like_markup_is_shown_as_it_is(look: Look, system: System) -> None:
    page = look.go(f"/memories/{system.filled.marked_id}", "Memory")
    expect(page.locator(".content")).to_contain_text("<script>window.broken = 'content'</script>")
    expect(page.locator(".content")).to_contain_text("**bold** {{ 7 * 7 }}")
    expect(page.get_by_text('<b onmouseover="window.broken = 2">tag</b>')).to_be_visible()
    look.keep("markup")
    for path in ("/memories?query=zebra", "/memories", "/analytics", "/namespaces", "/"):
        look.go(path)
        look.check()
    session = look.go(f"/sessions/{system.filled.session_id}")
    expect(session.locator(".timeline")).to_contain_text("<img src=x onerror=")


def test_the_graph_is_walked_by_clicking(look: Look, system: System) -> None:
    page = look.go(f"/graph?id={system.filled.changed_id}&depth=1", "Graph")
    middle = page.locator(".card", has_text="In the middle")
    expect(middle).to_contain_text("Deploy window of Apollo")
    expect(page.get_by_text("2 memories, 1 link")).to_be_visible()
    look.keep("graph")
    _click_the_other_node(look)
    expect(page.get_by_text("2 memories, 1 link")).to_have_count(0)
    expect(middle).to_contain_text("supports")
    look.go("/graph", "Graph")
    expect(page.get_by_text("Where to begin")).to_be_visible()
    look.keep("graph-all")


def _click_the_other_node(look: Look) -> None:
    """Where a node lies only the chart knows, and only once it has come to rest."""
    before, place = None, look.page.evaluate(POSITION)
    for _ in range(100):
        if place is not None and place == before:
            break
        look.page.wait_for_timeout(100)
        before, place = place, look.page.evaluate(POSITION)
    look.page.locator(".chart canvas").click(position=place)


POSITION = """() => {
    const element = document.querySelector('.chart');
    const chart = getElement(Number(element.id.slice(1))).chart;
    const series = chart?.getModel().getSeriesByIndex(0);
    const layout = series?.getData().getItemLayout(1);
    if (!layout) return null;
    const [x, y] = series.coordinateSystem.dataToPoint(layout);
    return {x: Math.round(x), y: Math.round(y)};
}"""


def test_namespaces_form_a_tree_with_counts(look: Look, system: System) -> None:
    page = look.go("/namespaces", "Namespaces")
    expect(page.get_by_text("apollo", exact=True)).to_be_visible()
    expect(page.get_by_text("<u>zebra<u>", exact=True)).to_be_visible()
    look.keep("namespaces")
    page.get_by_text("apollo", exact=True).click()
    page.wait_for_url("**/memories?namespace=project%3Aapollo")


def test_a_session_shows_what_happened_and_its_state(look: Look, system: System) -> None:
    page = look.go("/sessions", "Sessions")
    expect(page.locator("a.line")).to_have_count(3)
    look.keep("sessions")
    page.locator("a.line", has_text="alice").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Session of alice")
    expect(page.locator(".moment")).to_have_count(6)
    expect(page.locator(".timeline")).to_contain_text("Rolled back at 9:42.")
    expect(page.get_by_text("mood", exact=True)).to_be_visible()
    expect(page.get_by_text("Alice was told that the rollback helped.")).to_be_visible()
    look.keep("session")


def test_learning_shows_patterns_decisions_and_executions(look: Look, system: System) -> None:
    page = look.go("/learning", "Learning")
    expect(page.get_by_text("canary first").first).to_be_visible()
    expect(page.get_by_text("% sure").first).to_be_visible()
    expect(page.get_by_text("went wrong", exact=True)).to_be_visible()
    expect(page.get_by_text("Skip the canary because of the deadline?")).to_be_visible()
    look.keep("learning")


def test_analytics_shows_growth_use_and_conflicts(look: Look, system: System) -> None:
    page = look.go("/analytics", "Analytics")
    expect(page.get_by_text("Made each day")).to_be_visible()
    expect(page.locator(".card", has_text="Most used").locator("a.line")).not_to_have_count(0)
    page.get_by_role("link", name="7 days").click()
    page.wait_for_url("**/analytics?days=7")
    page.get_by_label("Namespace").fill("project:bakery")
    page.get_by_role("button", name="Look").click()
    expect(page.get_by_text("Nothing found").or_(page.locator(".chip.warn").first)).to_be_visible()
    look.keep("analytics")


def test_the_navigation_leads_to_every_page(look: Look, system: System) -> None:
    page = look.go("/", "Overview")
    for name in ("Memories", "Graph", "Namespaces", "Sessions", "Jobs", "Learning", "Analytics"):
        menu = page.get_by_role("button", name="Open navigation")
        if menu.is_visible():
            menu.click()
        page.get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(name)
        expect(page).to_have_title(f"{name} · Recollect")
