"""The Space in a real browser: the form on top, an example, refusals in the page, labels that stay text.

Needs gradio (the extra space), selenium and the distribution's chromium with its driver; see make test-browser.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time

import pytest

pytest.importorskip("gradio", reason="gradio is not installed: pip install 'stereoset[space]'")
webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: make test-browser")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if not (CHROMIUM and DRIVER):
    pytest.skip("chromium and chromedriver are not installed: make test-browser says how", allow_module_level=True)

from selenium.webdriver.common.by import By  # noqa: E402

PATIENCE = 60  # seconds
HOSTILE = "<img src=x onerror=alert(1)>"
LAUNCH = "import app; app.launch(server_name='127.0.0.1', server_port={port}, quiet=True)"


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
    """The page, opened anew."""

    def opened():
        driver.get(address)
        return button(driver, "Try an example")

    wait_for(opened)
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


def test_what_is_no_prediction_file_is_one_sentence_in_the_page(page):
    type_into(page, 0, "[1, 2")
    press(page, "Evaluate")
    said = wait_for(lambda: page.find_element(By.CSS_SELECTOR, ".stereoset-refusal").text)
    assert said.startswith("The predictions")


def test_labels_of_a_file_stay_text(page):
    scores = [{"id": str(i), "score": -float(i)} for i in range(3)]
    labels = ("stereotype", "anti-stereotype", "unrelated")
    options = [{"id": str(i), "sentence": "s", "gold_label": label} for i, label in enumerate(labels)]
    example = {"id": "e", "target": HOSTILE, "bias_type": HOSTILE, "context": "c", "sentences": options}
    press(page, "Gold labels of your own, in dev.json's layout (else the published ones)")
    wait_for(lambda: len(page.find_elements(By.TAG_NAME, "textarea")) == 3)
    type_into(page, 0, json.dumps({"intersentence": scores}))
    type_into(page, 2, json.dumps({"data": {"intersentence": [example]}}))
    press(page, "Evaluate")
    wait_for(lambda: HOSTILE in page.find_element(By.CSS_SELECTOR, ".stereoset").text)
    assert page.execute_script("return document.querySelectorAll('.stereoset img').length") == 0
