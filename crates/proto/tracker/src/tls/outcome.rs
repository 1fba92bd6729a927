//! What a handshake comes to once its last byte is read: the rule's findings, or in their place what
//! decryption told.

use units::Time;

use super::decrypt::Decryption;
use super::handshake::{MAX_ALERTS, Stage};
use super::rule13::of_the_rule;
use super::{Handshake, Mark};
use crate::record::{AlertFacts, Decrypted, EarlyData, KeyUse};
use crate::side::{Pair, Sender};

impl Handshake {
    /// Decides what is still open; the facts are then complete.
    pub(crate) fn close(&mut self) {
        let found = match &mut self.stage {
            Stage::Rule(rule) => {
                rule.close();
                std::mem::take(&mut rule.found)
            }
            Stage::Hellos(found) => std::mem::take(&mut **found),
            _ => return,
        };
        let facts = &mut self.facts;
        facts.early_data_sent = found.early_first;
        facts.early_data_records = found.early_records;
        facts.early_data_bytes = found.early_bytes;
        if let Some(outcome) = found.early_data {
            facts.early_data = outcome;
        }
        if let Some(finished) = found.client_finished {
            facts.server_flight_len = finished.server_bytes;
        }
        facts.client_finished = facts.client_finished.or(found.client_finished.map(|r| r.end));
        facts.server_flight_end = facts.server_flight_end.or(found.server_flight_end);
        facts.server_finished = facts.server_finished.or(found.server_flight_end);
        facts.tickets = facts.tickets.saturating_add(found.tickets);
        facts.refused = found.refused;
        let accepted = facts.early_data == EarlyData::Accepted;
        let early = found.early_first.filter(|_| accepted);
        let early = early.map(|at| Mark { at, acked: 0, traffic: Pair::default() });
        self.client_data = early.or(found.client_data.map(|record| record.begin));
        self.server_data = found.server_data;
        for (at, sender) in found.alerts.iter().flatten() {
            self.encrypted_alert(*at, *sender);
        }
        self.uncertain.extend(found.uncertain);
        if let Some(keys) = self.decryption.take() {
            self.take_truth(*keys);
        }
    }

    /// Adds an alert whose content is hidden.
    fn encrypted_alert(&mut self, at: Time, sender: Sender) {
        let alerts = &mut self.facts.alerts;
        if alerts.len() < MAX_ALERTS {
            let from_client = sender == Sender::Client;
            alerts.push(AlertFacts { at, from_client, level: None, description: None, name: None });
            alerts.sort_by_key(|alert| alert.at);
        }
    }

    /// Puts what the keys told in the place of what the rule found.
    fn take_truth(&mut self, keys: Decryption) {
        let Some(truth) = keys.into_truth() else {
            self.facts.keys = KeyUse::DoNotFit;
            return;
        };
        if !truth.fits {
            return;
        }
        let facts = &mut self.facts;
        facts.keys = KeyUse::Fit;
        let at = |mark: Option<Mark>| mark.map(|mark| mark.at);
        let before_hello = facts.early_data_sent.map(|at| Mark { at, ..Mark::default() });
        // Early data that the rule counted before the ServerHello is what it says: the order shows it.
        let early_first = truth.early_first.or(before_hello.filter(|_| truth.early_accepted));
        let early = match (before_hello, early_first) {
            (Some(one), Some(other)) if one.at < other.at => Some(one),
            (_, other) => other,
        };
        let client_data = early.filter(|_| truth.early_accepted).or(truth.client_data);
        let finished = truth.client_finished.map(|record| record.end);
        let reported: [Option<Time>; 3] = [finished, at(client_data), at(truth.server_data)];
        let by_rule = [facts.client_finished, at(self.client_data), at(self.server_data)];
        facts.decrypted = Some(Decrypted {
            client_finished: finished,
            client_data: at(client_data),
            server_data: at(truth.server_data),
            rule_agrees: reported == by_rule,
        });
        facts.client_finished = finished;
        facts.server_finished = truth.server_finished;
        facts.server_flight_end = truth.server_finished;
        facts.server_flight_len = truth.client_finished.map_or(0, |record| record.server_bytes);
        facts.certificate_requested = truth.certificate_requested;
        facts.tickets = truth.tickets;
        facts.refused = false;
        facts.alpn = truth.alpn.or(facts.alpn.take());
        if facts.early_data != EarlyData::NotOffered && truth.server_finished.is_some() {
            let accepted = truth.early_accepted;
            facts.early_data = if accepted { EarlyData::Accepted } else { EarlyData::Rejected };
        }
        let plain = facts.alerts.iter().filter(|alert| alert.level.is_some()).copied();
        let mut alerts: Vec<AlertFacts> = plain.chain(truth.alerts).collect();
        alerts.sort_by_key(|alert| alert.at);
        alerts.truncate(MAX_ALERTS);
        facts.alerts = alerts;
        self.client_data = client_data;
        self.server_data = truth.server_data;
        self.uncertain.retain(|reason| !of_the_rule(*reason));
    }
}
