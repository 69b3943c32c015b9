"""Logging to standard error, as text or as one JSON object a line. Records carry ids, never what people say."""

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

request: ContextVar[str] = ContextVar("request", default="")
"""The number of the request that is being answered; '' outside of one."""


class OfRequest(logging.Filter):
    """Gives each record the number of the request that it was written in."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = request.get()
        return True


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message; the request's number and a traceback if any."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if number := getattr(record, "request_id", ""):
            line["request"] = number
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configuration(log_format: str) -> dict[str, Any]:
    """The logging settings for `text` or `json`."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "text": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"},
            "json": {"()": JsonFormatter},
        },
        "filters": {"request": {"()": OfRequest}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": log_format, "filters": ["request"]}},
        "root": {"handlers": ["stderr"], "level": "INFO"},
        "loggers": {
            # Replaces Django's own handlers, of which one would mail request bodies.
            "django": {"handlers": [], "level": "INFO", "propagate": True},
            # A page that is not there, or a form filled in wrongly, is the visitor's affair, and its path theirs too.
            "django.request": {"level": "ERROR"},
            # Their lines for every start, stop and task say nothing that ours do not.
            "celery": {"level": "WARNING"},
            "kombu": {"level": "WARNING"},
            "uvicorn": {"level": "WARNING"},
            "openai": {"level": "WARNING"},
            "httpx": {"level": "WARNING"},
            "httpx2": {"level": "WARNING"},
        },
    }
