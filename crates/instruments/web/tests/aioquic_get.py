"""Loads over HTTP/3 by aioquic, for tests/judges.rs.

usage: aioquic_get.py ROOT NAME PORT WINDOW LENGTH...

Asks 127.0.0.1 at PORT for /LENGTH, all at once on one connection, then for the first once more on a second
connection that resumes the first's session. WINDOW is what a stream's window begins with, in bytes; the
connection's is twice that. Prints `LENGTH STATUS BYTES SHA256` for each response, and `resumed` if the second
connection did. A connection that ends with an error is an error.
"""

import asyncio
import hashlib
import sys

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, StreamReset


class Response:
    def __init__(self):
        self.status = None
        self.length = 0
        self.digest = hashlib.sha256()
        self.ended = asyncio.get_running_loop().create_future()


class Client(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.h3 = H3Connection(self._quic)
        self.responses = {}

    async def get(self, name, path):
        stream = self._quic.get_next_available_stream_id()
        response = self.responses[stream] = Response()
        head = {":method": "GET", ":scheme": "https", ":authority": name, ":path": path, "priority": "u=2"}
        fields = [(field.encode(), value.encode()) for field, value in head.items()]
        self.h3.send_headers(stream, fields, end_stream=True)
        self.transmit()
        await asyncio.wait_for(response.ended, 60)
        return response

    def quic_event_received(self, event):
        if isinstance(event, StreamReset):
            self.fail([self.responses[event.stream_id]], f"stream {event.stream_id} was reset")
        if isinstance(event, ConnectionTerminated):
            self.fail(self.responses.values(), f"the connection ended: {event}")
        for part in self.h3.handle_event(event):
            response = self.responses.get(part.stream_id)
            if isinstance(part, HeadersReceived):
                response.status = dict(part.headers)[b":status"].decode()
            if isinstance(part, DataReceived):
                response.length += len(part.data)
                response.digest.update(part.data)
            if part.stream_ended and not response.ended.done():
                response.ended.set_result(None)

    def fail(self, responses, why):
        for response in responses:
            if not response.ended.done():
                response.ended.set_exception(ConnectionError(why))


def show(length, response):
    print(length, response.status, response.length, response.digest.hexdigest())


async def main(root, name, port, window, lengths):
    tickets = []

    def configuration():
        config = QuicConfiguration(alpn_protocols=H3_ALPN, is_client=True, server_name=name)
        config.load_verify_locations(cafile=root)
        config.max_stream_data = window
        config.max_data = 2 * window
        return config

    def opened(config):
        return connect(
            "127.0.0.1",
            port,
            configuration=config,
            create_protocol=Client,
            session_ticket_handler=tickets.append,
        )

    async with opened(configuration()) as client:
        asked = [client.get(name, f"/{length}") for length in lengths]
        for length, response in zip(lengths, await asyncio.gather(*asked)):
            show(length, response)
    config = configuration()
    config.session_ticket = tickets[0]
    async with opened(config) as client:
        show(lengths[0], await client.get(name, f"/{lengths[0]}"))
        if client._quic.tls.session_resumed:
            print("resumed")


if __name__ == "__main__":
    root, name, port, window, *lengths = sys.argv[1:]
    asyncio.run(main(root, name, int(port), int(window), lengths))
