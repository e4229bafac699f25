"""The Space in a real browser: the form on top, an example, refusals in the page, labels that stay text.

`make test-space` installs gradio and what drives the browser; that is the distribution's: chromium and chromium-driver.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time

import pytest

pytest.importorskip("gradio", reason="gradio is not installed: make test-space")
webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: make test-space")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER),
    reason="chromium or chromedriver is not installed: apt-get install chromium chromium-driver",
)

from selenium.webdriver.common.by import By  # noqa: E402

PATIENCE = 60  # seconds
HOSTILE = "<img src=x onerror=alert(1)>"
# Nobody answers where the published gold labels should come from: no test asks the network.
LAUNCH = """
import app, gold_labels
gold_labels.ADDRESS = "http://127.0.0.1:9"
app.launch(server_name="127.0.0.1", server_port={port}, quiet=True)
"""
SCORES = [{"id": str(i), "score": -float(i)} for i in range(3)]


@pytest.fixture(scope="module")
def address(repository, free_port):
    """The Space, served on this machine."""
    port = free_port()
    env = os.environ | {"GRADIO_ANALYTICS_ENABLED": "False", "no_proxy": "127.0.0.1"}
    command = [sys.executable, "-c", LAUNCH.format(port=port)]
    quiet = subprocess.DEVNULL
    server = subprocess.Popen(command, cwd=repository / "stereoset_metric", env=env, stdout=quiet, stderr=quiet)
    yield f"http://127.0.0.1:{port}"
    server.kill()
    server.wait()


@pytest.fixture(scope="module")
def driver(address, tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    profile = tmp_path_factory.mktemp("profile")
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"):
        options.add_argument(word)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_window_size(1200, 1000)
    yield driver
    driver.quit()


def wait_for(found):
    """What a function finds, as soon as it does."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            if result := found():
                return result
        except Exception:  # of any make: the page is drawn anew under the driver's eyes
            pass
        time.sleep(0.2)
    raise AssertionError(f"nothing was found in {PATIENCE} seconds")


@pytest.fixture
def page(driver, address):
    """The page, opened anew as soon as it is served."""

    def served():
        driver.get(address)
        return driver.title == "StereoSet"

    wait_for(served)
    wait_for(lambda: button(driver, "Try an example"))
    return driver


def button(page, words):
    return next(one for one in page.find_elements(By.TAG_NAME, "button") if one.text.strip().startswith(words))


def press(page, words):
    wait_for(lambda: button(page, words)).click()


def type_into(page, number, text):
    """Put a text into a field of the form, as pasting does."""
    script = """
        const field = document.querySelectorAll("textarea")[arguments[0]];
        field.value = arguments[1];
        field.dispatchEvent(new Event("input", { bubbles: true }));
    """
    page.execute_script(script, number, text)


def test_the_form_stands_on_top_and_the_card_is_folded(page):
    assert button(page, "Try an example").location["y"] < 1000
    assert "Limitations" not in page.find_element(By.TAG_NAME, "body").text


def test_the_example_becomes_tables_with_two_decimals(page):
    press(page, "Try an example")
    table = wait_for(lambda: page.find_element(By.CSS_SELECTOR, ".stereoset table"))
    assert re.search(r"^\d+\.\d\d$", table.text.replace(" ", "\n"), re.M)
    assert page.find_elements(By.CSS_SELECTOR, "a[download]")


def upload(page, path):
    """Choose a file for the first field, and wait until the server has it."""
    page.find_element(By.CSS_SELECTOR, "input[type=file]").send_keys(str(path))
    wait_for(lambda: page.find_elements(By.CSS_SELECTOR, "a[download]"))


def invalid(page, tmp_path):
    path = tmp_path / "predictions.json"
    path.write_bytes(b'{"\xff": []}')
    upload(page, path)


def large(page, tmp_path):
    path = tmp_path / "predictions.json"
    with path.open("wb") as file:
        file.truncate(101 * 10**6)
    upload(page, path)


@pytest.mark.parametrize(
    ("give", "words"),
    [
        (lambda page, tmp_path: None, "there is nothing in it"),
        (lambda page, tmp_path: type_into(page, 0, "[1, 2"), "The predictions cannot be read"),
        (lambda page, tmp_path: type_into(page, 0, json.dumps({"crows_pairs": SCORES})), "cannot be downloaded"),
        (invalid, "no UTF-8 at byte 2"),
        (large, "give a file of at most 50 MB"),
    ],
    ids=["empty", "JSON", "hub", "UTF-8", "100 MB"],
)
def test_every_failure_is_one_sentence_in_the_page_and_it_goes_on(page, tmp_path, give, words):
    give(page, tmp_path)
    press(page, "Evaluate")
    said = wait_for(lambda: page.find_element(By.CSS_SELECTOR, ".stereoset-refusal").text)
    assert words in said
    assert "\n" not in said
    assert "Traceback" not in page.page_source
    wait_for(lambda: not waits(page))
    press(page, "Try an example")
    wait_for(lambda: page.find_elements(By.CSS_SELECTOR, ".stereoset table"))
    assert not page.find_elements(By.CSS_SELECTOR, ".stereoset-refusal, .toast-wrap .error")


def waits(page):
    """Whether anything in the page still turns round."""
    trackers = page.find_elements(By.CSS_SELECTOR, "[data-testid=status-tracker]")
    return any(one.is_displayed() and one.text.strip() for one in trackers)


def test_on_a_phone_words_stay_whole_and_tables_scroll_by_themselves(page):
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    try:
        press(page, "Try an example")
        cell = wait_for(lambda: page.find_element(By.CSS_SELECTOR, ".stereoset tbody bdi"))
        assert cell.text == "intrasentence"
        assert cell.size["height"] < 30  # one line
        assert page.execute_script("return document.documentElement.scrollWidth") <= 390
        widths = "const box = document.querySelector('.stereoset-scroll'); return [box.scrollWidth, box.clientWidth]"
        whole, shown = page.execute_script(widths)
        assert whole > shown
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_labels_of_a_file_stay_text(page):
    labels = ("stereotype", "anti-stereotype", "unrelated")
    options = [{"id": str(i), "sentence": "s", "gold_label": label} for i, label in enumerate(labels)]
    example = {"id": "e", "target": HOSTILE, "bias_type": HOSTILE, "context": "c", "sentences": options}
    press(page, "Gold labels of your own")
    wait_for(lambda: len(page.find_elements(By.TAG_NAME, "textarea")) == 3)
    type_into(page, 0, json.dumps({"intersentence": SCORES}))
    type_into(page, 2, json.dumps({"data": {"intersentence": [example]}}))
    press(page, "Evaluate")
    wait_for(lambda: HOSTILE in page.find_element(By.CSS_SELECTOR, ".stereoset").text)
    assert page.execute_script("return document.querySelectorAll('.stereoset img').length") == 0
