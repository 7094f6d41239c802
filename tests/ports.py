"""Where processes take connections, and whether what answers there is HTTP."""

import socket
from collections.abc import Iterable

import psutil


def listening(processes: Iterable[psutil.Process]) -> list[tuple[str, int]]:
    """The addresses at which processes take TCP connections."""
    found = []
    for process in processes:
        try:
            connections = process.net_connections("tcp")
        except psutil.NoSuchProcess:
            continue
        found += [(each.laddr.ip, each.laddr.port) for each in connections if each.status == psutil.CONN_LISTEN]
    return found


def answers_http(address: tuple[str, int]) -> bool:
    """Whether something answers a request of HTTP at an address of this machine."""
    host, port = address
    with socket.create_connection(("::1" if ":" in host else host, port), timeout=5.0) as connection:
        connection.sendall(b"GET /health HTTP/1.0\r\n\r\n")
        try:
            return connection.recv(16).startswith(b"HTTP")
        except OSError:
            return False
