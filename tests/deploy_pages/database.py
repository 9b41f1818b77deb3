"""A PostgreSQL server at loopback addresses of its own, met as a vendor's own is: by passwords, and TLS once on."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from tests.contract.ledger_servers import NO_POSTGRESQL, postgresql_binaries
from tests.contract.loopback_tls import write_certificate
from tests.infra.aws_terraform import NotPossibleError
from typing_extensions import LiteralString

PORT = 5432  # both modules have it in the addresses that they give out
_BOSS = "postgres"  # whom the vendor keeps for itself
_HBA = "local all all trust\nhost all all 0.0.0.0/0 scram-sha-256\n"


@dataclass(frozen=True, slots=True)
class Database:
    """A running server: `inner` is its address within the network, `outer` the one for a desk."""

    folder: Path
    inner: str
    outer: str

    def tell(self, statement: LiteralString, **names: str) -> list[tuple[Any, ...]]:
        """Run a statement of the vendor's own; `{name}` are identifiers, `%(name)s` nothing but texts."""
        with self._opened("postgres") as connection:
            quoted = {name: sql.Identifier(value) for name, value in names.items()}
            found = connection.execute(sql.SQL(statement).format(**quoted))
            return found.fetchall() if found.description else []

    def keep_account(self, name: str, password: str) -> None:
        """Make an account, or give it another password."""
        known = self._known("SELECT 1 FROM pg_roles WHERE rolname = %s", name)
        verb = sql.SQL("ALTER" if known else "CREATE")
        with self._opened("postgres") as connection:
            connection.execute(
                sql.SQL("{} ROLE {} LOGIN PASSWORD {}").format(verb, sql.Identifier(name), sql.Literal(password))
            )

    def has_account(self, name: str) -> bool:
        """Whether it is there."""
        return self._known("SELECT 1 FROM pg_roles WHERE rolname = %s", name)

    def keep_database(self, name: str, owner: str = "") -> None:
        """Make a database where there is none; `owner` owns it from now on."""
        if not self._known("SELECT 1 FROM pg_database WHERE datname = %s", name):
            self.tell("CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0", name=name)
        if owner:
            self.tell("ALTER DATABASE {name} OWNER TO {owner}", name=name, owner=owner)

    def turn_tls_on(self) -> None:
        """From now on who asks for TLS gets it."""
        self.tell("ALTER SYSTEM SET ssl = on")
        self.tell("SELECT pg_reload_conf()")

    def opens(self, name: str, password: str) -> bool:
        """Whether this account can sign in from outside."""
        try:
            psycopg.connect(host=self.outer, port=PORT, user=name, password=password, dbname="postgres").close()
        except psycopg.OperationalError:
            return False
        return True

    def _known(self, question: LiteralString, name: str) -> bool:
        with self._opened("postgres") as connection:
            return connection.execute(question, (name,)).fetchone() is not None

    def _opened(self, database: str) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(host=str(self.folder), port=PORT, user=_BOSS, dbname=database, autocommit=True)


@contextmanager
def database() -> Iterator[Database]:
    """A server that is gone afterwards.

    Raises:
        NotPossibleError: there is no PostgreSQL here.
    """
    binaries = postgresql_binaries()
    if binaries is None:
        raise NotPossibleError(NO_POSTGRESQL)
    net = f"127.213.{secrets.randbelow(250) + 1}"  # of this run alone, so that its port is free
    folder = Path(tempfile.mkdtemp(prefix="costguard-rds-"))
    user = next((one.pw_name for one in pwd.getpwall() if one.pw_name in {"postgres", "nobody"}), None)
    user = user if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
    write_certificate(folder / "server.pem", f"{net}.1", f"{net}.2")
    (folder / "server.pem").chmod(0o600)
    (folder / "hba").write_text(_HBA, "utf-8")
    if user is not None:
        for path in (folder, *folder.iterdir()):
            shutil.chown(path, user)

    def run(*command: str) -> None:
        with (folder / "said").open("a") as said:
            done = subprocess.run(  # noqa: S603 - PostgreSQL's own binaries
                [str(binaries / command[0]), *command[1:]],
                user=user,
                extra_groups=None if user is None else [],
                env={"PATH": str(binaries), "LC_ALL": "C", "TZ": "UTC"},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=said,  # a file: the server inherits it, and a pipe would never see its end
                stderr=subprocess.STDOUT,
                check=False,
                timeout=60,
            )
        assert done.returncode == 0, (folder / "said").read_text("utf-8")

    set_up = {
        "listen_addresses": f"{net}.1,{net}.2",
        "port": str(PORT),
        "unix_socket_directories": str(folder),
        "hba_file": str(folder / "hba"),
        "ssl_cert_file": str(folder / "server.pem"),
        "ssl_key_file": str(folder / "server.pem"),
        "password_encryption": "scram-sha-256",
        "fsync": "off",
    }
    options = " ".join(f"-c {name}='{value}'" for name, value in set_up.items())
    try:
        run("initdb", "-D", "data", "-U", _BOSS, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        run("pg_ctl", "-D", "data", "-w", "-s", "-l", "server.log", "-o", options, "start")
        try:
            yield Database(folder, f"{net}.1", f"{net}.2")
        finally:
            run("pg_ctl", "-D", "data", "-w", "-s", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
