//! From what the layers below count to what is shown.

use tcpio::Stack;

use crate::metrics::TcpFigures;

/// What our TCP counts.
pub(crate) fn of(stack: &Stack) -> TcpFigures {
    let counters = stack.counters();
    TcpFigures {
        retransmissions: counters.retransmissions,
        half_open_with_data: counters.half_open_with_data as u64,
        half_open_plain: counters.half_open_plain as u64,
        syn_cookies: counters.syn_cookies_sent,
        syn_data_refused: counters.syn_data_refused,
        black_holes: counters.black_holes,
        opened_without_data: counters.opened_without_data,
        syn_data_over_rate: counters.syn_data_over_rate,
        half_open_reset: counters.half_open_reset as u64,
        orphans: counters.orphans as u64,
        orphans_ended: counters.orphans_ended,
        receive_held: counters.receive_held as u64,
        send_held: counters.send_held as u64,
        connections: counters.connections as u64,
    }
}
