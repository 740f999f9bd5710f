"""The OpenAPI 3.1 document, made from the handlers, and a page of our own that shows it."""

from html import escape
from typing import Any

import msgspec
from litestar import Litestar, Request, get
from litestar.enums import MediaType
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin, OpenAPIRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.routes import HTTPRoute
from typing_extensions import override

from gateway import problems
from gateway.problems import Problem

TITLE = "Pagetoll"
VERSION = "1.0"
DESCRIPTION = (
    "A credit-metered crawl gateway. A submit reserves credits, each page that succeeds is "
    "charged once, everything else is released. Errors are application/problem+json."
)
PROBLEM = {"$ref": "#/components/responses/Problem"}
PUBLIC_STATUSES = ("500", "503")
API_STATUSES = ("400", "401", "403", "404", "422", "429", *PUBLIC_STATUSES)
TENANT = "/admin/v1/tenants/{tenant_id}"
STATUSES_OF_PATH = {
    "/v1/crawls": ("402", "409", "413"),
    "/v1/jobs/{job_id}/results": ("410",),
    "/v1/jobs/{job_id}/disputes": ("409",),
    f"{TENANT}/refunds": ("409",),
    f"{TENANT}/adjustments": ("402", "409"),
    f"{TENANT}/corrections/{{correction_id}}/approve": ("402", "409"),
    f"{TENANT}/corrections/{{correction_id}}/refuse": ("409",),
    f"{TENANT}/disputes/{{dispute_id}}/decision": ("409",),
}
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
summary { cursor: pointer; padding: .3rem 0; }
code, pre { font-family: ui-monospace, monospace; font-size: 13px; }
pre { background: #f4f4f2; overflow-x: auto; padding: .7rem; }
.method { display: inline-block; font-weight: 700; width: 4.5rem; }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd; }
  pre { background: #242424; } a { color: #8cb4ff; } }
"""


class DocumentPlugin(JsonRenderPlugin):
    """The document itself."""

    @override
    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        return msgspec.json.encode(finished(openapi_schema, request.app))


class PagePlugin(OpenAPIRenderPlugin):
    """The document as a page: no script, no other host."""

    def __init__(self) -> None:
        super().__init__(path="/")

    @override
    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        return page(finished(openapi_schema, request.app)).encode()


@get("/schema/style.css", include_in_schema=False, media_type=MediaType.CSS, sync_to_thread=False)
def read_style() -> str:
    return STYLE


def config() -> OpenAPIConfig:
    return OpenAPIConfig(
        title=TITLE,
        version=VERSION,
        description=DESCRIPTION,
        path="/schema",
        use_handler_docstrings=True,
        render_plugins=[PagePlugin(), DocumentPlugin(path="/openapi.json")],
        components=Components(
            security_schemes={
                "bearer": SecurityScheme(type="http", scheme="bearer"),
                "apiKey": SecurityScheme(
                    type="apiKey", name="X-API-Key", security_scheme_in="header"
                ),
            }
        ),
        security=[{"bearer": []}, {"apiKey": []}],
    )


def finished(document: dict[str, Any], app: Litestar) -> dict[str, Any]:
    """The document with exact schemas, and our errors on every operation."""
    _, schemas = msgspec.json.schema_components(
        [Problem, *bodies(app)], ref_template="#/components/schemas/{name}"
    )
    document["components"]["schemas"].update(schemas)
    document["components"]["responses"] = {
        "Problem": {
            "description": "What went wrong, with a stable code.",
            "content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
    }
    for path, item in document["paths"].items():
        for operation in item.values():
            if isinstance(operation, dict):
                _finish_operation(path, operation)
    return document


def bodies(app: Litestar) -> set[Any]:
    """What handlers take. The framework's own schemas lose the bounds of inner types."""
    return {
        handler.parsed_data_field.annotation
        for route in app.routes
        if isinstance(route, HTTPRoute)
        for handler in route.route_handlers
        if handler.parsed_data_field is not None
    }


def _finish_operation(path: str, operation: dict[str, Any]) -> None:
    is_public = not path.startswith(("/v1/", "/admin/"))
    statuses = PUBLIC_STATUSES if is_public else API_STATUSES
    if is_public:
        operation["security"] = []
    for status in (*statuses, *STATUSES_OF_PATH.get(path, ())):
        operation["responses"][status] = PROBLEM
    if path == "/readyz":
        operation["responses"]["200"] = {"description": "Ready."}


def page(document: dict[str, Any]) -> str:
    """Every operation with its parameters and bodies, and every schema it names."""
    operations = "".join(
        _operation(path, method, operation)
        for path, item in sorted(document["paths"].items())
        for method, operation in item.items()
        if isinstance(operation, dict)
    )
    schemas = "".join(
        f"<details id='{escape(name)}'><summary><code>{escape(name)}</code></summary>"
        f"<pre>{_pretty(schema)}</pre></details>"
        for name, schema in sorted(document["components"]["schemas"].items())
    )
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        f"<title>{TITLE} API</title><link rel='stylesheet' href='/schema/style.css'></head>"
        f"<body><h1>{TITLE} API</h1><p>{escape(DESCRIPTION)}</p>"
        "<p><a href='/schema/openapi.json'>openapi.json</a> (OpenAPI 3.1)</p>"
        f"<h2>Calls</h2>{operations}<h2>Schemas</h2>{schemas}</body></html>"
    )


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    shown = {
        name: operation[name]
        for name in ("parameters", "requestBody", "responses")
        if name in operation
    }
    return (
        f"<details><summary><span class='method'>{escape(method.upper())}</span>"
        f"<code>{escape(path)}</code></summary>"
        f"<p>{escape(operation.get('description', ''))}</p><pre>{_pretty(shown)}</pre></details>"
    )


def _pretty(value: object) -> str:
    return escape(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
