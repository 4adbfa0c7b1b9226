"""A web server listens where it is told, and its answers do not wait."""

from __future__ import annotations

import asyncio
import socket

import pytest

from recollect.web.listening import AddressTaken, listen, url_of


def test_what_is_sent_in_two_parts_does_not_wait_for_the_first_to_be_acknowledged() -> None:
    async def serve() -> bool:
        undelayed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            line = writer.get_extra_info("socket")
            undelayed.set_result(bool(line.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))
            writer.close()

        with listen("127.0.0.1", 0, section="test") as listening:
            server = await asyncio.start_server(accepted, sock=listening)
            async with server:
                _, writer = await asyncio.open_connection(*listening.getsockname())
                try:
                    return await undelayed
                finally:
                    writer.close()

    assert asyncio.run(serve())


def test_a_taken_address_is_told_with_the_section_that_names_it() -> None:
    with (
        listen("127.0.0.1", 0, section="first") as taken,
        pytest.raises(AddressTaken) as refused,
    ):
        listen("127.0.0.1", taken.getsockname()[1], section="second")
    assert refused.value.section == "second"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::", "http://[::1]:80"),
        ("[::1]", "http://[::1]:80"),
        ("box", "http://box:80"),
    ],
)
def test_a_browser_here_finds_it_by_an_address_that_it_can_ask(host: str, url: str) -> None:
    assert url_of(host, 80) == url
