//! Records of an alert's size: alerts, or two bytes of data.

use super::Rule13;
use crate::record::Uncertain;
use crate::side::Sender;
use crate::tls::Encrypted;

impl Rule13 {
    /// Judges records of an alert's size that nothing followed by what the other side said.
    pub(super) fn short_records(&mut self) {
        if let (None, Some(short), Some(answer)) =
            (self.found.client_data, self.client_short, self.found.server_data)
            && answer.acked > short.begin_offset
        {
            // The server answered it: it was a request.
            self.found.client_data = self.client_short.take();
        }
        if let (None, Some(short)) = (self.found.server_data, self.after.short())
            && self.answers(short)
            && (self.found.client_data.is_some() || self.found.early_records > 0)
        {
            // The only answer to a request: two bytes, or a refusal.
            self.found.doubt(Uncertain::TicketOrData);
        }
    }

    /// Takes for alerts what has the size of one and was followed by nothing.
    pub(super) fn alerts(&mut self) {
        let finished = self.found.client_finished.is_some();
        let client = if finished { self.client_short } else { self.client_alert };
        let server = if finished {
            self.after.short().filter(|_| self.found.server_data.is_none())
        } else {
            let last = self.flight.iter().flatten().last().copied();
            last.filter(|record| record.len == self.overhead + 2)
        };
        if let Some(server) = server.filter(|_| finished && self.after.is_empty(&self.found))
            && client.is_none_or(|client| server.begin.at < client.begin.at)
        {
            // Nothing but an alert answered the client's Finished.
            self.found.refused = self.certified;
            self.found.doubt(Uncertain::ServerAlert);
        }
        let alert = |record: Option<Encrypted>, sender| record.map(|record| (record.end, sender));
        self.found.alerts = [alert(client, Sender::Client), alert(server, Sender::Server)];
    }
}
