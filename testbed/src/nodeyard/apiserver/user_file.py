"""The file of `--users`: who may come in with which token.

YAML (or JSON, which YAML contains):

    users:
      - name: alice
        token: a-secret
        groups: [dev]            # optional, as are uid and extra
        rules:                   # optional: PolicyRules, held cluster-wide
          - apiGroups: [""]
            resources: [nodes]
            verbs: [get, list, watch]
      - name: system:serviceaccount:ci:builder   # a service account: its groups are implied
        token: another-secret

or kube-apiserver's token file, by the name's ending `.csv`: token, user, uid and optionally quoted groups on a line.
"""

from __future__ import annotations

import csv
from pathlib import Path

import msgspec

from nodeyard.apiserver.rbac.rules import Rule
from nodeyard.apiserver.transport import User
from nodeyard.apiserver.users import parse_service_account
from nodeyard.kube.manifests import load


class UserFileError(ValueError):
    """The file is invalid; the text names the entry and the error."""


class KnownUser(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry."""

    name: str
    token: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}
    rules: tuple[Rule, ...] = ()

    @property
    def user(self) -> User:
        account = parse_service_account(self.name)
        implied = account.groups if account else ()
        return User(self.name, tuple(dict.fromkeys((*implied, *self.groups))), self.uid, self.extra)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    users: tuple[KnownUser, ...] = ()


def read_user_file(path: Path) -> tuple[KnownUser, ...]:
    try:
        text = path.read_text()
        users = _read_csv(text) if path.suffix == ".csv" else _read_yaml(text)
    except (OSError, ValueError) as error:
        raise UserFileError(f"{path}: {error}") from error
    _check(path, users)
    return users


def _read_yaml(text: str) -> tuple[KnownUser, ...]:
    return msgspec.convert(load(text) or {}, _File).users


def _read_csv(text: str) -> tuple[KnownUser, ...]:
    users = []
    for number, row in enumerate(csv.reader(text.splitlines(), skipinitialspace=True), 1):
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if len(cells) < 3:
            raise ValueError(f"line {number}: token, user name and uid are needed, found {len(cells)} columns")
        groups = tuple(group for group in cells[3].split(",") if group) if len(cells) > 3 else ()
        users.append(KnownUser(name=cells[1], token=cells[0], uid=cells[2], groups=groups))
    return tuple(users)


def _check(path: Path, users: tuple[KnownUser, ...]) -> None:
    owners: dict[str, str] = {}
    for position, user in enumerate(users):
        if not user.name or not user.token:
            raise UserFileError(f"{path}: users[{position}]: name and token must not be empty")
        if user.token in owners:
            raise UserFileError(f"{path}: users[{position}] {user.name!r} has the token of {owners[user.token]!r}")
        owners[user.token] = user.name
