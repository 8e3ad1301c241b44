"""What was learned, kept as a JSON file under a name: calibrations and juries."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import orjson
from pydantic import ValidationError

from evenhand.contract.json_text import RepeatedKey, refuse_repeated_key
from evenhand.contract.model import Model
from evenhand.errors import InputError
from evenhand.messages import Message
from evenhand.report.files import atomic_file

_NAME = re.compile(r"[\w][\w.+-]{0,99}")

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class SavedFiles(Generic[M]):
    """Of one kind. A name stands for a file in the folder, a path that ends in .json for itself."""

    model: type[M]
    kind: str
    folder_name: str
    make: str  # the message that says how to get one
    folder_variable: str | None = None

    def save(self, saved: M, name: str | Path, *, overwrite: bool) -> Path:
        path = self.path(name)
        with atomic_file(path, overwrite=overwrite, make_folder=_is_named(name)) as stream:
            stream.write(saved.model_dump_json(indent=2).encode() + b"\n")
        return path

    def open(self, name: str | Path) -> M:
        path = self.path(name)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            known = sorted(each.stem for each in path.parent.glob("*.json"))
            there = Message("saved.not_there", path=path)
            if _is_named(name) and known:
                there = Message("saved.there_are", names=known[:5])
            raise InputError(
                Message(
                    "saved.unknown",
                    kind=Message(f"saved.{self.kind}"),
                    name=str(name),
                    there=there,
                    make=Message(self.make),
                )
            ) from None
        except OSError as error:
            reason = error.strerror or error
            make = Message(self.make)
            raise InputError(
                Message("saved.unreadable", path=path, reason=reason, make=make)
            ) from None
        try:
            saved = self.model.model_validate_json(content)
            refuse_repeated_key(content, orjson.loads(content))
            return saved
        except (RepeatedKey, orjson.JSONDecodeError) as error:
            raise InputError(
                Message("trust.file_of_another_kind", path=path, kind=self.kind, error=error)
            ) from None
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "the file"
            raise InputError(
                Message(
                    "saved.of_another_kind",
                    kind=Message(f"saved.{self.kind}"),
                    path=path,
                    where=where,
                    reason=first["msg"],
                    make=Message(self.make),
                )
            ) from None

    def path(self, name: str | Path) -> Path:
        if not _is_named(name):
            return Path(name).expanduser()
        if not _NAME.fullmatch(str(name)):
            raise InputError(
                Message("saved.no_name", kind=Message(f"saved.{self.kind}"), name=str(name))
            )
        return self.folder() / f"{name}.json"

    def folder(self) -> Path:
        """By the variable where there is one and it is set, else in the user's data directory."""
        named = os.environ.get(self.folder_variable or "", "").strip()
        if named:
            return Path(named).expanduser()
        from platformdirs import user_data_dir

        return Path(user_data_dir("evenhand")) / self.folder_name


def _is_named(name: str | Path) -> bool:
    return not str(name).endswith(".json")
