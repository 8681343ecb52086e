"""The HTML page as people meet it: in a real browser, at 2 and at 1,000 nodes, by mouse, by keyboard, on paper."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from ncclcheck.report.document import to_json
from ncclcheck.report.html.html import to_html
from tests.report.browser import (
    browser,
    browser_skip_reason,
    complaints,
    open_page,
    printed,
    requests,
    screenshot,
)
from tests.report.reports import finding, found, report
from tests.report.samples import full_report

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(browser_skip_reason()), reason=browser_skip_reason() or "there is one"),
]
USABLE_MS = 3000
MADE_S = 10.0
LARGEST_BYTES = 12_000_000
_CHARTS = ("chart-reach", "chart-busbw", "chart-latency", "chart-late", "chart-comparison")


@pytest.fixture(scope="module")
def chromium() -> Iterator[WebDriver]:
    with browser() as driver:
        yield driver


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """The page of a failed run on 2 nodes, and on 1,000."""
    folder = tmp_path_factory.mktemp("pages")
    for nnodes in (2, 1000):
        (folder / f"{nnodes}.html").write_text(to_html(full_report(nnodes, per_node=8)), encoding="utf-8")
    return {nnodes: folder / f"{nnodes}.html" for nnodes in (2, 1000)}


def one(driver: WebDriver, selector: str) -> WebElement:
    return driver.find_element(By.CSS_SELECTOR, selector)


def texts(driver: WebDriver, selector: str) -> list[str]:
    return [element.text for element in driver.find_elements(By.CSS_SELECTOR, selector)]


def until(driver: WebDriver, script: str) -> None:
    """Returns once the script says true."""
    WebDriverWait(driver, 30).until(lambda browser: browser.execute_script(f"return {script}"))


def draw_all(driver: WebDriver) -> None:
    """Scrolls through the page, so that every chart is drawn."""
    for chart in _CHARTS:
        driver.execute_script(f"document.getElementById('{chart}').scrollIntoView()")
        until(driver, f"!!document.querySelector('#{chart} .main-svg')")


def shades(png: bytes) -> int:
    """How many different bytes the picture is made of: an empty window has next to none."""
    data, at = b"", 8
    while at < len(png):
        length = int.from_bytes(png[at : at + 4], "big")
        if png[at + 4 : at + 8] == b"IDAT":
            data += png[at + 8 : at + 8 + length]
        at += 12 + length
    return len(set(zlib.decompress(data)))


@pytest.mark.parametrize(
    ("nnodes", "dark"), [(2, True), pytest.param(2, False, marks=pytest.mark.further), (1000, False)]
)
def test_all_charts_are_drawn_without_a_complaint_or_a_request(
    chromium: WebDriver, pages: dict[int, Path], nnodes: int, dark: bool, tmp_path: Path
) -> None:
    open_page(chromium, pages[nnodes], dark=dark)
    draw_all(chromium)
    assert complaints(chromium) == []
    assert requests(chromium) == []
    assert len(texts(chromium, "#late-numbers tbody tr")) == min(
        8 * nnodes, 96
    )  # for those who cannot see the chart
    picture = screenshot(chromium)
    (tmp_path / f"{nnodes}-{'dark' if dark else 'light'}.png").write_bytes(picture)
    assert shades(picture) > 50
    assert one(chromium, "h1").text.split() == ["Fail", "exit", "code", "1"]


def test_a_thousand_nodes_are_found_sorted_and_paged(chromium: WebDriver, pages: dict[int, Path]) -> None:
    open_page(chromium, pages[1000])
    assert one(chromium, "#nodes-count").text == "1,001 of 1,001 nodes in 6 groups"
    assert len(texts(chromium, "#nodes-table tbody tr")) == 6

    search = one(chromium, "#nodes-filter")
    search.send_keys("mtu-differs 2.5.1")
    assert texts(chromium, "#nodes-table tbody th") == ["node200"]
    search.clear()
    search.send_keys("node777")
    assert one(chromium, "#nodes-count").text == "1 of 1,001 nodes in 1 group"
    search.send_keys("x")
    assert texts(chromium, "#nodes-table tbody tr") == ["No node matches."]
    search.clear()
    search.send_keys(" ")

    one(chromium, "#nodes-fold").click()
    assert len(texts(chromium, "#nodes-table tbody tr")) == 100
    assert one(chromium, "#nodes-place").text == "1 to 100 of 1,001"
    one(chromium, "#nodes-next").click()
    assert texts(chromium, "#nodes-table tbody th")[0] == "node101"
    header = one(chromium, "#nodes-table thead th:first-child button")
    header.click()
    one(chromium, "#nodes-table thead th:first-child button").click()
    assert texts(chromium, "#nodes-table tbody th")[0] == "node1001"
    assert one(chromium, "#nodes-table thead th:first-child").get_attribute("aria-sort") == "descending"

    one(chromium, "#nodes-fold").click()
    one(chromium, "#nodes-table tbody button").click()
    assert one(chromium, "#nodes-count").text == "110 of 1,001 nodes (those that are equal)"
    one(chromium, "#nodes-table tbody a.error").click()
    assert chromium.execute_script("return location.hash") == "#finding-1"
    assert complaints(chromium) == []


def test_the_reach_of_a_thousand_nodes_shows_those_with_a_failed_pair_first(
    chromium: WebDriver, pages: dict[int, Path]
) -> None:
    open_page(chromium, pages[1000])
    draw_all(chromium)
    hosts = "document.getElementById('chart-reach').data[0].x.length"
    assert 0 < chromium.execute_script(f"return {hosts}") < 100
    one(chromium, "#reach-only").click()
    until(chromium, f"{hosts} === 1001")
    assert complaints(chromium) == []


def test_copying_says_so(chromium: WebDriver, pages: dict[int, Path]) -> None:
    open_page(chromium, pages[2])
    button = one(chromium, "#settings [data-copy]")
    button.click()
    until(chromium, "document.querySelector('#settings [data-copy]').textContent === 'Copied'")
    assert one(chromium, "#spoken").get_attribute("textContent") == "Copied"


def test_the_theme_is_the_systems_until_the_reader_chooses(
    chromium: WebDriver, pages: dict[int, Path]
) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    open_page(chromium, pages[2], dark=True)
    dark = chromium.execute_script(f"return {background}")
    toggle = one(chromium, "#theme")
    assert toggle.get_attribute("aria-pressed") == "true"
    toggle.click()
    assert toggle.get_attribute("aria-pressed") == "false"
    light = chromium.execute_script(f"return {background}")
    assert light != dark
    open_page(chromium, pages[2], dark=True)
    assert chromium.execute_script(f"return {background}") == light
    one(chromium, "#theme").click()
    assert chromium.execute_script(f"return {background}") == dark
    chromium.execute_script("localStorage.clear()")


def test_the_keyboard_reaches_everything(chromium: WebDriver, pages: dict[int, Path]) -> None:
    open_page(chromium, pages[2])
    one(chromium, "body").send_keys(Keys.TAB)
    skip = chromium.switch_to.active_element
    assert skip.text == "Skip to the report"
    assert skip.rect["x"] >= 0
    skip.send_keys(Keys.ENTER)
    until(chromium, "document.activeElement.id === 'main'")
    open_page(chromium, pages[2])
    one(chromium, "body").send_keys(Keys.TAB)
    chromium.switch_to.active_element.send_keys(Keys.TAB)
    assert chromium.switch_to.active_element.get_attribute("id") == "theme"
    chromium.switch_to.active_element.send_keys(Keys.TAB)
    assert chromium.switch_to.active_element.text.startswith("Findings")
    # No element has a place of its own, so the others follow in the order of the page.
    reached = chromium.execute_script(
        """return [...document.querySelectorAll("a, button, input, select, summary, [tabindex]")]
           .filter((one) => one.tabIndex >= 0 && !one.disabled && one.getClientRects().length)
           .map((one) => [one.tabIndex, one.id || one.getAttribute("aria-label") || one.tagName])"""
    )
    assert {place for place, _ in reached} == {0}
    names = [name for _, name in reached]
    order = [
        "theme",
        "Copy the command",
        "nodes-filter",
        "reach-kind",
        "late-point",
        "checks-filter",
        "download",
    ]
    assert [names.index(name) for name in order] == sorted(names.index(name) for name in order)


def test_every_control_and_region_has_a_name(chromium: WebDriver, pages: dict[int, Path]) -> None:
    open_page(chromium, pages[2])
    nameless = chromium.execute_script(
        """return [...document.querySelectorAll("button, input, select, [role=region], [role=img], nav")]
           .filter((one) => !(one.textContent.trim() || one.labels?.length || one.getAttribute("aria-label")
                              || one.getAttribute("aria-labelledby")))
           .map((one) => one.outerHTML.slice(0, 100))"""
    )
    assert nameless == []
    assert chromium.execute_script("return document.documentElement.lang") == "en"
    levels = chromium.execute_script(
        "return [...document.querySelectorAll('h1,h2,h3')].map((h) => +h.tagName[1])"
    )
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_the_page_does_not_scroll_sideways_on_a_phone(chromium: WebDriver, pages: dict[int, Path]) -> None:
    open_page(chromium, pages[2])
    narrow = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
    try:
        draw_all(chromium)
        assert chromium.execute_script("return document.documentElement.scrollWidth") <= 390
    finally:
        chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_on_paper_everything_is_unfolded_and_light(chromium: WebDriver, pages: dict[int, Path]) -> None:
    open_page(chromium, pages[1000], dark=True)
    one(chromium, "#nodes-filter").send_keys("node777")
    chromium.execute_script(
        """window.onPaper = {};
           addEventListener("beforeprint", () => {
             onPaper.closed = document.querySelectorAll("details:not([open])").length;
             onPaper.rows = document.querySelectorAll("#nodes-table tbody tr").length;
             onPaper.charts = document.querySelectorAll(".chart .main-svg").length;
             onPaper.theme = document.documentElement.dataset.theme;
           });"""
    )
    document = printed(chromium)
    assert document.startswith(b"%PDF")
    paper = chromium.execute_script("return onPaper")
    assert (paper["closed"], paper["rows"], paper["theme"]) == (0, 6, "light")
    assert paper["charts"] >= len(_CHARTS)
    assert one(chromium, "#nodes-count").text == "1 of 1,001 nodes in 1 group"
    assert complaints(chromium) == []


def test_a_thousand_nodes_of_eight_ranks_fit(pages: dict[int, Path]) -> None:
    assert pages[1000].stat().st_size < LARGEST_BYTES


def test_the_json_in_the_page_is_the_report(chromium: WebDriver, pages: dict[int, Path]) -> None:
    open_page(chromium, pages[1000])
    length = chromium.execute_async_script(
        "page.reportText().then((text) => arguments[0](JSON.parse(text).nodes.length))"
    )
    assert length == 1001


def test_hostile_names_are_only_text(chromium: WebDriver, tmp_path: Path) -> None:
    name = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
    made = report([found(finding("mtu-differs", name, summary=name))])
    (tmp_path / "hostile.html").write_text(to_html(made), encoding="utf-8")
    open_page(chromium, tmp_path / "hostile.html")
    assert chromium.title == "Fail: ncclcheck preflight"
    assert name in one(chromium, "#finding-0 .summary").text
    assert chromium.execute_script("return document.getElementById('report-json').textContent.length") > 1000
    assert complaints(chromium) == []
    assert name in to_json(made).encode().decode("unicode_escape")


@pytest.mark.alone
def test_the_page_can_be_used_within_three_seconds(chromium: WebDriver, pages: dict[int, Path]) -> None:
    assert open_page(chromium, pages[1000]) < USABLE_MS


@pytest.mark.alone
@pytest.mark.further
def test_a_page_of_a_thousand_nodes_is_made_within_ten_seconds() -> None:
    made = full_report(1000, per_node=8)
    started = time.monotonic()
    to_html(made)
    assert time.monotonic() - started < MADE_S
