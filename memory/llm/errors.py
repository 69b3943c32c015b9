"""What can go wrong between us and a model.

    ModelError
     ├ Unreachable        no connection: refused, unknown host, TLS, no answer to connecting
     ├ TimedOut           connected, then silent for too long
     ├ RateLimited        429
     ├ ServerFailed       5xx, or an error inside the stream
     ├ Refused            any other 4xx
     │  ├ BadKey          401, 403
     │  ├ OutOfQuota      402, or a 429 that waiting does not help
     │  ├ NoSuchModel     404 about the model
     │  └ ContextOverflow more text than the model takes
     ├ CutOff             the answer stopped before its end
     ├ EmptyAnswer        the answer ended and held no text and no tool call
     ├ Filtered           the server's content filter ended the answer
     └ NotAModelServer    HTML, garbage, or another service at the address

str() of an error is a fixed sentence and safe to log. `detail` holds the server's own words, which may quote
the conversation: it is for the page of the person concerned or of the operator, and never for a log.
"""

from typing import ClassVar


class ModelError(Exception):
    """`code` is a stable word for the pages to translate; `passing` says whether trying again may help.

    `retry_after` is the number of seconds the server asked us to wait, already capped, or None.
    `status` is the HTTP status, or None when there was none.
    """

    code: ClassVar[str] = "model_error"
    passing: ClassVar[bool] = False
    sentence: ClassVar[str] = "the model could not answer"

    def __init__(self, detail: str = "", *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(self.sentence if status is None else f"{self.sentence} (HTTP {status})")
        self.detail = detail
        self.status = status
        self.retry_after = retry_after


class Unreachable(ModelError):
    code, passing, sentence = "unreachable", True, "the model server cannot be reached"


class TimedOut(ModelError):
    code, passing, sentence = "timed_out", True, "the model server was silent for too long"


class RateLimited(ModelError):
    code, passing, sentence = "rate_limited", True, "the model server asks us to slow down"


class ServerFailed(ModelError):
    code, passing, sentence = "server_failed", True, "the model server failed"


class Refused(ModelError):
    code, sentence = "refused", "the model server refused the request"


class BadKey(Refused):
    code, sentence = "bad_key", "the model server does not accept the key"


class OutOfQuota(Refused):
    code, sentence = "out_of_quota", "the account at the model server is used up"


class NoSuchModel(Refused):
    code, sentence = "no_such_model", "the model server does not have this model"


class ContextOverflow(Refused):
    code, sentence = "context_overflow", "the conversation is longer than the model takes"


class CutOff(ModelError):
    code, passing, sentence = "cut_off", True, "the answer broke off before its end"


class EmptyAnswer(ModelError):
    code, passing, sentence = "empty_answer", True, "the model answered nothing"


class Filtered(ModelError):
    code, sentence = "filtered", "the model server's content filter ended the answer"


class NotAModelServer(ModelError):
    code, sentence = "not_a_model_server", "the address does not answer like a model server"
