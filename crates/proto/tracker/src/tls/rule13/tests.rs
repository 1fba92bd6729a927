//! The rule's cases, record by record. `acked` counts the peer's stream bytes.

use wire::tls::CipherSuite;

use super::*;

/// A connection under AES-128-GCM-SHA256 whose ServerHello ends at byte 127 of the server's stream.
struct Case {
    rule: Rule13,
    at: u64,
    sent: [u64; 2],
}

fn case(psk_accepted: bool, early_offered: bool) -> Case {
    let settled = Settled {
        version: Version::TLS13,
        suite: CipherSuite(0x1301).tls13().unwrap(),
        server_hello_end: 127,
        psk_accepted,
        early_offered,
        tickets_useful: true,
        alps_offered: false,
        protocols: Protocols::Others,
    };
    Case { rule: Rule13::new(settled, Found::default()), at: 0, sent: [517, 127] }
}

impl Case {
    fn record(&mut self, side: usize, len: usize, acked: u64) -> Encrypted {
        self.at += 1;
        let at = Time::from_millis(self.at);
        let begin_offset = self.sent[side];
        self.sent[side] += len as u64 + 5;
        let begin = Mark { at, acked, ..Mark::default() };
        Encrypted {
            begin,
            end: at,
            begin_offset,
            end_offset: self.sent[side],
            len,
            server_bytes: 0,
        }
    }

    /// A record of the client that acknowledges all that the server sent.
    fn client(&mut self, len: usize) -> &mut Self {
        let record = self.record(0, len, self.sent[1]);
        self.rule.client(record);
        self
    }

    /// A record of the client that acknowledges nothing.
    fn early(&mut self, len: usize) -> &mut Self {
        let record = self.record(0, len, 0);
        self.rule.client(record);
        self
    }

    /// A record of the server that acknowledges all that the client sent.
    fn server(&mut self, len: usize) -> &mut Self {
        let acked = self.sent[0];
        self.server_acking(len, acked)
    }

    fn server_acking(&mut self, len: usize, acked: u64) -> &mut Self {
        let record = self.record(1, len, acked);
        self.rule.server(record);
        self
    }

    fn found(&mut self) -> &Found {
        self.rule.close();
        &self.rule.found
    }
}

fn ms(millis: u64) -> Option<Time> {
    Some(Time::from_millis(millis))
}

/// When client's Finished, client data and server data were, and the tickets.
fn summary(found: &Found) -> (Option<Time>, Option<Time>, Option<Time>, u32) {
    (
        found.client_finished.map(|r| r.end),
        found.client_data.map(|r| r.end),
        found.server_data.map(|m| m.at),
        found.tickets,
    )
}

#[test]
fn a_flight_of_single_records_tickets_and_a_short_response() {
    let mut c = case(false, false);
    // EncryptedExtensions, Certificate, CertificateVerify, Finished.
    c.server(23).server(900).server(281).server(53);
    c.client(53).client(18);
    c.server(250).server(250).server(18);
    let found = c.found();
    assert_eq!(summary(found), (ms(5), ms(6), ms(9), 2));
    assert_eq!((found.server_flight_end, found.uncertain.len()), (ms(4), 0));
}

#[test]
fn a_flight_in_one_record() {
    let mut c = case(false, false);
    c.server(1234).client(53).client(18).server(300).server(20);
    let found = c.found();
    assert_eq!((found.server_flight_end, summary(found).2, found.tickets), (ms(1), ms(5), 1));
    assert_eq!(found.uncertain, []);
}

#[test]
fn a_flight_in_one_record_and_a_half() {
    let mut c = case(false, false);
    c.server((1 << 14) + 17).server(1500).client(53);
    assert_eq!(c.found().server_flight_end, ms(2));
}

#[test]
fn tickets_that_come_before_the_request_leave_no_doubt() {
    let mut c = case(false, false);
    c.server(1234).client(53);
    let finished = c.sent[0];
    c.client(400).server_acking(250, finished).server_acking(250, finished).server(700);
    let found = c.found();
    assert_eq!((summary(found), found.uncertain.len()), ((ms(2), ms(3), ms(6), 2), 0));
}

