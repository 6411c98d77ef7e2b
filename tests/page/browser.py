# SPDX-License-Identifier: Apache-2.0
"""A real browser, Debian's Chromium, in which the operator's page is used as a person would.

What the browser says of the page is read after each test: no error, no violation of the page's
policy, and no request to another origin may have been, unless the test says which it expects.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
from selenium.webdriver.chrome.service import Service as Driver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.e2e.serving import PATIENCE
from tests.engines import leave_out
from tests.servers.binaries import find_program, program

#: Programs that the tests of the page need.
PROGRAMS: Final = ("chromium", "chromedriver")

#: The accessibility checker, which is installed with the developers' packages.
AXE: Final = (
    Path(__file__).parents[2] / "tools" / "web" / "node_modules" / "axe-core" / "axe.min.js"
)

T = TypeVar("T")


def why_no_browser() -> str | None:
    """Why the page cannot be tested here, or None."""
    lacking = [name for name in PROGRAMS if find_program(name) is None]
    return f"no `{lacking[0]}` binary found" if lacking else None


@dataclass(frozen=True)
class Request:
    """A request of the page."""

    method: str
    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Tile:
    """A host on the map.

    Attributes:
        point: somewhere in it, from the left and top of the map.
        colours: those of points in it, as CSS has them, with their number.
    """

    point: tuple[int, int]
    colours: Counter[str]

    @property
    def colour(self) -> str:
        """Its most frequent colour."""
        return self.colours.most_common(1)[0][0]


#: Moves a pointer over the map, and notes of each point which host is there and what is drawn.
_TILES: Final = """
    const [step, share] = arguments;
    const canvas = document.querySelector("canvas.map");
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const ratio = canvas.width / width;
    const copy = new OffscreenCanvas(canvas.width, canvas.height)
        .getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    const tip = document.querySelector(".tip");
    const tiles = new Map();
    for (let y = height * (1 - share) / 2; y < height * (1 + share) / 2; y += step) {
        for (let x = width * (1 - share) / 2; x < width * (1 + share) / 2; x += step) {
            const point = { clientX: left + x, clientY: top + y };
            canvas.dispatchEvent(new PointerEvent("pointermove", point));
            if (tip.hidden) continue;
            const at = 4 * (Math.floor(y * ratio) * canvas.width + Math.floor(x * ratio));
            const [red, green, blue, alpha] = data.slice(at, at + 4);
            if (alpha < 255) continue;  // between two tiles
            const name = tip.querySelector("strong").textContent;
            const colours = tiles.get(name)?.[1] ?? [];
            colours.push(`rgb(${red}, ${green}, ${blue})`);
            tiles.set(name, [[x, y], colours]);
        }
    }
    canvas.dispatchEvent(new PointerEvent("pointerleave"));
    return [...tiles];
