//! What a TCP connection comes to: its part of the record.

use units::Time;

use super::{Side, TcpFlow};
use crate::content::Content;
use crate::keylog::KeyLog;
use crate::record::{Connection, Uncertain};
use crate::side::Pair;
use crate::tls::Mark;

impl TcpFlow {
    /// Completes the record.
    pub(crate) fn close(mut self: Box<Self>, connection: &mut Connection, keys: &KeyLog) {
        self.flush(keys);
        if let Some((first, _)) = self.syn.waiting() {
            // Nobody answered: what was sent first is what there is.
            self.settle_syn_data(first, keys);
        }
        self.choose_syn_ack(None);
        self.take_held(keys);
        let Pair { client, server } = &self.sides;
        let lacks =
            |side: &Side| side.stream.is_incomplete() || side.lacks_acknowledged(self.stream_bytes);
        let incomplete = lacks(client) || lacks(server);
        self.facts.bytes_missing |= incomplete && !self.done;
        if self.mid_stream {
            connection.uncertain.push(Uncertain::MidStream);
        }
        let first = self.first.client.map(|mark| mark.at);
        self.facts.client_payload = self.facts.client_payload.or(first);
        self.facts.server_payload = self.first.server.map(|mark| mark.at);
        let (client_data, server_data) = self.application_data(connection);
        connection.client_data = client_data.map(|mark| mark.at);
        connection.server_data = server_data.map(|mark| mark.at);
        connection.up_to_response = server_data.map(|mark| mark.traffic.client);
        connection.down_to_response = server_data.map(|mark| mark.traffic.server);
        let before = |ack: Time, data: Option<Mark>| data.is_some_and(|data| data.at < ack);
        if let (Some(ack), Some(_)) = (self.facts.handshake_ack, self.facts.syn_ack) {
            self.facts.server_data_before_ack &= before(ack, server_data);
        } else {
            self.facts.server_data_before_ack &= server_data.is_some();
        }
        let in_vain = |side: &Side| side.sent_again && side.acked < side.highest;
        self.facts.unanswered = in_vain(&self.sides.client) || in_vain(&self.sides.server);
        self.facts.clock_offset = self.clocks.offset();
        connection.end = self.end;
        connection.tcp = Some(self.facts);
    }

    fn application_data(&mut self, connection: &mut Connection) -> (Option<Mark>, Option<Mark>) {
        let one_direction = connection.up.frames == 0 || connection.down.frames == 0;
        let content = std::mem::replace(&mut self.content, Content::new());
        let Some(mut handshake) = content.into_handshake(self.facts.bytes_missing) else {
            return (self.first.client, self.first.server);
        };
        handshake.close();
        self.facts.enveloped = self.envelopes.is_some();
        if one_direction {
            connection.uncertain.push(Uncertain::OneDirection);
        }
        // Bytes given up after all was found, such as a long upload, cast no doubt.
        let found = handshake.facts.client_finished.is_some()
            && handshake.client_data.is_some()
            && handshake.server_data.is_some();
        if self.facts.bytes_missing && !found {
            connection.uncertain.push(Uncertain::BytesMissing);
        }
        connection.uncertain.extend(&handshake.uncertain);
        let data = (handshake.client_data, handshake.server_data);
        connection.roles_known = true;
        connection.tls = Some(handshake.facts);
        data
    }
}
