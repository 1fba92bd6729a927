//! `wiretax observe tickets`: how long session tickets should live, by records that were written before.

use export::Records;
use fault::{Fault, OrProblem, Problem};
use observe::tickets::{Bounds, Tickets, Visit};

use crate::exit::{Exit, Outcome};
use crate::observe::args::TicketArgs;
use crate::output::{say_json, say_text, terminal_width};

/// Prints how long session tickets should live, by the records.
pub fn tickets(args: &TicketArgs) -> Outcome {
    let mut tickets = Tickets::new(Bounds::default());
    for record in Records::open(&args.records, args.time.unwrap_or_default())? {
        if let Some(visit) = Visit::of_record(&record?) {
            tickets.take(&visit);
        }
    }
    tickets.settle();
    let answer = tickets.answer();
    if answer.handshakes == 0 {
        let what = "the records have no handshake that completed";
        let remedy = "give other records, or a longer time";
        return Err(Problem::new(Fault::Measurement, what).with_remedy(remedy));
    }
    match args.json.json {
        true => say_json(&(serde_json::to_string_pretty(&answer).blame(Fault::Results)? + "\n"))?,
        false => say_text(&answer.text(terminal_width()))?,
    }
    Ok(Exit::Done)
}
