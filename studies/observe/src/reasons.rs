//! What reasons for doubt mean.

/// What a reason means, by its name in the records.
pub(crate) fn meaning(name: &str) -> &'static str {
    match name {
        "mid_stream" => {
            "the capture began in the middle of the connection, so that its beginning is not known"
        }
        "capture_ended" => {
            "the capture ended in the middle of the handshake: whether it went well is not known"
        }
        "server_hello" => {
            "no ServerHello could be read: it is malformed, or over QUIC was not captured or could not \
             be opened"
        }
        "one_direction" => {
            "only one direction was captured: what the other side chose, and when, is not known"
        }
        "bytes_missing" => {
            "the handshake is longer than what is put in order, or the capture lost bytes of it"
        }
        "client_finished" => {
            "no record of the client has the size of its Finished (a client certificate, or padding): \
             the first of its flight was taken, so that the handshake may seem too short"
        }
        "server_finished" => "the server's Finished could be another of its encrypted records",
        "end_of_early_data" => {
            "a record of EndOfEarlyData's size is all that says that early data were accepted"
        }
        "ticket_or_data" => {
            "a record of the server could be a ticket or application data: the time of its first data \
             may be too soon, or too late"
        }
        "server_speaks_first" => "the server seems to send application data before the client does",
        "unknown_suite" => {
            "the suite is not known, so that the sizes of its records are not either"
        }
        "quic_data" => {
            "QUIC's 1-RTT packets hide whether they hold application data; the first one was taken"
        }
        "quic_early_data" => {
            "QUIC hides whether early data were accepted: the best answer is `likely`"
        }
        _ => "see `proto/tracker`, where the reason is defined",
    }
}