"""


class Browser:
    """A tab of a headless Chromium."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver
        self._url = ""
        self._expected: list[str] = []
        self._requests: list[Request] = []

    def open(self, url: str, view: str = "") -> None:
        """Go to the page of the service at `url`, as in a new tab, and there to a view: `#/ask`."""
        self._url = url
        self.driver.get("about:blank")
        self.driver.get(f"{url}/berth/ui/{view}")

    def visit(self, view: str) -> None:
        """Go to another view by its address, as a link would."""
        self.driver.execute_script("location.hash = arguments[0]", view)

    def reload(self) -> None:
        """Load the page again."""
        self.driver.refresh()

    @property
    def address(self) -> str:
        """What the address bar shows."""
        return self.driver.current_url

    def all(self, selector: str) -> Sequence[WebElement]:
        """The elements that a CSS selector finds now."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def find(self, selector: str, text: str = "") -> WebElement:
        """The first visible element of a CSS selector that contains a text; waits for it."""

        def found() -> WebElement | None:
            for element in self.all(selector):
                if element.is_displayed() and text in element.text:
                    return element
            return None

        return self.until(found, f"{selector} with {text!r}")

    def absent(self, selector: str, text: str = "") -> None:
        """Wait until no visible element of a CSS selector contains a text."""
        self.until(
            lambda: (
                not any(
                    element.is_displayed() and text in element.text
                    for element in self.all(selector)
                )
            ),
            f"no {selector} with {text!r}",
        )

    def until(self, condition: Callable[[], T | None], what: str) -> T:
        """Wait for a condition, and return what it says."""

        def tried(_: object) -> T | None:
            try:
                return condition()
            except StaleElementReferenceException:
                return None  # it was drawn anew in the middle

        waiting = WebDriverWait(self.driver, PATIENCE / 2, poll_frequency=0.05)
        try:
            found: T | None = waiting.until(tried)
        except TimeoutException as error:
            shown = self.text[:2000]
            raise AssertionError(f"never: {what}; the page shows:\n{shown}") from error
        assert found is not None
        return found

    @property
    def text(self) -> str:
        """Everything that the page shows as text."""
        return self.driver.find_element(By.TAG_NAME, "body").text

    def click(self, selector: str, text: str = "") -> None:
        """Click on an element, once it is there."""
        self.until(lambda: _clicked(self.find(selector, text)), f"{selector} {text!r} clicked")

    def labelled(self, label: str) -> WebElement:
        """The control of a form by its label."""
        kinds = "self::input or self::select or self::textarea"
        path = f"//label[normalize-space(span)={json.dumps(label)}]//*[{kinds}]"
        return self.until(
            lambda: next(iter(self.driver.find_elements(By.XPATH, path)), None), f"a field {label}"
        )

    def write(self, label: str, text: str) -> None:
        """Replace what a field contains, and leave it."""
        field = self.labelled(label)
        field.send_keys(Keys.CONTROL, "a")
        field.send_keys(text or Keys.DELETE)
        field.send_keys(Keys.TAB)

    def choose(self, label: str, choice: str) -> None:
        """Choose one of a list by what it shows."""
        for option in self.labelled(label).find_elements(By.TAG_NAME, "option"):
            if option.text == choice:
                option.click()
                return
        raise AssertionError(f"{label} has no choice {choice}")

    def press(self, *keys: str) -> None:
        """Press keys, one after the other, wherever the focus is."""
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    @property
    def focused(self) -> WebElement:
        """What has the focus."""
        return self.driver.switch_to.active_element

    def table(self, caption: str) -> list[list[str]]:
        """The cells of a table by its caption, without its head; waits for it."""
        found = """for (const table of document.querySelectorAll("table")) {
                if (table.caption?.textContent === arguments[0]) {
                    return [...table.tBodies[0].rows].map((row) =>
                        [...row.cells].map((cell) => cell.innerText.trim()));
                }
            }
            return null;"""

        def rows() -> tuple[list[list[str]]] | None:
            read = self.script(found, caption)
            return None if read is None else (read,)

        return self.until(rows, f"a table {caption}")[0]

    def tiles(self, *, step: int = 8, share: float = 1.0) -> dict[str, Tile]:
        """The hosts that the map has, each by its name: found as a pointer would find them.

        Args:
            step: pixels between two points that are looked at.
            share: how much of the map is looked at, around its middle.
        """
        found: list[tuple[str, list[Any]]] = self.script(_TILES, step, share)
        return {
            name: Tile((point[0], point[1]), Counter(colours)) for name, (point, colours) in found
        }

    def drawn_tiles(self, *, step: int = 8) -> dict[str, Tile]:
        """The same, once the map is drawn: some frames after the page says that it is live."""
        return self.until(lambda: self.tiles(step=step) or None, "the map is drawn")

    def script(self, text: str, *arguments: object) -> Any:
        """What a script in the page returns."""
        return self.driver.execute_script(text, *arguments)

    def screenshot(self, path: Path) -> None:
        """Write what the window shows, as PNG."""
        self.driver.save_screenshot(str(path))

    def axe(self) -> list[str]:
        """What axe-core finds serious or critical on the page as it is now, one line for each."""
        if not AXE.exists():
            leave_out("axe-core", "not in tools/web/node_modules; `make lint` installs it")
        # By the driver, which the page's policy does not bind.
        if not self.script("return Boolean(window.axe)"):
            self.script(AXE.read_text())
        violations: list[dict[str, Any]] = self.script(
            """const { violations } = await axe.run(document, { resultTypes: ["violations"] });
            return violations"""
        )
        return [
            f"{found['id']}: {found['help']}: {node['html'][:200]} {node['failureSummary']}"
            for found in violations
            if found["impact"] in ("serious", "critical")
            for node in found["nodes"]
        ]

    @contextmanager
    def scheme(self, scheme: str) -> Iterator[None]:
        """The colour scheme that the user prefers, light or dark, for the duration of the block."""
        self._emulate([{"name": "prefers-color-scheme", "value": scheme}])
        yield
        self._emulate([])

    def _emulate(self, features: list[dict[str, str]]) -> None:
        command = "Emulation.setEmulatedMedia"
        self.driver.execute_cdp_cmd(command, {"features": features})

    @contextmanager
    def window(self, width: int, height: int) -> Iterator[None]:
        """Another size of the window, for the duration of the block."""
        before = self.driver.get_window_size()
        self.driver.set_window_size(width, height)
        yield
        self.driver.set_window_size(before["width"], before["height"])

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        size = "const page = document.documentElement; return page.scrollWidth - page.clientWidth"
        pixels: int = self.script(size)
        return pixels

    def expect(self, pattern: str) -> None:
        """Let the browser's log have errors of this pattern until the end of the test."""
        self._expected.append(pattern)

    def check(self) -> None:
        """Fail if the browser saw an error, a violation, or a request to another origin."""
        said = [entry["message"] for entry in self._log("browser")]
        errors = [
            text for text in said if not any(re.search(known, text) for known in self._expected)
        ]
        asked = {sent.url for sent in self.requests() if not sent.url.startswith(self._url)}
        self._expected.clear()
        assert not errors, errors
        assert not asked, asked

    def forget(self) -> None:
        """Close the page with all that it keeps."""
        if self._url:
            self.driver.execute_script("sessionStorage.clear(); localStorage.clear()")
            self._url = ""
        self.driver.get("about:blank")
        self._log("browser")
        self._log("performance")
        self._requests.clear()

    def requests(self) -> Sequence[Request]:
        """What the page has sent in this test, to wherever."""
        for entry in self._log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                sent = message["params"]["request"]
                if sent["url"].startswith(("http", "ws")):
                    self._requests.append(Request(sent["method"], sent["url"], sent["headers"]))
        return self._requests

    def _log(self, name: str) -> list[dict[str, Any]]:
        """What was logged since the last call."""
        driver: Any = self.driver  # Selenium has no type for this call
        entries: list[dict[str, Any]] = driver.get_log(name)
        return entries


def _clicked(element: WebElement) -> bool:
    element.click()
    return True


@contextmanager
def browsing(folder: Path, *, width: int = 1280, height: int = 900) -> Iterator[Browser]:
    """A headless Chromium with a profile of its own in `folder`."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(program("chromium"))
    for argument in (
        "--headless=new",
        "--no-sandbox",  # CI runs as root
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        "--force-device-scale-factor=1",
        "--force-color-profile=srgb",
        "--lang=en-US",
        f"--user-data-dir={folder}/profile",
        f"--window-size={width},{height}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, Driver(str(program("chromedriver"))))
    try:
        driver.set_script_timeout(PATIENCE)
        yield Browser(driver)
    finally:
        driver.quit()
