"""A real JupyterLab and a real browser: a temporary configuration, a server on loopback, Chromium without a window."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from utils.notebooks.files import ROOT

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SWITCHES = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# All cells stay in the page, however far they are scrolled away; no news is fetched.
SETTINGS = {
    "notebook-extension/tracker": '{"windowingMode": "none"}',
    "apputils-extension/notification": '{"fetchNews": "false", "checkForUpdates": false}',
}


@pytest.fixture(scope="session")
def browser() -> Iterator:
    """Chromium of this machine. Skips, with the reason, where there is none."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("needs Chromium, and there is none on this machine")
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright, and it is not installed")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=list(SWITCHES))
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """(address with its token, folder): JupyterLab on a copy of notebooks/, so that nothing here is saved over."""
    home = tmp_path_factory.mktemp("lab")
    notebooks = home / "notebooks"
    shutil.copytree(ROOT / "notebooks", notebooks, ignore=shutil.ignore_patterns(".*"))
    for name, settings in SETTINGS.items():
        file = home / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(settings)
    port, token = free_port(), secrets.token_hex(16)
    with (home / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root", "--ip=127.0.0.1",
             f"--port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}",
             f"--ServerApp.root_dir={notebooks}"],
            env=environment(home), stdout=log, stderr=subprocess.STDOUT, cwd=notebooks,
        )  # fmt: skip
        try:
            wait_until_it_answers(f"http://127.0.0.1:{port}/api/status?token={token}", server, home / "log")
            yield f"http://127.0.0.1:{port}/lab/tree/{{}}?token={token}", notebooks
        finally:
            server.terminate()  # the server ends its kernels, and they their ranks
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()


def environment(home: Path) -> dict[str, str]:
    """This environment, with every folder that Jupyter reads or writes inside `home`."""
    places = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    inherited = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    return inherited | {name: str(home / folder) for name, folder in places.items()}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_it_answers(address: str, server: subprocess.Popen, log: Path) -> None:
    for _ in range(300):
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-2000:]}")
