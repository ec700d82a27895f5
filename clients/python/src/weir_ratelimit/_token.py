"""The metadata of calls: the token."""

from __future__ import annotations

from ._errors import OutageError
from ._options import Token, is_token

Metadata = tuple[tuple[str, str], ...]


class Headers:
    """Makes the metadata of calls."""

    def __init__(self, token: Token) -> None:
        self._token = token
        self._fixed: Metadata = (("authorization", f"Bearer {token}"),) if isinstance(token, str) else ()

    def make(self) -> Metadata:
        """Returns the metadata. A token that cannot be had is an outage: keys rotate, and a site must go on."""
        if not callable(self._token):
            return self._fixed
        try:
            value = self._token()
        except Exception as error:
            raise OutageError("UNAUTHENTICATED", "the token function failed", error) from error
        if not is_token(value):
            text = "the token function returned no text of visible ASCII characters"
            raise OutageError("UNAUTHENTICATED", text)
        return (("authorization", f"Bearer {value}"),)