#[test]
fn a_long_response_after_tickets_is_uncertain() {
    let mut c = case(false, false);
    c.server(1234).client(53).client(400).server(250).server(250).server(700);
    let found = c.found();
    assert_eq!((summary(found).2, found.tickets), (ms(6), 2));
    assert_eq!(found.uncertain, [Uncertain::TicketOrData]);
}

#[test]
fn a_client_without_psk_modes_gets_no_tickets() {
    let mut c = case(false, false);
    c.rule.after = After::new(17, false, Protocols::Others);
    c.server(1234).client(53).client(400).server(250);
    let found = c.found();
    assert_eq!((summary(found).2, found.tickets, found.uncertain.len()), (ms(4), 0, 0));
}

#[test]
fn early_data_accepted() {
    let mut c = case(true, true);
    c.early(18).server(23).server(53).client(21).client(53);
    c.server(250).server(250).server(18);
    let found = c.found();
    assert_eq!((found.early_data, found.early_records), (Some(EarlyData::Accepted), 1));
    assert_eq!((summary(found).2, found.tickets, found.uncertain.len()), (ms(8), 2, 0));
}

#[test]
fn early_data_accepted_and_answered_before_the_finished() {
    let mut c = case(true, true);
    let hello = c.sent[0];
    c.early(18);
    c.server(23).server(53).server(18).client(21).client(53);
    assert!(c.sent[0] > hello);
    let found = c.found();
    assert_eq!((summary(found).2, found.server_flight_end), (ms(4), ms(3)));
    assert_eq!(found.uncertain, []);
}

#[test]
fn early_data_rejected_though_the_psk_was_accepted() {
    let mut c = case(true, true);
    c.early(18).server(23).server(53).client(53).client(18).server(18);
    let found = c.found();
    assert_eq!(found.early_data, Some(EarlyData::Rejected));
    assert_eq!((summary(found).1, summary(found).2), (ms(5), ms(6)));
}

#[test]
fn early_data_of_four_bytes_is_no_end_of_early_data() {
    let mut c = case(true, true);
    c.early(21).server(23).server(53).client(53);
    assert_eq!(c.found().early_data, Some(EarlyData::Rejected));
    let mut c = case(true, true);
    c.early(21).server(23).server(53).client(21).client(53);
    assert_eq!(c.found().early_data, Some(EarlyData::Accepted));
}

#[test]
fn early_data_still_sent_after_the_server_hello() {
    let mut c = case(true, true);
    c.early(18).server(23).server(53).client(21).client(30).client(21).client(53);
    let found = c.found();
    assert_eq!((found.early_data, found.early_records), (Some(EarlyData::Accepted), 3));
}

#[test]
fn nothing_but_an_end_of_early_data_is_uncertain() {
    let mut c = case(true, true);
    c.server(23).server(53).client(21).client(53);
    assert_eq!(c.found().uncertain, [Uncertain::EndOfEarlyData]);
}

#[test]
fn a_client_certificate_in_its_own_record() {
    let mut c = case(false, false);
    c.server(23).server(40).server(900).server(281).server(53);
    c.client(800).client(281).client(53).client(18).server(18);
    let found = c.found();
    assert_eq!((summary(found).0, summary(found).1), (ms(8), ms(9)));
    assert_eq!(found.uncertain, []);
}

#[test]
fn a_client_certificate_joined_with_the_finished_is_uncertain() {
    let mut c = case(false, false);
    c.server(1234).client(1134).client(30).client(18).client(18).client(18);
    let found = c.found();
    assert_eq!(
        (summary(found).0, found.uncertain.contains(&Uncertain::ClientFinished)),
        (ms(2), true)
    );
}

#[test]
fn close_notify_is_not_data_but_two_bytes_are() {
    let mut c = case(false, false);
    c.server(1234).client(53).client(19).server(19);
    assert_eq!((summary(c.found()).1, summary(c.found()).2), (None, None));
    let mut c = case(false, false);
    c.server(1234).client(53).client(19).client(19).server(19).server(19);
    assert_eq!((summary(c.found()).1, summary(c.found()).2), (ms(3), ms(5)));
}

