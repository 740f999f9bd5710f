"""Request bodies: strict JSON into a struct, or a refusal that names the field."""

import re
from collections.abc import Generator
from typing import Any, ClassVar, TypeVar

import msgspec
from litestar._openapi.schema_generation import SchemaCreator
from litestar.dto import AbstractDTO, DTOFieldDefinition
from litestar.openapi.spec import Reference, Schema
from litestar.typing import FieldDefinition
from typing_extensions import override

from gateway import problems
from runtime.errors import Refusal

T = TypeVar("T")

PLACE = re.compile(r" - at `(?:key` in `)?(?P<place>\$[^`]*)`$")
FIELD = re.compile(
    r"^Object (?:missing required|contains unknown) field `(?P<field>.*)`$", re.DOTALL
)


def decode(raw: bytes, kind: type[T]) -> T:
    """The body as a struct, nothing converted; raises Refusal: 400 for JSON, 422 for meaning."""
    if not raw:
        raise problems.invalid("$", "The body must be a JSON object", syntax=True)
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.ValidationError, RecursionError) as error:
        _check_syntax(raw)
        raise refusal_of(error) from error
    except msgspec.DecodeError as error:
        raise problems.invalid("$", f"The body is not JSON: {error}", syntax=True) from error


def refusal_of(error: Exception) -> Refusal:
    """What the decoder found, with the place where it found it."""
    text = str(error)
    found = PLACE.search(text)
    place = found["place"] if found else "$"
    message = text[: found.start()] if found else text
    field = FIELD.match(message)
    if field is not None:
        place = f"{place}.{field['field']}"
    return problems.invalid(place, message)


def _check_syntax(raw: bytes) -> None:
    """A body that is wrong in form is refused for that, even where its meaning is wrong first."""
    try:
        msgspec.json.decode(raw)
    except msgspec.ValidationError:
        return
    except msgspec.DecodeError as error:
        raise problems.invalid("$", f"The body is not JSON: {error}", syntax=True) from error
    except RecursionError as error:
        raise problems.invalid("$", "The body is nested too deep", syntax=True) from error


class StrictJson(AbstractDTO[Any]):
    """Lets a handler's `data` be decoded here: the framework itself would take "5" for 5."""

    _kinds: ClassVar[dict[str, type[Any]]] = {}

    @override
    def decode_bytes(self, value: bytes) -> Any:
        return decode(value, self._kinds[self.asgi_connection.route_handler.handler_id])

    @classmethod
    @override
    def create_for_field_definition(
        cls, field_definition: FieldDefinition, handler_id: str, backend_cls: object = None
    ) -> None:
        del backend_cls
        cls._kinds[handler_id] = field_definition.annotation

    @classmethod
    @override
    def create_openapi_schema(
        cls, field_definition: FieldDefinition, handler_id: str, schema_creator: SchemaCreator
    ) -> Reference | Schema:
        del handler_id
        return schema_creator.for_field_definition(field_definition)

    @classmethod
    @override
    def generate_field_definitions(
        cls, model_type: type[Any]
    ) -> Generator[DTOFieldDefinition, None, None]:
        del model_type
        yield from ()

    @classmethod
    @override
    def detect_nested_field(cls, field_definition: FieldDefinition) -> bool:
        del field_definition
        return False
