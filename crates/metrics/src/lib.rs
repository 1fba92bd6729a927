//! The page from which Prometheus reads, over HTTP/1.1 (RFC 9112): one request a connection, all of
//! it bounded, and the page itself.
#![forbid(unsafe_code)]

mod exposition;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

pub use exposition::{Exposition, Family, Histogram};

/// The longest request head that is read, in bytes.
const MAX_HEAD: usize = 8 << 10;
/// Most fields of a request.
const MAX_FIELDS: usize = 64;
/// The longest that a client may take for its request and our answer.
const LIMIT: Duration = Duration::from_secs(5);
/// Clients served at once.
const MAX_CLIENTS: usize = 16;

/// Makes the page.
pub type Page = Arc<dyn Fn() -> String + Send + Sync>;

/// Where metrics can be read.
#[derive(Debug)]
pub struct MetricsServer {
    listener: TcpListener,
}

impl MetricsServer {
    /// Begins to listen.
    ///
    /// # Errors
    /// Of `bind`: another program has the port, or this machine has no such address.
    pub async fn bind(address: SocketAddr) -> io::Result<MetricsServer> {
        Ok(MetricsServer { listener: TcpListener::bind(address).await? })
    }

    /// The address, with the port that was given or chosen.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Serves until it is dropped.
    pub async fn serve(self, page: Page) {
        let clients = Arc::new(Semaphore::new(MAX_CLIENTS));
        loop {
            let accepted = self.listener.accept().await;
            let Ok((stream, _)) = accepted else {
                // Out of descriptors, as a rule: not worth a busy loop.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            // Beyond the limit a client is hung up on.
            let Ok(permit) = Arc::clone(&clients).try_acquire_owned() else { continue };
            let page = Arc::clone(&page);
            tokio::spawn(async move {
                let _permit = permit;
                // A client that is slow or gone is no matter.
                let _ = tokio::time::timeout(LIMIT, answer(stream, &page)).await;
            });
        }
    }
}

/// Serves a page on a thread of its own until the program ends. Gives the address, with the port that
/// was chosen where 0 was given.
///
/// # Errors
/// As [`MetricsServer::bind`]; that no thread can be started.
pub fn serve_on_thread(address: SocketAddr, page: Page) -> io::Result<SocketAddr> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let server = runtime.block_on(MetricsServer::bind(address))?;
    let listening = server.address().unwrap_or(address);
    let serve = move || runtime.block_on(server.serve(page));
    std::thread::Builder::new().name("metrics".to_owned()).spawn(serve)?;
    Ok(listening)
}

/// Reads one request and answers it.
async fn answer<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, page: &Page) -> io::Result<()> {
    let mut head = Vec::with_capacity(1024);
    let mut chunk = [0; 1024];
    let response = loop {
        let len = stream.read(&mut chunk).await?;
        let Some(bytes) = chunk.get(..len).filter(|bytes| !bytes.is_empty()) else {
            return Ok(());
        };
        head.extend_from_slice(bytes);
        if let Some(response) = respond(&head, page) {
            break response;
        }
        if head.len() > MAX_HEAD {
            break response("431 Request Header Fields Too Large", "", "too long\n", true);
        }
    };
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await
}

/// The answer to a request; `None` while its head is not whole.
fn respond(head: &[u8], page: &Page) -> Option<String> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(head) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => {}
        Err(_) => return Some(response("400 Bad Request", "", "not an HTTP/1 request\n", true)),
    }
    let with_body = match request.method {
        Some("GET") => true,
        Some("HEAD") => false,
        _ => return Some(response("405 Method Not Allowed", "Allow: GET, HEAD\r\n", "", true)),
    };
    let path = request.path.and_then(|target| target.split('?').next());
    Some(match path {
        Some("/metrics") => {
            let kind = "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n";
            response("200 OK", kind, &page(), with_body)
        }
        _ => response("404 Not Found", "", "the page is /metrics\n", with_body),
    })
}

fn response(status: &str, fields: &str, body: &str, with_body: bool) -> String {
    let body_len = body.len();
    let body = if with_body { body } else { "" };
    format!(
        "HTTP/1.1 {status}\r\n{fields}Content-Length: {body_len}\r\nConnection: close\r\n\r\n{body}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(request: &[u8]) -> String {
        let page: Page = Arc::new(|| "some_metric 1\n".to_owned());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut client, server) = tokio::io::duplex(32 << 10);
            client.write_all(request).await.unwrap();
            client.shutdown().await.unwrap();
            answer(server, &page).await.unwrap();
            let mut got = String::new();
            client.read_to_string(&mut got).await.unwrap();
            got
        })
    }

    #[test]
    fn the_page_is_served_and_nothing_else() {
        let got = ask(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(got.starts_with("HTTP/1.1 200 OK\r\n") && got.ends_with("\r\n\r\nsome_metric 1\n"));
        assert!(got.contains("Content-Length: 14\r\n"), "{got}");
        let got = ask(b"HEAD /metrics?x=1 HTTP/1.0\r\n\r\n");
        assert!(got.contains("Content-Length: 14\r\n") && got.ends_with("\r\n\r\n"), "{got}");
        for (request, status) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"GET /metrics HTTP/2\r\n\r\n", "400"),
            (b"GET /metrics HTTP/1.1 more\r\n\r\n", "400"),
            (b"\x16\x03\x01\x00\r\n\r\n", "400"),
            (b" \r\n\r\n", "400"),
        ] {
            let got = ask(request);
            assert!(got.starts_with(&format!("HTTP/1.1 {status} ")), "{got}");
        }
    }

    #[test]
    fn a_head_without_end_is_cut_short() {
        let mut request = b"GET /metrics HTTP/1.1\r\n".to_vec();
        request.resize(MAX_HEAD + 2000, b'a');
        assert!(ask(&request).starts_with("HTTP/1.1 431 "));
        assert_eq!(ask(b"GET /metrics HTTP/1.1\r\n"), "", "no whole request, no answer");
    }
}
