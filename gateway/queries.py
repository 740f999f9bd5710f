"""Refuses query parameters that a call does not have: a typo must not filter nothing."""

from typing import Any

from litestar import Litestar
from litestar.connection import ASGIConnection
from litestar.openapi.spec import Parameter

from gateway import problems


class QueryNames:
    """The names that each call knows, as the OpenAPI document has them."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], frozenset[str]] = {}

    def check(self, connection: ASGIConnection[Any, Any, Any, Any]) -> None:
        """Raises Refusal naming the first parameter that the call does not have."""
        sent = list(connection.query_params)
        if not sent:
            return
        if not self._known:
            self._known = _names_by_call(connection.app)
        scope = connection.scope
        call = (str(scope.get("path_template")), str(scope.get("method")).lower())
        for name in sent:
            if name not in self._known.get(call, frozenset()):
                raise problems.invalid(name[:64], "This call has no such parameter")


def _names_by_call(app: Litestar) -> dict[tuple[str, str], frozenset[str]]:
    return {
        (path, method): frozenset(
            parameter.name
            for parameter in operation.parameters or []
            if isinstance(parameter, Parameter) and parameter.param_in == "query"
        )
        for path, item in (app.openapi_schema.paths or {}).items()
        for method in ("get", "post", "put", "patch", "delete")
        if (operation := getattr(item, method)) is not None
    }
