//! What these tests share.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use capture::Live;
use lab_test::TestResult;
use lab_test::net::sleeping;
use observe::Lab;
use observe::reading::{self, Reading, SinkOptions, Times, View};
use serde_json::Value;
use study::{End, Options, Study, Watcher, unattended_until};

/// Measures a plan into a folder, or what a folder lacks, stopped after so many steps.
pub fn measure(
    plan: &Value,
    folder: &Path,
    captures: Option<PathBuf>,
    steps: Option<u32>,
) -> TestResult<End> {
    let mut plan = Lab
        .recorded_plan(plan, &Default::default(), &Options::none())
        .map_err(|e| e.to_string())?;
    let end = unattended_until(
        "observe",
        &plan.value(),
        folder,
        steps.map(study::Until::Steps),
        |session| {
            let session = session.keeping_captures(captures);
            plan.measure(&mut session.in_lab(sleeping(plan.seed())))
        },
    );
    Ok(end.map_err(|problem| problem.to_string())?)
}

/// Follows until all connections have been made, and a while longer.
pub struct Until(pub Arc<AtomicBool>);

impl Watcher for Until {
    fn progress(&mut self, _: &str, _: Duration, _: Duration) {}
    fn interrupted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
    fn warning(&mut self, what: &str, _: Option<&str>) {
        panic!("{what}");
    }
    fn note(&mut self, _: &str) {}
}

impl View for Until {
    fn now(&mut self, _: String) {}
}

/// What is heard at interfaces until a node has talked, and for a while longer: rings hand over within 50 ms.
pub fn heard(
    mut sources: Vec<Live>,
    options: SinkOptions,
    node: &lab::Node,
    talk: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> TestResult<reading::Read> {
    let done = Arc::new(AtomicBool::new(false));
    let said = Arc::clone(&done);
    let talk = node.spawn(move || async move {
        let result = talk();
        tokio::time::sleep(Duration::from_secs(1)).await;
        said.store(true, Ordering::Relaxed);
        result
    });
    let mut reading = Reading::open(options, 1000, sources.len()).unwrap();
    reading.live(&mut sources, Times::default(), &mut Until(done)).unwrap();
    let read = reading.finish().unwrap();
    talk.join()??;
    Ok(read)
}

/// A failure of TLS as one of the stream.
pub fn failed(error: tls::Error) -> io::Error {
    io::Error::other(error.to_string())
}

/// One side of a TLS connection over a stream of which so much was read before, until it has had a byte of
/// the other. The ticket that came, if one did.
pub fn talk_tls(
    mut stream: TcpStream,
    mut session: Box<dyn tls::Session>,
    read_before: &[u8],
    speaks_first: bool,
) -> io::Result<Option<tls::Ticket>> {
    let (mut said, mut got) = (false, Vec::new());
    if !read_before.is_empty() {
        session.read_tls(read_before).map_err(failed)?;
    }
    loop {
        if !said && session.may_send() && (speaks_first || !got.is_empty()) {
            session.send(b"?").map_err(failed)?;
            said = true;
        }
        let mut out = Vec::new();
        session.write_tls(&mut out).map_err(failed)?;
        stream.write_all(&out)?;
        if said && !got.is_empty() {
            return Ok(session.take_ticket());
        }
        let mut bytes = [0; 8192];
        let count = stream.read(&mut bytes)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        session.read_tls(&bytes[..count]).map_err(failed)?;
        session.receive(&mut got).map_err(failed)?;
    }
}
