"""Dashboard, alerts and scrape file: they parse, and every metric in them is one of ours."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from docs import generate

DEPLOY = Path(__file__).parents[2] / "deploy"
OURS = re.compile(r"\bpagetoll_\w+")
LABELS = re.compile(r"(\bpagetoll_\w+)\{([^}]*)\}")
LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
BY = re.compile(r"\bby \(([^)]*)\)")
JOBS = re.compile(r'job="([\w-]+)"')


def load(name: str) -> Any:
    return YAML(typ="safe", pure=True).load((DEPLOY / name).read_text())


def rules() -> list[dict[str, Any]]:
    return [rule for group in load("prometheus/alerts.yml")["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    return json.loads((DEPLOY / "grafana" / "pagetoll.json").read_text())["panels"]


def expressions() -> Iterator[tuple[str, str]]:
    for rule in rules():
        yield rule["alert"], rule["expr"]
    for panel in panels():
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_an_expression_names_only_series_and_labels_that_the_code_has(where: str, expression: str):
    labels = {series: set(one.labels) for one in generate.metrics() for series in one.series}
    for series in OURS.findall(expression):
        assert series in labels, where
    for series, chosen in LABELS.findall(expression):
        assert set(LABEL.findall(chosen)) <= labels[series], where
    known = set().union(*(labels[series] for series in OURS.findall(expression)), {"le"})
    for group in BY.findall(expression):
        assert {name.strip() for name in group.split(",")} <= known, where


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_an_expressions_brackets_are_closed(where: str, expression: str):
    for opening, closing in ("()", "{}", "[]"):
        assert expression.count(opening) == expression.count(closing), where


def test_every_metric_of_ours_is_shown_or_alerts():
    """A metric that nobody looks at has no reason to be."""
    used = set(OURS.findall(" ".join(expression for _, expression in expressions())))
    assert {one.name for one in generate.metrics() if not used & set(one.series)} == set()


def test_every_job_that_is_asked_about_is_scraped():
    scraped = {job["job_name"] for job in load("prometheus/scrape.yml")["scrape_configs"]}
    asked = {name for _, expression in expressions() for name in JOBS.findall(expression)}
    assert asked <= scraped


def test_scraped_names_are_services_of_the_compose_file_and_their_ports():
    services = load("compose.yaml")["services"]
    for job in load("prometheus/scrape.yml")["scrape_configs"]:
        (found,) = job["dns_sd_configs"]
        (name,) = found["names"]
        assert str(found["port"]) in str(services[name]["healthcheck"]["test"])


def test_every_alert_says_how_urgent_it_is_and_what_to_do():
    for rule in rules():
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert rule["annotations"]["summary"].endswith(".")
        assert rule["annotations"]["description"].endswith(".")


def test_what_must_wake_somebody_has_an_alert():
    names = {rule["alert"] for rule in rules()}
    assert {
        "LedgerInvariantBroken",
        "SettlementLate",
        "QueueOld",
        "GatewayErrors",
        "NoWorker",
    } <= names


def test_every_panel_is_described_and_lies_within_the_grid():
    seen = set()
    for panel in panels():
        place = panel["gridPos"]
        assert panel["type"] == "row" or panel["description"], panel["title"]
        assert place["x"] + place["w"] <= 24
        seen.add((place["x"], place["y"]))
    assert len(seen) == len(panels())


def test_grafana_is_given_the_dashboard_and_its_data_source():
    (source,) = load("grafana/provisioning/datasources/prometheus.yaml")["datasources"]
    (provider,) = load("grafana/provisioning/dashboards/pagetoll.yaml")["providers"]
    mounts = load("compose.yaml")["services"]["grafana"]["volumes"]
    assert any(f":{provider['options']['path']}/pagetoll.json" in mount for mount in mounts)
    assert {panel["datasource"]["uid"] for panel in panels() if panel["type"] != "row"} == {
        source["uid"]
    }
