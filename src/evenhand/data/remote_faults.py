"""What object stores answer when something is wrong, in one line with the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from evenhand.errors import DataError, DataUnreachable

_ENVIRONMENT = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "gcs": "GOOGLE_APPLICATION_CREDENTIALS",
    "abfs": "AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET",
    "abfss": "AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET",
}
_DENIED = re.compile(
    r"ACCESS_DENIED|AccessDenied|INVALID_ACCESS_KEY|InvalidAccessKeyId|SIGNATURE_DOES_NOT_MATCH|"
    r"SignatureDoesNotMatch|INVALID_SIGNATURE|UNRECOGNIZED_CLIENT|ExpiredToken|TokenRefresh|"
    r"HTTP response code: (?:400|401|403)|PERMISSION_DENIED|UNAUTHENTICATED|AuthorizationFailure|"
    r"AuthenticationFailed|[Cc]redential"
)
_NO_BUCKET = re.compile(
    r"NO_SUCH_BUCKET|NoSuchBucket|[Bb]ucket '?[^ ']*'? not found|ContainerNotFound"
)
_ABSENT = re.compile(r"NO_SUCH_KEY|NoSuchKey|Path does not exist|RESOURCE_NOT_FOUND")
_NO_CLIENT = re.compile(r"libjvm|libhdfs")
# Ids of requests help only the store's owner; a detail after a semicolon repeats the fact.
_NOISE = re.compile(
    r"^\[Errno \d+\] |\s*\((?:Request ID|request id)[^)]*\)|"
    r"; Details:.*|\. Detail:.*| error_info=.*"
)
_LONGEST = 200


@contextmanager
def fault_of(name: str) -> Iterator[None]:
    """Turn what a file system raises into a DataError; `name` is a URL without secrets."""
    faults = _kinds()
    try:
        yield
    except faults as error:
        raise told(name, error) from None


def told(name: str, error: Exception) -> DataError:
    text = " ".join(str(error).split())
    scheme = name.partition("://")[0]
    if _DENIED.search(text):
        where = _ENVIRONMENT.get(scheme, "the store's own variables")
        return DataError(
            f"{name} may not be read ({fact(error)}); give credentials in the environment "
            f"({where}) that may list and read it"
        )
    if _NO_BUCKET.search(text):
        return DataError(f"{name} is not there: there is no such bucket; check its name and region")
    if isinstance(error, FileNotFoundError) or _ABSENT.search(text):
        return DataError(f"{name} is not there; check the bucket and the name")
    if _NO_CLIENT.search(text):
        return DataError(
            f"{name} needs Hadoop's client, which is not there ({fact(error)}); install it and set "
            "JAVA_HOME, HADOOP_HOME and CLASSPATH"
        )
    if isinstance(error, ValueError | NotImplementedError):
        return DataError(f"{name} cannot be opened ({fact(error)}); check the URL and its query")
    return DataUnreachable(
        f"{name} cannot be read ({fact(error)}); check the network and the store, and give the "
        "command again"
    )


def is_final(error: Exception) -> bool:
    """Whether asking again would bring the same."""
    return not isinstance(told("", error), DataUnreachable)


def fact(error: Exception) -> str:
    text = _NOISE.sub("", " ".join(str(error).split()))
    return text[:_LONGEST].rstrip(" .")


def _kinds() -> tuple[type[Exception], ...]:
    try:
        arrow: type[Exception] = import_module("pyarrow").ArrowException
    except ImportError:
        return (OSError, ValueError)
    return (OSError, ValueError, arrow)
