"""The errors of this package. A denial is no error."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._decision import Decision


class WeirError(Exception):
    """The base class of all errors of this package."""


class OutageError(WeirError):
    """No decision can be had: Weir is away, late, overloaded, or does not accept the credentials."""

    def __init__(self, code: str, message: str, cause: BaseException | None = None) -> None:
        super().__init__(f"{code}: {message}")
        #: The name of the gRPC code.
        self.code = code
        self.__cause__ = cause

    @property
    def cause(self) -> BaseException | None:
        """What failed, if it was an exception."""
        return self.__cause__


class MistakeError(WeirError):
    """The question is wrong: an unknown strategy, a field out of its bounds, a missing right.

    It is raised whatever the policy is.
    """

    def __init__(self, code: str, message: str, field: str | None = None, cause: BaseException | None = None) -> None:
        super().__init__(f"{code}: {message}")
        #: The name of the gRPC code.
        self.code = code
        #: The field that is wrong, if Weir names one.
        self.field = field
        self.__cause__ = cause


class ConfigurationError(WeirError):
    """An option of a client or of a middleware is wrong."""


class DeniedError(WeirError):
    """The call was denied, and `raise_if_denied` asked for an error."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision.message or f"denied: {decision.reason}")
        self.decision = decision


class LeaseRefusedError(WeirError):
    """A lease cannot begin: it is denied."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(f"the lease is denied ({decision.reason}): {decision.message or 'no permits are free'}")
        #: The denial, also of the policy.
        self.decision = decision


class BudgetRefusedError(WeirError):
    """A meter cannot begin: its estimate is denied."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(f"the budget is denied ({decision.reason}): {decision.message or 'the estimate does not fit'}")
        #: The denial, also of the policy.
        self.decision = decision


class LeaseLostError(WeirError):
    """A lease has ended before it was released: others may hold its permits, so the work must stop."""

    def __init__(self) -> None:
        super().__init__("the lease has ended before it was released")


class ClosedError(WeirError):
    """The client is closed."""

    def __init__(self) -> None:
        super().__init__("the client is closed")
