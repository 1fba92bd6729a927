//! Connections in memory: the client's part of each, timed.

use std::io::{BufRead as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use packet::clock::thread_cpu;
use rustls::{ClientConfig, ClientConnection};
use rustls_pki_types::ServerName;
use tls::{Server, Session};

use crate::{ANSWER, CONCURRENT, Result};

/// Bytes of each message of a connection, in turn: ClientHello, the server's flight, Finished with the
/// request, the response.
pub type Lengths = [usize; 4];

/// A client and a server that are joined by buffers.
pub struct Memory {
    config: Arc<ClientConfig>,
    server: Arc<Server>,
    name: ServerName<'static>,
    request: Vec<u8>,
}

/// One connection: both sides, and the bytes between them.
struct Lane {
    client: ClientConnection,
    server: Box<dyn Session>,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    heard: usize,
}

impl Memory {
    pub fn new(
        config: Arc<ClientConfig>,
        server: Arc<Server>,
        name: &str,
        request: Vec<u8>,
    ) -> Result<Memory> {
        let name = ServerName::try_from(name.to_owned())?;
        Ok(Memory { config, server, name, request })
    }

    /// The CPU time of a connection's client, in microseconds, over so many connections; and the last one's
    /// lengths.
    pub fn run(&self, connections: u64) -> Result<(f64, Lengths)> {
        let (mut done, mut cpu, mut lengths) = (0u64, Duration::ZERO, Lengths::default());
        while done < connections {
            let count = usize::try_from(connections - done)?.min(CONCURRENT);
            let (took, of_last) = self.batch(count)?;
            cpu += took;
            lengths = of_last;
            done += count as u64;
        }
        Ok((cpu.as_secs_f64() * 1e6 / connections as f64, lengths))
    }

    /// So many at once, both sides in turn.
    fn batch(&self, count: usize) -> Result<(Duration, Lengths)> {
        let mut lengths = Lengths::default();
        let began = thread_cpu();
        let opened: Vec<(ClientConnection, Vec<u8>)> =
            (0..count).map(|_| self.open()).collect::<Result<_>>()?;
        let mut cpu = thread_cpu() - began;
        let mut lanes = Vec::with_capacity(count);
        for (client, to_server) in opened {
            let (server, to_client) = (self.server.accept()?, Vec::new());
            lanes.push(Lane { client, server, to_server, to_client, heard: 0 });
        }
        for turn in 0..2 {
            for lane in &mut lanes {
                lengths[2 * turn] = lane.to_server.len();
                lane.serve()?;
                lengths[2 * turn + 1] = lane.to_client.len();
            }
            let began = thread_cpu();
            for lane in &mut lanes {
                lane.hear()?;
            }
            cpu += thread_cpu() - began;
        }
        if lanes.iter().any(|lane| lane.heard != ANSWER.len()) {
            return Err("a connection in memory did not end".into());
        }
        let began = thread_cpu();
        let servers: Vec<Box<dyn Session>> = lanes.into_iter().map(|lane| lane.server).collect();
        cpu += thread_cpu() - began;
        drop(servers);
        Ok((cpu, lengths))
    }

    /// As the generator begins a connection: the request waits for the handshake.
    fn open(&self) -> Result<(ClientConnection, Vec<u8>)> {
        let mut client = ClientConnection::new(Arc::clone(&self.config), self.name.clone())?;
        client.set_buffer_limit(None);
        client.writer().write_all(&self.request)?;
        let mut out = Vec::new();
        client.write_tls(&mut out)?;
        Ok((client, out))
    }
}

impl Lane {
    /// The server's turn.
    fn serve(&mut self) -> Result<()> {
        self.server.read_tls(&self.to_server)?;
        self.to_server.clear();
        let mut request = Vec::new();
        if self.server.receive(&mut request)? > 0 {
            self.server.send(ANSWER)?;
            self.server.close();
        }
        self.server.write_tls(&mut self.to_client)?;
        Ok(())
    }

    /// The client's turn.
    fn hear(&mut self) -> Result<()> {
        let mut records = self.to_client.as_slice();
        while !records.is_empty() {
            self.client.read_tls(&mut records)?;
            self.client.process_new_packets()?;
        }
        self.to_client.clear();
        if !self.client.is_handshaking() {
            let mut reader = self.client.reader();
            while let Ok(chunk) = reader.fill_buf() {
                let len = chunk.len();
                if len == 0 {
                    break;
                }
                self.heard += len;
                reader.consume(len);
            }
        }
        while self.client.wants_write() {
            self.client.write_tls(&mut self.to_server)?;
        }
        Ok(())
    }
}
