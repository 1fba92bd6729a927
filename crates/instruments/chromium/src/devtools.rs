//! DevTools over a WebSocket: commands, their answers, events.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message as Frame};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::Error;
use crate::message::Message;
use crate::process::Address;

/// The longest answer to a command.
const LIMIT: Duration = Duration::from_secs(30);
/// The largest message: those that are read have some kilobytes.
const LARGEST: usize = 4 << 20;
/// Events that wait while an answer is awaited; of more, the first are kept.
const MOST_EVENTS: usize = 1 << 16;

/// An event: its name, its parameters.
pub(crate) type Event = (String, Value);

/// A connection to a browser's DevTools, with at most one session of a page.
pub(crate) struct DevTools {
    socket: WebSocketStream<TcpStream>,
    next: u64,
    /// The page's session: commands go to it, and events of others are none of ours.
    session: Option<String>,
    events: VecDeque<Event>,
    /// The command whose answer is not awaited: only its refusal is of interest.
    unawaited: Option<(u64, &'static str)>,
}

impl DevTools {
    pub(crate) async fn connect(address: &Address) -> Result<DevTools, Error> {
        let failed = |error: tungstenite::Error| Error::Connection(error.to_string());
        let during = "connecting";
        let config = WebSocketConfig::default()
            .max_message_size(Some(LARGEST))
            .max_frame_size(Some(LARGEST));
        let connect = async {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, address.port)).await;
            let stream = stream.map_err(|error| Error::Connection(error.to_string()))?;
            stream.set_nodelay(true).map_err(|error| Error::Connection(error.to_string()))?;
            let url = address.url.as_str();
            client_async_with_config(url, stream, Some(config)).await.map_err(failed)
        };
        let late = |_| Error::Late { command: during, limit: LIMIT };
        let (socket, _) = timeout(LIMIT, connect).await.map_err(late)??;
        Ok(DevTools { socket, next: 0, session: None, events: VecDeque::new(), unawaited: None })
    }

    /// Takes the events of this session alone from now on, and forgets those before.
    pub(crate) fn use_session(&mut self, session: Option<String>) {
        self.session = session;
        self.forget_events();
    }

    pub(crate) fn forget_events(&mut self) {
        self.events.clear();
    }

    /// A command to the browser, and its answer.
    pub(crate) async fn browser(
        &mut self,
        name: &'static str,
        params: Value,
    ) -> Result<Value, Error> {
        let id = self.send(name, params, false).await?;
        self.answer(id, name).await
    }

    /// A command to the page, and its answer.
    pub(crate) async fn page(&mut self, name: &'static str, params: Value) -> Result<Value, Error> {
        let id = self.send(name, params, true).await?;
        self.answer(id, name).await
    }

    /// A command to the page whose answer may come much later.
    pub(crate) async fn begin(&mut self, name: &'static str, params: Value) -> Result<(), Error> {
        let id = self.send(name, params, true).await?;
        self.unawaited = Some((id, name));
        Ok(())
    }

    async fn send(
        &mut self,
        name: &'static str,
        params: Value,
        to_page: bool,
    ) -> Result<u64, Error> {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": name, "params": params });
        if let Some(session) = self.session.as_ref().filter(|_| to_page) {
            message["sessionId"] = json!(session);
        }
        let frame = Frame::text(message.to_string());
        let late = |_| Error::Late { command: name, limit: LIMIT };
        let sent = timeout(LIMIT, self.socket.send(frame)).await.map_err(late)?;
        sent.map_err(|error| Error::Connection(error.to_string()))?;
        Ok(self.next)
    }

    async fn answer(&mut self, wanted: u64, command: &'static str) -> Result<Value, Error> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let read = timeout_at(deadline, self.read()).await;
            match read.map_err(|_| Error::Late { command, limit: LIMIT })?? {
                Message::Answer { id, result } if id == wanted => return Ok(result),
                Message::Refusal { id, error } if id == wanted => {
                    return Err(Error::Refused { command, why: short(&error.message) });
                }
                other => self.keep(other)?,
            }
        }
    }

    /// The next event of the page's session; `None` if there is none by `deadline`.
    pub(crate) async fn event(&mut self, deadline: Instant) -> Result<Option<Event>, Error> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            match timeout_at(deadline, self.read()).await {
                Ok(message) => self.keep(message?)?,
                Err(_) => return Ok(None),
            }
        }
    }

    fn keep(&mut self, message: Message) -> Result<(), Error> {
        match message {
            Message::Event { method, params, session } if session == self.session => {
                if self.events.len() < MOST_EVENTS {
                    self.events.push_back((method, params));
                }
                Ok(())
            }
            Message::Refusal { id, error } => match self.unawaited {
                Some((awaited, command)) if awaited == id => {
                    Err(Error::Refused { command, why: short(&error.message) })
                }
                _ => Ok(()),
            },
            Message::Event { .. } | Message::Answer { .. } | Message::Other(_) => Ok(()),
        }
    }

    /// The next message. Stopped while it waits, it loses nothing.
    async fn read(&mut self) -> Result<Message, Error> {
        loop {
            let frame = self.socket.next().await;
            let frame = frame.ok_or_else(|| Error::Connection("it was closed".to_owned()))?;
            match frame.map_err(|error| Error::Connection(error.to_string()))? {
                Frame::Text(text) => return Message::read(&text),
                Frame::Close(_) => return Err(Error::Connection("it was closed".to_owned())),
                // Pings are answered by the library.
                Frame::Binary(_) | Frame::Ping(_) | Frame::Pong(_) | Frame::Frame(_) => {}
            }
        }
    }
}

/// A stranger's words for a message.
fn short(text: &str) -> String {
    fault::excerpt(text, 200)
}
