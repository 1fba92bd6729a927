//! Servers on loopback, a thread for each connection at a time.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use tls::Server;

use crate::memory::Lengths;
use crate::{ANSWER, CONCURRENT, Result};

/// A server; dropping it ends its threads.
pub struct Served {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Served {
    /// One that speaks TLS and answers one request a connection.
    pub fn tls(server: &Arc<Server>) -> Result<Served> {
        let server = Arc::clone(server);
        Served::by(move |socket| converse(socket, &server))
    }

    /// One that takes and gives so many bytes.
    pub fn bytes(lengths: Lengths) -> Result<Served> {
        Served::by(move |socket| exchange(socket, lengths))
    }

    fn by(talk: impl Fn(TcpStream) -> Result<()> + Clone + Send + 'static) -> Result<Served> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let (address, stop) = (listener.local_addr()?, Arc::new(AtomicBool::new(false)));
        let mut threads = Vec::new();
        for _ in 0..CONCURRENT {
            let (listener, talk) = (listener.try_clone()?, talk.clone());
            let ends = Arc::clone(&stop);
            threads.push(std::thread::spawn(move || {
                while let Ok((socket, _)) = listener.accept() {
                    if ends.load(Ordering::Relaxed) {
                        break;
                    }
                    // The client says what failed.
                    let _ = talk(socket);
                }
            }));
        }
        Ok(Served { address, stop, threads })
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for _ in &self.threads {
            let _ = TcpStream::connect(self.address);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn converse(mut socket: TcpStream, server: &Server) -> Result<()> {
    let mut session = server.accept()?;
    let (mut buffer, mut out, mut request) = ([0; 16 * 1024], Vec::new(), Vec::new());
    loop {
        let len = socket.read(&mut buffer)?;
        let Some(records) = buffer.get(..len).filter(|records| !records.is_empty()) else {
            return Ok(());
        };
        session.read_tls(records)?;
        session.receive(&mut request)?;
        let asked = request.ends_with(b"\r\n\r\n");
        if asked {
            session.send(ANSWER)?;
            session.close();
        }
        out.clear();
        session.write_tls(&mut out)?;
        socket.write_all(&out)?;
        if asked {
            return Ok(());
        }
    }
}

fn exchange(mut socket: TcpStream, [hello, flight, finished, response]: Lengths) -> Result<()> {
    let mut buffer = vec![0; hello.max(flight).max(finished).max(response)];
    for (taken, given) in [(hello, flight), (finished, response)] {
        socket.read_exact(buffer.get_mut(..taken).unwrap_or_default())?;
        socket.write_all(buffer.get(..given).unwrap_or_default())?;
    }
    Ok(())
}
