"""The page in a real browser, without a network: no error, no request, figures drawn, search and sort at work.

`make test-browser` installs what drives it; the browser is the distribution's: chromium and chromium-driver.
"""

import json
import os
import shutil
import time

import pytest

pytestmark = pytest.mark.thorough
webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: make test-browser")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="chromium or chromedriver is not installed: make test-browser says how"
)

from selenium.webdriver.common.by import By  # noqa: E402

from stereoset_report.comparison import Named  # noqa: E402
from tests.crossing import thorough  # noqa: E402
from tests.report.test_page import HOSTILE, page_of, rows_of, saved  # noqa: E402

QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run")
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
DESK = {"width": 1200, "height": 900, "deviceScaleFactor": 1, "mobile": False}
RUNS = int(os.environ.get("STEREOSET_PAGE_RUNS", "20"))  # make test-browser: 100


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    profile = tmp_path_factory.mktemp("profile")
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", *QUIET):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def show(driver, tmp_path):
    """show(text, width, theme): the page in the browser, which has nothing to complain of and asks nobody."""

    def opened(text, mobile=False, theme="light"):
        page = tmp_path / "page.html"
        page.write_text(text, encoding="utf-8")
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE if mobile else DESK)
        scheme = [{"name": "prefers-color-scheme", "value": theme}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        driver.get_log("performance")
        driver.get(f"file://{page}")
        assert driver.get_log("browser") == []
        events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
        asked = [one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"]
        assert [url for url in asked if not url.startswith(("file://", "data:"))] == []
        return driver

    return opened


def body(driver, table):
    return [row.text for row in driver.find_elements(By.CSS_SELECTOR, f"#{table} tbody tr")]


def press(driver, table, title):
    script = """
        const heads = [...document.querySelectorAll(`#${arguments[0]} thead button`)];
        heads.find(button => button.textContent === arguments[1]).click();
    """
    driver.execute_script(script, table, title)


def fill(driver, form, name, value):
    script = """
        const one = document.querySelector(`#${arguments[0]} [name="${arguments[1]}"]`);
        one.value = arguments[2];
        one.dispatchEvent(new Event(one.tagName === "SELECT" ? "change" : "input"));
    """
    driver.execute_script(script, form, name, value)


def brightness(colour):
    """The sum of red, green and blue of rgba(…)."""
    return sum(map(int, colour[colour.index("(") + 1 : -1].split(",")[:3]))


@pytest.fixture(scope="module")
def two():
    rows = rows_of()
    return page_of([Named("one", saved(rows, lambda i: i - 3)), Named("other", saved(rows, lambda i: i - 1))])[0]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("mobile", [False, True], ids=["desk", "phone"])
def test_a_page_opens_and_its_figures_are_drawn_within_its_width(show, two, mobile, theme):
    driver = show(two, mobile, theme)
    figures = driver.find_elements(By.CSS_SELECTOR, "details[open] figure svg")
    assert len(figures) >= 3
    sizes = [(one.size["width"], one.size["height"]) for one in figures]
    assert all(width > 200 and height > 60 for width, height in sizes), sizes
    assert driver.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    page = driver.find_element(By.TAG_NAME, "body")
    ink = page.value_of_css_property("color")
    contrast = brightness(ink) - brightness(page.value_of_css_property("background-color"))
    assert (contrast > 0) == (theme == "dark")
    assert abs(contrast) > 450
    label = driver.find_element(By.CSS_SELECTOR, "figure svg text")
    assert label.value_of_css_property("fill") == ink.replace("rgba", "rgb").replace(", 1)", ")")


def test_the_table_is_sorted_and_filtered_and_says_where_the_order_says_nothing(show, two):
    driver = show(two)
    assert len(body(driver, "table")) == 2
    press(driver, "table", "ss")
    assert driver.find_element(By.CSS_SELECTOR, "th[aria-sort=descending]").text.startswith("ss")
    shown = body(driver, "table")
    assert "≈" in "".join(shown)
    assert "not separated" in driver.find_element(By.ID, "ranking").text
    press(driver, "table", "ss")
    assert [row.split()[0] for row in body(driver, "table")] == [row.split()[0] for row in reversed(shown)]
    fill(driver, "table-filters", "bias type", "gender")
    assert all("gender" in row for row in body(driver, "table"))
    fill(driver, "table-filters", "run", "nobody")
    assert body(driver, "table") == []


def test_items_are_searched_filtered_and_sorted_and_hide_their_texts(show, two):
    driver = show(two)
    assert len(body(driver, "item-table")) == 12
    assert "The librarian reads" not in driver.find_element(By.TAG_NAME, "body").text
    driver.find_element(By.CSS_SELECTOR, "#item-table details summary").click()
    assert "The librarian reads" in driver.find_element(By.TAG_NAME, "body").text
    press(driver, "item-table", "margin (nats)")
    assert "8.00" in body(driver, "item-table")[0]
    fill(driver, "item-filters", "search", "term 2")
    assert len(body(driver, "item-table")) == 4
    fill(driver, "item-filters", "search", "")
    fill(driver, "item-filters", "against", "other")
    fill(driver, "item-filters", "prefers", "flip")
    assert len(body(driver, "item-table")) == 2  # the one leads from the fifth on, the other from the third
    fill(driver, "item-filters", "prefers", "")
    fill(driver, "item-filters", "margin at least", "7")
    assert len(body(driver, "item-table")) == 2


def test_hostile_names_and_texts_stay_text(show):
    rows = rows_of(text=HOSTILE + "a" * 10_000)
    driver = show(page_of([Named(HOSTILE, saved(rows, lambda i: i - 3))], title=HOSTILE)[0])
    driver.execute_script("document.querySelectorAll('#item-table details').forEach(one => { one.open = true; })")
    assert driver.execute_script("return document.querySelectorAll('img, main script').length") == 0
    assert HOSTILE.split()[0] in driver.title
    assert driver.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    assert driver.get_log("browser") == []


@pytest.mark.parametrize("runs", [5, thorough(RUNS)])
def test_a_leaderboard_of_many_runs_stays_usable(show, runs):
    rows = rows_of(terms=79, each=4229 // 79 + 1)[:4229]
    models = [Named(f"model {n}", saved(rows, lambda i, n=n: (i * n) % 7 - 3)) for n in range(1, runs + 1)]
    text = page_of(models)[0]
    start = time.perf_counter()
    driver = show(text)
    opened = time.perf_counter() - start
    assert len(body(driver, "table")) == runs
    start = time.perf_counter()
    press(driver, "table", "ss")
    fill(driver, "item-filters", "search", "example 7 ")
    assert len(body(driver, "item-table")) == 50
    answered = time.perf_counter() - start
    size = f"{len(text) / 2**20:.1f} MiB"
    print(f"{runs} runs of {len(rows)} examples: {size}, open {opened:.1f} s, sort and search {answered:.1f} s")
    assert opened < 20
    assert answered < 10
