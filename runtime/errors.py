"""Refusal: the one error that a caller is meant to see."""


class Refusal(Exception):
    """A request that is refused with a stable code and one clear sentence.

    `code` is a word of the contract; `details` become extra members of the answer.
    Nothing has been changed when a Refusal is raised.
    """

    def __init__(self, code: str, message: str, **details: object) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


class Unavailable(Exception):
    """A server this process stands on does not answer; the caller may try again later."""

    def __init__(self, message: str, *, retry_after_seconds: int = 2) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds
