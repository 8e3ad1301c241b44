"""The base of every contract type: frozen, closed, camelCase in JSON, either case on input."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Model(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )

    @classmethod
    def of_parts(cls, *parts: object, **own: Any) -> Self:
        """Fields not given come from the first part that has them."""
        for name in cls.model_fields.keys() - own.keys():
            part = next((each for each in parts if hasattr(each, name)), None)
            if part is not None:
                own[name] = getattr(part, name)
        return cls(**own)

    # Notebook rendering lives in a higher layer, so it is imported by name, and only in a notebook.
    def _repr_html_(self) -> str | None:
        html: str | None = import_module("evenhand.present.notebook").html_of(self)
        return html
