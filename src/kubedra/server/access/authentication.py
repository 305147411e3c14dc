"""From credentials to a user: client certificate, bearer token, then impersonation.

Upstream counterpart: apiserver/pkg/authentication and endpoints/filters (impersonation).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import unquote

from kubedra.api.errors import ApiError, bad_request, unauthorized
from kubedra.server.access.tokens import StaticTokens, TokenSigner
from kubedra.server.access.users import (
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    Attributes,
    Decision,
    User,
)
from kubedra.server.state import SystemClock

_ANONYMOUS = User(ANONYMOUS, (UNAUTHENTICATED,))
_OPEN_PATHS = frozenset(("/healthz", "/livez", "/readyz", "/version", "/version/"))

Authorize = Callable[[User, Attributes], Decision]


class Authenticator:
    """Says who asks."""

    def __init__(self, static: StaticTokens, signer: TokenSigner) -> None:
        self._static = static
        self._signer = signer
        self._clock = SystemClock()

    def token(self, token: str, audiences: Sequence[str] = ()) -> User | None:
        """The user of a bearer token."""
        user = self._static.authenticate(token)
        if user is not None:
            return user
        if token.count(".") != 2:
            return None
        return self._signer.authenticate(token, audiences, self._clock.now())

    def request(self, authorization: str, certificate: User | None, path: str) -> User:
        """The user of a request. Raises 401; anonymous users reach only what everybody may see."""
        if certificate is not None:
            return certificate
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            user = self.token(token.strip())
            if user is not None:
                return user
        elif not authorization and path in _OPEN_PATHS:
            return _ANONYMOUS
        raise unauthorized()


def certificate_user(subject: Sequence[Sequence[tuple[str, str]]]) -> User | None:
    """The user of a verified client certificate, from the subject as `ssl` gives it."""
    name, groups = "", []
    for relative in subject:
        for kind, value in relative:
            if kind == "commonName":
                name = value
            elif kind == "organizationName":
                groups.append(value)
    return User(name, (*groups, AUTHENTICATED)) if name else None


def impersonated(
    user: User, headers: Mapping[str, str], every: Sequence[tuple[str, str]], authorize: Authorize
) -> User:
    """The user that a request wants to be. `every` has repeated headers one by one. Raises 400, 403."""
    groups = tuple(value for name, value in every if name == "impersonate-group")
    extra: dict[str, list[str]] = {}
    for name, value in every:
        if name.startswith("impersonate-extra-"):
            extra.setdefault(unquote(name.removeprefix("impersonate-extra-")), []).append(value)
    name, uid = headers.get("impersonate-user", ""), headers.get("impersonate-uid", "")
    if not name:
        shown = ", ".join(f'"{group}"' for group in groups)
        listed = f"[]string{{{shown}}}" if groups else "[]string(nil)"
        raise bad_request(
            f'requested &user.DefaultInfo{{Name:"", UID:"{uid}", Groups:{listed}, '
            "Extra:map[string][]string(nil)} without impersonating a user name"
        )
    questions: list[Attributes] = []
    account = name.removeprefix("system:serviceaccount:") if name.startswith("system:serviceaccount:") else ""
    if account.count(":") == 1:
        namespace, account = account.split(":")
        questions.append(Attributes("impersonate", "", "serviceaccounts", "", namespace, account))
        if not groups:
            groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    else:
        questions.append(Attributes("impersonate", "", "users", "", "", name))
    given = [value for key, value in every if key == "impersonate-group"]
    questions += [Attributes("impersonate", "", "groups", "", "", group) for group in given]
    for key, values in extra.items():
        questions += [
            Attributes("impersonate", "authentication.k8s.io", "userextras", key, "", value) for value in values
        ]
    if uid:
        questions.append(Attributes("impersonate", "authentication.k8s.io", "uids", "", "", uid))
    for question in questions:
        decision = authorize(user, question)
        if not decision.allowed:
            qualified = f"{question.resource}.{question.group}" if question.group else question.resource
            details = {"name": question.name, "kind": question.resource}
            text = f'{qualified} "{question.name}" is forbidden: {question.refusal(user, decision.reason)}'
            raise ApiError(403, "Forbidden", text, details)
    if name == ANONYMOUS:
        groups = (*groups, UNAUTHENTICATED) if UNAUTHENTICATED not in groups else groups
    elif AUTHENTICATED not in groups:
        groups = (*groups, AUTHENTICATED)
    return User(name, groups, uid, {key: tuple(values) for key, values in extra.items()})
