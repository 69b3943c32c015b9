"""PostgreSQL, Redis and nginx of our own, in a folder that goes away, on ports that are free."""

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tests.served import ROOT

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
REDIS = shutil.which("redis-server") or shutil.which("valkey-server")
SECONDS_TO_START = 30
INSTALL = "apt-get install -y --no-install-recommends nginx-light redis-server postgresql"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int) -> None:
    until = time.monotonic() + SECONDS_TO_START
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def postgres_programs() -> Path | None:
    """The directory of the newest PostgreSQL's own programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    elsewhere = shutil.which("initdb")
    return Path(elsewhere).parent if elsewhere else None


def missing() -> list[str]:
    """What has to be installed before the drill can be held."""
    there = {"nginx-light": NGINX, "redis-server": REDIS, "postgresql": postgres_programs()}
    return [name for name, found in there.items() if not found]


class Postgres:
    """One server; as root it runs as the user `postgres`, for it refuses root."""

    def __init__(self, folder: Path) -> None:
        programs = postgres_programs()
        if programs is None:
            raise FileNotFoundError("initdb")
        self._programs, self._data, self.port = programs, folder / "postgres", free_port()
        self._data.mkdir(mode=0o700)
        if os.geteuid() == 0:
            shutil.chown(self._data, "postgres")
        self._run("initdb", "-U", "previously", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8")

    @property
    def url(self) -> str:
        return f"postgres://previously@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        self._run("pg_ctl", "-w", "-l", str(self._data / "log"), "-o", options, "start")

    def kill(self) -> None:
        """End it as a crash would."""
        self._run("pg_ctl", "-m", "immediate", "stop", check=False)

    def _run(self, program: str, *arguments: str, check: bool = True) -> None:
        command = [str(self._programs / program), "-D", str(self._data), *arguments]
        if os.geteuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        subprocess.run(command, check=check, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")


class Redis:
    """One server that forgets everything when it ends."""

    def __init__(self) -> None:
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        if REDIS is None:
            raise FileNotFoundError("redis-server")
        command = [REDIS, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        wait_for_port(self.port)

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()


class Nginx:
    """One proxy in front of our web processes: with our example as it is deployed, or with nginx's own defaults."""

    def __init__(self, folder: Path, web: Sequence[int], *, ours: bool) -> None:
        self.port = free_port()
        self._folder = folder / f"nginx-{self.port}"
        self._folder.mkdir(mode=0o755)
        site = our_site(self.port, web) if ours else default_site(self.port, web)
        places = "".join(
            f"{name}_temp_path {self._folder}/{name};\n"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (self._folder / "nginx.conf").write_text(
            f"pid {self._folder}/pid;\nerror_log {self._folder}/error.log;\nworker_processes 1;\n"
            f"events {{ worker_connections 4096; }}\nhttp {{\naccess_log off;\n{places}{site}}}\n"
        )
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> None:
        if NGINX is None:
            raise FileNotFoundError("nginx")
        command = [NGINX, "-p", str(self._folder), "-c", str(self._folder / "nginx.conf")]
        command += ["-e", str(self._folder / "error.log"), "-g", "daemon off;"]
        self._process = subprocess.Popen(command)
        wait_for_port(self.port)

    def stop(self) -> None:
        if self._process:
            self._process.terminate()
            self._process.wait()


def default_site(port: int, web: Sequence[int]) -> str:
    """What somebody writes who reads no manual: everything is passed on, nothing is set but the name."""
    servers = " ".join(f"server 127.0.0.1:{one};" for one in web)
    return (
        f"upstream previously {{ {servers} }}\n"
        f"server {{ listen 127.0.0.1:{port}; gzip on; gzip_types *;\n"
        "location / { proxy_pass http://previously; proxy_set_header Host $http_host; } }\n"
    )


def our_site(port: int, web: Sequence[int]) -> str:
    """The example that we give, less TLS, on this port."""
    site = (ROOT / "previously_site" / "deploy" / "nginx.conf").read_text("utf-8")
    site = re.sub(r"server \{\s*listen 80;.*?\n\}\n", "", site, flags=re.DOTALL)
    site = re.sub(r"\n\s*ssl_certificate\S* \S+;", "", site)
    changes = {
        "listen 443 ssl;": f"listen 127.0.0.1:{port};",
        "server_name chat.example.org;": "server_name 127.0.0.1;",
        "server 127.0.0.1:8000;": " ".join(f"server 127.0.0.1:{one};" for one in web),
        "$host;": "$http_host;",  # the port belongs to the name here
    }
    for here, there in changes.items():
        if here not in site:
            raise ValueError(f"the example has no {here!r} any more")
        site = site.replace(here, there)
    return site
