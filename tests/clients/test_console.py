"""The console in a real browser: Debian's chromium, driven by chromedriver (`apt-get install
chromium-driver`).

LANEWISE_SCREENSHOT names a file for a picture of it: docs/console.png.
"""

import json
import os
import random
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from node import serve
from opensearchpy import OpenSearch, helpers
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

INDICES = {"films": (32, 3000), "products": (16, 2000), "questions": (24, 1200)}
COLOURS = ["red", "green", "blue"]
WAIT_S = 30
PICTURE_S = 75


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    driver = shutil.which("chromedriver")
    assert driver, "there is no chromedriver: apt-get install chromium-driver"
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1200,1500"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options, webdriver.ChromeService(driver))
    yield browser
    browser.quit()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A node of its own that is searched and written to."""
    with serve(tmp_path_factory.mktemp("console")) as url, OpenSearch(url, timeout=60) as client:
        fill(client)
        over = threading.Event()
        threads = [threading.Thread(target=use, args=(url, over, seed)) for seed in range(2)]
        [thread.start() for thread in threads]
        yield url
        over.set()
        [thread.join() for thread in threads]


def vector(chance: random.Random, dim: int) -> list[float]:
    return [round(chance.gauss(0, 1), 3) for _ in range(dim)]


def fill(client: OpenSearch) -> None:
    chance = random.Random(1)
    for name, (dim, rows) in INDICES.items():
        properties = {
            "v": {"type": "knn_vector", "dimension": dim},
            "title": {"type": "text"},
            "colour": {"type": "keyword"},
        }
        body = {"settings": {"index.knn": True}, "mappings": {"properties": properties}}
        client.indices.create(index=name, body=body)
        documents = [
            {
                "_index": name,
                "_id": str(i),
                "v": vector(chance, dim),
                "title": f"{chance.choice(COLOURS)} {chance.choice(['shoes', 'lamp', 'river'])}",
                # What a page must not take for its own.
                "colour": COLOURS[i % 3] if i else "<b id='evil'>red</b>",
            }
            for i in range(rows)
        ]
        helpers.bulk(client, documents)
        client.indices.flush(index=name)


def use(url: str, over: threading.Event, seed: int) -> None:
    chance = random.Random(seed)
    with OpenSearch(url, timeout=60) as client:
        while not over.is_set():
            name = chance.choice(["films", "films", "products", "questions"])
            dim, rows = INDICES[name]
            query = {"knn": {"v": {"vector": vector(chance, dim), "k": 10}}}
            client.search(index=name, body={"size": 10, "query": query})
            if chance.random() < 0.1:
                body = {"v": vector(chance, dim), "title": "new lamp", "colour": "red"}
                client.index(index=name, id=str(1 + chance.randrange(rows - 1)), body=body)
            time.sleep(0.004)


def until(browser: webdriver.Chrome, what: str) -> str:
    """Waits until a script of the page gives something, and gives it."""
    return WebDriverWait(browser, WAIT_S).until(lambda it: it.execute_script(f"return {what}"))


def test_shows_what_the_node_does(browser: webdriver.Chrome, node: str) -> None:
    browser.get(f"{node}/_lanewise")
    until(browser, "series.searches.filter((rate) => rate > 0).length > 3")
    until(browser, "series.p99.some(Boolean)")
    rows = browser.find_elements(By.CSS_SELECTOR, "#indices tbody tr")
    shown = [[cell.text for cell in row.find_elements(By.TAG_NAME, "td")] for row in rows]
    assert [row[0] for row in shown] == sorted(INDICES)
    assert [row[1:3] for row in shown] == [["open", "3000"], ["open", "2000"], ["open", "1200"]]
    # Recall is estimated now and then.
    recalls = "[...document.querySelectorAll('#indices tr td:nth-child(9)')]"
    until(browser, f"{recalls}.some((cell) => Number(cell.textContent) > 0.5)")
    chiplets = browser.find_elements(By.CSS_SELECTOR, ".chiplet")
    assert "films" in chiplets[0].text
    assert "stolen" in chiplets[0].text
    assert len(browser.find_elements(By.CSS_SELECTOR, "#latency path[d]")) == 2
    assert "predicted" in browser.find_element(By.ID, "memory").text
    assert not browser.find_element(By.ID, "state").text


def test_searches_by_its_form_and_by_its_address(browser: webdriver.Chrome, node: str) -> None:
    asked = {"index": "films", "vector": "7", "filter": '{"term": {"colour": "green"}}', "k": "5"}
    browser.get("about:blank")
    browser.get(f"{node}/_lanewise#{urlencode(asked)}")
    until(browser, "document.querySelectorAll('#hits tr').length === 5")
    hits = browser.find_elements(By.CSS_SELECTOR, "#hits tr")
    assert hits[0].find_element(By.TAG_NAME, "td").text == "7"
    sources = [json.loads(hit.find_element(By.TAG_NAME, "pre").text) for hit in hits]
    assert {source["colour"] for source in sources} == {"green"}
    if picture := os.environ.get("LANEWISE_SCREENSHOT"):
        time.sleep(PICTURE_S)
        Path(picture).write_bytes(browser.get_screenshot_as_png())
    # What is wrong is said.
    filter_box = browser.find_element(By.NAME, "filter")
    filter_box.clear()
    filter_box.send_keys('{"no_such_query": {}}')
    browser.find_element(By.CSS_SELECTOR, "#search button").click()
    assert "no_such_query" in until(browser, "document.querySelector('#found .bad')?.textContent")


def test_takes_text_of_documents_as_text_and_loads_nothing_from_elsewhere(
    browser: webdriver.Chrome, node: str
) -> None:
    browser.get("about:blank")
    browser.get(f"{node}/_lanewise#{urlencode({'index': 'films', 'vector': '0', 'k': '1'})}")
    until(browser, "document.querySelectorAll('#hits tr').length === 1")
    assert "evil" in browser.find_element(By.ID, "hits").text
    assert not browser.find_elements(By.ID, "evil")
    sent = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [
        one["params"]["request"]["url"]
        for one in sent
        if one["method"] == "Network.requestWillBeSent"
    ]
    others = [url for url in urls if not url.startswith((node, "data:", "about:", "chrome"))]
    assert urls
    assert not others
    severe = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    # Of the search that was refused above.
    assert all("400" in entry["message"] for entry in severe), severe