#[test]
fn a_lone_record_after_the_request_is_the_response_but_uncertain() {
    let mut c = case(false, false);
    c.server(1234).client(53).client(400).server(250);
    let found = c.found();
    assert_eq!((summary(found).2, found.tickets), (ms(4), 0));
    assert_eq!(found.uncertain, [Uncertain::TicketOrData]);
}

/// The same of a client that offers these protocols.
fn speaking(protocols: Protocols) -> Case {
    let mut c = case(false, false);
    c.rule.after = After::new(17, true, protocols);
    c
}

#[test]
fn http_2_settings_behind_tickets_are_data() {
    // 3 settings and a WINDOW_UPDATE behind two tickets, before the client's preface and after it.
    let mut c = speaking(Protocols::Http2);
    c.server(1234).client(53);
    c.server(266).server(266).server(57).client(81).server(26).server(700);
    assert_eq!((summary(c.found()), c.rule.found.uncertain.len()), ((ms(2), ms(6), ms(5), 2), 0));
    let mut c = speaking(Protocols::Http2);
    c.server(1234).client(53).client(81).server(266).server(266).server(57).server(26);
    assert_eq!((summary(c.found()).2, c.rule.found.uncertain.len()), (ms(6), 0));
    // One ticket, or none.
    let mut c = speaking(Protocols::Http2);
    c.server(1234).client(53).server(266).server(62).client(81).server(26);
    assert_eq!((summary(c.found()), c.rule.found.uncertain.len()), ((ms(2), ms(5), ms(4), 1), 0));
    let mut c = speaking(Protocols::Http2);
    c.server(1234).client(53).server(57).client(81).server(26);
    assert_eq!((summary(c.found()), c.rule.found.uncertain.len()), ((ms(2), ms(4), ms(3), 0), 0));
}

#[test]
fn settings_as_long_as_a_short_ticket_leave_a_doubt() {
    let mut c = speaking(Protocols::Http2);
    c.server(1234).client(53).server(17 + 45).client(81).server(26);
    let found = c.found();
    assert_eq!((summary(found).2, found.tickets), (ms(3), 0));
    assert_eq!(found.uncertain, [Uncertain::TicketOrData]);
    // Two of them are tickets.
    let mut c = speaking(Protocols::Http2);
    c.server(1234).client(53).server(17 + 57).server(17 + 57).server(57).client(81);
    let found = c.found();
    assert_eq!((summary(found).2, found.tickets, found.uncertain.len()), (ms(5), 2, 0));
}

#[test]
fn a_second_ticket_that_acknowledges_the_request_is_one_too() {
    let mut c = case(false, false);
    c.server(1234).client(53);
    let finished = c.sent[0];
    c.client(400).server_acking(266, finished).server(266).server(700);
    let found = c.found();
    assert_eq!((summary(found).2, found.tickets, found.uncertain.len()), (ms(6), 2, 0));
}

#[test]
fn a_server_that_may_speak_first_leaves_a_doubt() {
    // A line behind two tickets; a line alone, for which the client waited.
    let mut c = speaking(Protocols::None);
    c.server(1234).client(53).server(250).server(250).server(58).client(40).server(60);
    let found = c.found();
    assert_eq!(
        (summary(found).2, &found.uncertain[..]),
        (ms(5), &[Uncertain::ServerSpeaksFirst][..])
    );
    let mut c = speaking(Protocols::None);
    c.server(1234).client(53).server(58).client(40).server(60);
    assert_eq!(c.found().uncertain, [Uncertain::ServerSpeaksFirst]);
    // Not where the client's protocol begins with the client.
    let mut c = speaking(Protocols::Others);
    c.server(1234).client(53).server(58).client(40).server(60);
    assert_eq!((summary(c.found()).2, c.rule.found.uncertain.len()), (ms(5), 0));
}

#[test]
fn a_server_that_pads_leaves_a_doubt() {
    let mut c = case(false, false);
    c.server(1234).client(53).server(529).server(529).client(400).server(529);
    let found = c.found();
    assert_eq!((summary(found).2, &found.uncertain[..]), (ms(6), &[Uncertain::TicketOrData][..]));
}
