//! The machine that answers.

use std::net::SocketAddr;
use std::time::Duration;

use tcp::{ListenOptions, SynWithData};
use tcpio::{TcpListener, TcpStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::question::{LARGEST, LEAST, Question, Seen};
use crate::device::{Device, Purpose};
use crate::options::{Common, Place};
use crate::serve::{drain, give_up_rights};
use crate::shutdown::{Ended, Stage};
use crate::{Error, Summary};

/// How long a question may take to come.
const PATIENCE: Duration = Duration::from_secs(20);
/// Questions at once.
const AT_ONCE: usize = 256;

/// `wiretax gateway survey serve`.
#[derive(Debug, Clone)]
pub struct SurveyServeOptions {
    /// Where packets come from and go to.
    pub common: Common,
    /// Where questions come to.
    pub listen: Vec<SocketAddr>,
}

/// Answers questions until it is asked to end. `ready` is called when they can come.
///
/// # Errors
/// What keeps it from beginning, or from going on.
pub async fn serve_survey(
    options: SurveyServeOptions,
    mut ended: Ended,
    ready: impl FnOnce(),
) -> Result<Summary, Error> {
    let (devices, listeners) = open(&options)?;
    give_up_rights()?;
    for (listener, _) in &listeners {
        tracing::info!(listen = %listener.local_addr(), "answering");
    }
    ready();
    let mut tasks = JoinSet::new();
    let mut accepting = JoinSet::new();
    let (came, mut coming) = tokio::sync::mpsc::channel(AT_ONCE);
    for (listener, port) in listeners {
        let came = came.clone();
        accepting.spawn(async move {
            while let Ok(stream) = listener.accept().await {
                if came.send(stream).await.is_err() {
                    break;
                }
            }
            tracing::debug!(port, "no more questions");
        });
    }
    drop(came);
    loop {
        tokio::select! {
            biased;
            () = ended.reached(Stage::Draining) => break,
            Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
            stream = coming.recv(), if tasks.len() < AT_ONCE => match stream {
                Some(stream) => drop(tasks.spawn(answer(stream))),
                // The stack has ended.
                None => break,
            },
        }
    }
    accepting.shutdown().await;
    let cut_off = drain(&mut tasks, &mut ended, options.common.drain, false).await;
    for device in devices {
        device.stack.shutdown().await;
    }
    Ok(Summary { cut_off })
}

/// A stack for all ports; with a redirect, which takes one port from the kernel, one for each.
#[allow(clippy::type_complexity)]
fn open(options: &SurveyServeOptions) -> Result<(Vec<Device>, Vec<(TcpListener, u16)>), Error> {
    let each = matches!(options.common.place, Place::Redirect { .. });
    let (mut devices, mut listeners) = (Vec::<Device>::new(), Vec::new());
    for at in &options.listen {
        if each || devices.is_empty() {
            let purpose = Purpose::Listen { at: *at, allowed: &[] };
            devices.push(Device::open(&options.common, purpose)?);
        }
        let Some(device) = devices.last() else { continue };
        let taken = ListenOptions { admit: is_question, cookies: true, ..ListenOptions::default() };
        listeners.push((device.stack.listen(*at, taken)?, at.port()));
    }
    Ok((devices, listeners))
}

fn is_question(syn: &SynWithData<'_>) -> bool {
    Question::read(syn.payload).is_some()
}

/// Answers one question. What is none is closed without a word.
async fn answer(mut stream: TcpStream) {
    let peer = stream.peer_addr();
    match timeout(PATIENCE, converse(&mut stream)).await {
        Ok(Ok(())) => tracing::debug!(%peer, "answered"),
        Ok(Err(error)) => {
            tracing::debug!(%peer, %error, "not answered");
            stream.abort();
        }
        Err(_) => stream.abort(),
    }
}

async fn converse(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut head = [0; LEAST];
    stream.read_exact(&mut head).await?;
    let Some(question) = Question::read(&head) else {
        return Err(std::io::ErrorKind::InvalidData.into());
    };
    // What is written by now is what the SYN+ACK has room for.
    let filler: Vec<u8> = super::question::filler(question.answer).collect();
    stream.write_all(&filler).await?;
    stream.answer();
    let mut rest = vec![0; question.len.min(LARGEST) - LEAST];
    stream.read_exact(&mut rest).await?;
    let info = stream.established().await?;
    let count = |bytes: usize| u16::try_from(bytes).unwrap_or(u16::MAX);
    let whole = question.is(&[&head[..], &rest].concat());
    // A question that came changed is said to have brought nothing.
    let syn = if whole { count(info.syn_bytes) } else { u16::MAX };
    let seen = Seen { syn, syn_ack: count(info.syn_ack_bytes) };
    stream.write_all(&seen.bytes()).await?;
    stream.shutdown().await?;
    // The end of the other side, so that nothing is reset.
    let mut end = [0; 1];
    stream.read(&mut end).await.map(drop)
}
