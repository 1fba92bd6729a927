//! Requests of HTTP/2, shared out among a worker's connections.

use std::collections::VecDeque;

use crate::connection::{Slot, Step, Tools};
use crate::schedule::Arrivals;
use crate::tally::Tally;
use crate::worker::Worker;

/// Requests sent in a row before the events are looked at again.
const BURST: usize = 1024;

/// What is to be requested, and by which connections.
#[derive(Debug)]
pub(super) struct Requests {
    /// An open loop's.
    plan: Option<Arrivals>,
    /// A closed loop's: how many are left, if that is bounded.
    budget: Option<u64>,
    /// When those were due that are to be sent again.
    again: VecDeque<u64>,
    /// Connections with room, each once: they take turns.
    ready: VecDeque<usize>,
    /// Connections to which something was added.
    touched: Vec<usize>,
}

impl Requests {
    pub(super) fn new(plan: Option<Arrivals>, budget: Option<u64>, slots: usize) -> Requests {
        Requests {
            budget: budget.filter(|_| plan.is_none()),
            plan,
            again: VecDeque::new(),
            ready: VecDeque::with_capacity(slots),
            touched: Vec::with_capacity(slots),
        }
    }

    pub(super) fn plan(&self) -> Option<&Arrivals> {
        self.plan.as_ref()
    }

    /// When those were due that wait to be sent again.
    pub(super) fn waiting(&self) -> &[u64] {
        // They are made contiguous where they are added.
        self.again.as_slices().0
    }

    /// No request is sent any more.
    pub(super) fn are_over(&self) -> bool {
        match &self.plan {
            Some(plan) => plan.peek().is_none() && self.again.is_empty(),
            None => self.budget == Some(0),
        }
    }

    /// When the next one is due that a connection can take.
    pub(super) fn next_due(&self) -> Option<u64> {
        let plan = self.plan.as_ref()?;
        if self.ready.is_empty() {
            return None;
        }
        self.again.front().copied().or_else(|| plan.peek())
    }

    fn take_due(&mut self, now: u64) -> Option<u64> {
        if let Some(due) = self.again.pop_front() {
            return Some(due);
        }
        let plan = self.plan.as_mut()?;
        plan.peek().filter(|due| *due <= now)?;
        plan.take()
    }

    /// Takes one from a closed loop's.
    fn take_budget(&mut self) -> bool {
        match &mut self.budget {
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
            None => true,
        }
    }

    /// Gives one back that the server has not looked at.
    fn give_back(&mut self, due: u64) {
        if self.plan.is_some() {
            self.again.push_back(due);
            self.again.make_contiguous();
        } else if let Some(left) = &mut self.budget {
            *left += 1;
        }
    }
}

impl Worker<'_> {
    /// Hands out what is due of an open loop. Says whether there is more.
    pub(super) fn share_out(&mut self, now: u64) -> bool {
        let over = self.is_over(now);
        let Some(requests) = &mut self.requests else { return false };
        if over {
            self.end_idle();
            return false;
        }
        if requests.plan.is_none() {
            return false;
        }
        let mut more = true;
        for _ in 0..BURST {
            let Some(slot) = requests.ready.pop_front() else {
                more = false;
                break;
            };
            let Some(place) = self.slots.get_mut(slot) else { continue };
            place.queued = false;
            if !place.has_room() {
                continue;
            }
            let Some(due) = requests.take_due(now) else {
                place.queued = true;
                requests.ready.push_front(slot);
                more = false;
                break;
            };
            place.request(due, now, &self.tools, &mut self.tally);
            requests.touched.push(slot);
            if place.has_room() {
                place.queued = true;
                requests.ready.push_back(slot);
            }
        }
        let mut touched = std::mem::take(&mut requests.touched);
        // Of a connection that was given several, all go out at once.
        touched.sort_unstable();
        touched.dedup();
        for slot in touched.drain(..) {
            self.send(slot, false);
        }
        if let Some(requests) = &mut self.requests {
            requests.touched = touched;
        }
        more
    }

    /// Ends the connections that have nothing more to do.
    fn end_idle(&mut self) {
        for slot in 0..self.slots.len() {
            self.send(slot, true);
        }
    }

    /// Goes on with a connection of HTTP/2 on which something has happened: a closed loop sends the next
    /// requests.
    pub(super) fn go_on(&mut self, slot: usize) {
        if self.requests.is_none() {
            return;
        }
        let now = self.tools.now();
        let over = self.is_over(now);
        let Some(requests) = &mut self.requests else { return };
        let Some(place) = self.slots.get_mut(slot) else { return };
        for due in place.take_unprocessed() {
            requests.give_back(due);
        }
        if requests.plan.is_none() {
            while !over && place.has_room() && requests.take_budget() {
                place.request(now, now, &self.tools, &mut self.tally);
            }
        } else if place.has_room() && !place.queued {
            place.queued = true;
            requests.ready.push_back(slot);
        }
        self.send(slot, over);
    }

    fn send(&mut self, slot: usize, over: bool) {
        let Some(place) = self.slots.get_mut(slot) else { return };
        let step = place.send_requests(slot as u64, over, &self.tools, &mut self.tally);
        if !matches!(step, Step::Wait) {
            self.follow(slot, step);
        }
    }

    /// A connection has failed: what was under way on it is lost, longer than until `until` if it was given up.
    /// One that has carried nothing takes a request with it, so that a bounded run ends.
    pub(super) fn lose_connection(&mut self, slot: usize, until: Option<u64>) {
        let now = self.tools.now();
        let Some(requests) = &mut self.requests else { return };
        let Some(place) = self.slots.get_mut(slot) else { return };
        lose(place, requests, until, now, &self.tools, &mut self.tally);
    }
}

fn lose(
    place: &mut Slot,
    requests: &mut Requests,
    until: Option<u64>,
    now: u64,
    tools: &Tools<'_>,
    tally: &mut Tally,
) {
    for due in place.take_unprocessed() {
        requests.give_back(due);
    }
    if !place.has_carried() && tools.options.count.is_some() {
        if requests.plan.is_none() {
            if requests.budget.is_some() && requests.take_budget() {
                tally.request_lost();
            }
        } else if let Some(due) = requests.take_due(now) {
            tally.request_lost();
            if until.is_some() {
                tally.never_started(due, now, 1);
            }
        }
    }
    if until.is_some() {
        place.lose_requests(until, true, tally);
    }
}
