//! What DevTools says: JSON, of which only what is used is read.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::Error;

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Message {
    /// The answer to a command.
    Answer { id: u64, result: Value },
    /// A command was refused.
    Refusal { id: u64, error: Refusal },
    /// Something happened: an event of DevTools, by its method.
    Event {
        method: String,
        #[serde(default)]
        params: Value,
        #[serde(rename = "sessionId", default)]
        session: Option<String>,
    },
    /// Anything else, by which nothing is meant here.
    Other(IgnoredAny),
}

/// Why a command was refused.
#[derive(Debug, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) message: String,
}

impl Message {
    pub(crate) fn read(text: &str) -> Result<Message, Error> {
        serde_json::from_str(text).map_err(|error| Error::Message(error.to_string()))
    }
}

/// Parameters of `Network.requestWillBeSent`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WillBeSent {
    pub(crate) request_id: String,
    pub(crate) request: RequestFacts,
    pub(crate) timestamp: f64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RequestFacts {
    pub(crate) url: String,
}

/// Parameters of `Network.responseReceived`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Received {
    pub(crate) request_id: String,
    pub(crate) response: Response,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Response {
    pub(crate) status: f64,
    #[serde(default)]
    pub(crate) protocol: Option<String>,
    #[serde(default)]
    pub(crate) connection_id: f64,
    #[serde(default)]
    pub(crate) from_disk_cache: bool,
    #[serde(default)]
    pub(crate) timing: Option<Timing>,
}

/// Network.ResourceTiming: `request_time` in seconds, the rest in milliseconds from it, -1 where it did
/// not happen.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Timing {
    pub(crate) request_time: f64,
    pub(crate) dns_start: f64,
    pub(crate) dns_end: f64,
    pub(crate) connect_start: f64,
    pub(crate) connect_end: f64,
    pub(crate) ssl_start: f64,
    pub(crate) send_start: f64,
    pub(crate) send_end: f64,
    #[serde(default)]
    pub(crate) receive_headers_start: Option<f64>,
    pub(crate) receive_headers_end: f64,
}

/// Network.responseReceivedExtraInfo: the status as it was on the wire.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExtraInfo {
    pub(crate) request_id: String,
    pub(crate) status_code: f64,
}

/// Parameters of `Network.dataReceived`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Data {
    pub(crate) request_id: String,
    pub(crate) timestamp: f64,
    pub(crate) data_length: f64,
}

/// Network.loadingFinished, loadingFailed, requestServedFromCache.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ended {
    pub(crate) request_id: String,
    #[serde(default)]
    pub(crate) timestamp: f64,
    #[serde(default)]
    pub(crate) encoded_data_length: f64,
    #[serde(default)]
    pub(crate) error_text: String,
}

/// Parameters of `Page.loadEventFired`.
#[derive(Debug, Deserialize)]
pub(crate) struct Fired {
    pub(crate) timestamp: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_refusals_and_events_are_told_apart() {
        let read = |text: &str| Message::read(text).unwrap();
        assert!(matches!(read(r#"{"id":7,"result":{}}"#), Message::Answer { id: 7, .. }));
        let refusal = read(r#"{"id":8,"error":{"code":-32601,"message":"no such"}}"#);
        let Message::Refusal { id: 8, error } = refusal else { panic!("{refusal:?}") };
        assert_eq!(error.message, "no such");
        let event =
            read(r#"{"method":"Page.loadEventFired","params":{"timestamp":1.5},"sessionId":"x"}"#);
        let Message::Event { method, params, session } = event else { panic!("{event:?}") };
        assert_eq!((method.as_str(), session.as_deref()), ("Page.loadEventFired", Some("x")));
        assert_eq!(Fired::deserialize(params).unwrap().timestamp, 1.5);
        assert!(matches!(read("[1, null]"), Message::Other(_)));
        assert!(Message::read("{").is_err() && Message::read("").is_err());
        assert!(Message::read(&"[".repeat(100_000)).is_err(), "depth is bounded");
    }
}
