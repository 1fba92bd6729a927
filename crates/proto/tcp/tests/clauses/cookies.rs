//! Cookies of both kinds, and tables that are full (RFC 7413 §4.1, RFC 4987 §3.6).

use tcp::*;
use wire::tcp::{FastOpen, Flags, OptionList};

use super::harness::*;

fn fast_open(cookie: &[u8]) -> OptionList<'_> {
    OptionList { fast_open: Some(FastOpen { cookie, experimental: false }), ..mss(1460) }
}

fn cookie_of(sent: &Sent) -> Option<Vec<u8>> {
    sent.options().fast_open.map(|option| option.cookie.to_vec())
}

fn with_cookies() -> Bench {
    Bench::listening(Config::default(), ListenOptions { cookies: true, ..everything() })
}

/// What a request (RFC 7413 §4.1.2) from the bench's peer is granted.
fn granted(bench: &mut Bench) -> Vec<u8> {
    let port = bench.peer.port();
    bench.peer.set_port(39_999);
    let sent = bench.give(bench.made_syn(fast_open(&[])));
    bench.peer.set_port(port);
    cookie_of(&sent[0]).expect("a cookie")
}

/// RFC 7413 §4.1.1, §4.1.2: a request is granted 8 bytes, the same for the same client and others for
/// another, and none from a listener without cookies.
#[test]
fn a_request_is_granted() {
    let mut bench = with_cookies();
    let cookie = granted(&mut bench);
    assert_eq!((cookie.len(), granted(&mut with_cookies())), (8, cookie.clone()));
    bench.peer = address("198.51.100.8:40000");
    assert_ne!(granted(&mut bench), cookie);
    let mut bench = Bench::listening(Config::default(), everything());
    let sent = bench.give(bench.made_syn(fast_open(&[])));
    assert_eq!(cookie_of(&sent[0]), None);
}

/// RFC 7413 §4.2.1: a SYN-ACK that is sent again has no cookie: the path may drop those that have.
#[test]
fn a_syn_ack_sent_again_has_no_cookie() {
    let mut bench = with_cookies();
    let first = bench.give(bench.made_syn(fast_open(&[])));
    let again = bench.wait(2000);
    let cookies = [&first[0], &again[0]].map(|one| cookie_of(one).is_some());
    assert_eq!(cookies, [true, false]);
}

/// RFC 7413 §4.2.2: a valid cookie validates the address: no limit before the handshake is over.
#[test]
fn a_valid_cookie_lifts_the_limit() {
    let mut bench = with_cookies();
    let cookie = granted(&mut bench);
    bench.give(bench.made_syn(fast_open(&cookie)).data(&[b'h'; 100]));
    bench.id = bench.endpoint.accept(bench.listener.unwrap());
    bench.write(&[b'w'; 9000]);
    let sent = bench.answer();
    assert_eq!(cookie_of(&sent[0]), None, "it has one");
    assert_eq!(sent.iter().map(|one| one.payload().len()).sum::<usize>(), 9000);
    assert_eq!(bench.endpoint.counters().fast_open_cookies_accepted, 1);
}

/// RFC 7413 §4.2.2: a cookie that is not ours makes the SYN an ordinary one, and the right one is
/// given.
#[test]
fn a_forged_cookie_makes_the_syn_ordinary() {
    let mut bench = with_cookies();
    let cookie = granted(&mut bench);
    let sent = bench.give(bench.made_syn(fast_open(&[9; 8])).data(&[1; 500]));
    assert_eq!(sent[0].segment().acknowledgment(), Some(IRS + 1));
    assert_eq!(cookie_of(&sent[0]), Some(cookie));
    assert_eq!(bench.endpoint.counters().fast_open_cookies_accepted, 0);
}

/// RFC 7413 §4.1.3, §4.2.1: the client asks, keeps what it is given, uses it, and not on a SYN sent
/// again.
#[test]
fn a_client_asks_for_a_cookie_and_uses_it() {
    let asking = || ConnectOptions {
        fast_open_cookie: true,
        syn_data: b"hello".to_vec(),
        ..ConnectOptions::default()
    };
    let (mut bench, syn) = Bench::connecting(Config::default(), asking());
    assert_eq!(cookie_of(&syn), Some(vec![]));
    bench.at(1010);
    bench.give(bench.made_syn_ack(6, fast_open(b"cookies!")));
    bench.local.set_port(444);
    let syn = bench.connect(asking());
    assert_eq!(cookie_of(&syn), Some(b"cookies!".to_vec()));
    let again = bench.wait(2010).into_iter().find(|one| one.segment().source_port() == 444);
    assert_eq!(again.map(|one| (cookie_of(&one), one.payload().len())), Some((None, 0)));
    // For another destination there is none.
    bench.peer = address("198.51.100.8:443");
    assert_eq!(cookie_of(&bench.connect(asking())), Some(vec![]));
}

/// A cookie of other than 4 to 16 bytes, or of an odd number, is none (RFC 7413 §4.1.1): the server counts as one
/// without Fast Open.
#[test]
fn a_malformed_cookie_is_not_kept() {
    for len in 1..=17 {
        let (mut bench, _) = Bench::connecting(Config::default(), asking(b""));
        let syn_ack = bench.made_syn_ack(1, fast_open(&b"a cookie too long"[..len]));
        bench.give(syn_ack);
        bench.local.set_port(444);
        let kept = [4, 6, 8, 10, 12, 14, 16].contains(&len).then_some(len);
        assert_eq!(cookie_of(&bench.connect(asking(b""))).map(|it| it.len()), kept, "{len}");
    }
}

/// One of those in place of a good cookie changes nothing if the data were taken.
#[test]
fn a_malformed_cookie_replaces_none() {
    let mut bench = with_a_cookie();
    bench.give(bench.made_syn_ack(6, fast_open(b"other")));
    bench.local.set_port(445);
    assert_eq!(cookie_of(&bench.connect(asking(b"hello"))), Some(b"cookies!".to_vec()));
}

/// RFC 7413 §4.1.3.1: a request that is answered without a cookie is not repeated for a while. One that was lost says
/// nothing.
#[test]
fn a_request_without_an_answer_is_a_refusal() {
    for lost in [false, true] {
        let (mut bench, _) = Bench::connecting(Config::default(), asking(b""));
        if lost {
            bench.wait(2000);
        }
        bench.give(bench.made_syn_ack(1, mss(1460)));
        bench.local.set_port(444);
        assert_eq!(cookie_of(&bench.connect(asking(b""))).is_some(), lost);
        bench.at(3_602_000);
        bench.local.set_port(445);
        assert!(cookie_of(&bench.connect(asking(b""))).is_some());
    }
}

/// A server does not take a cookie of an odd number of bytes for a request either.
#[test]
fn a_malformed_request_is_granted_nothing() {
    let mut bench = with_cookies();
    let sent = bench.give(bench.made_syn(fast_open(&[9; 7])));
    assert_eq!(cookie_of(&sent[0]), None);
}

/// A cookie that nobody asked for is not kept.
#[test]
fn an_unsolicited_cookie_is_not_kept() {
    let (mut bench, _) = Bench::connecting(Config::default(), ConnectOptions::default());
    bench.give(bench.made_syn_ack(1, fast_open(b"cookies!")));
    bench.local.set_port(444);
    assert_eq!(cookie_of(&bench.connect(asking(b""))), Some(vec![]));
}

fn asking(data: &[u8]) -> ConnectOptions {
    ConnectOptions { fast_open_cookie: true, syn_data: data.to_vec(), ..ConnectOptions::default() }
}

/// A client that has a cookie, whose next SYN has it and 5 bytes. It left at 1000 ms.
fn with_a_cookie() -> Bench {
    let (mut bench, _) = Bench::connecting(Config::default(), asking(b""));
    bench.give(bench.made_syn_ack(1, fast_open(b"cookies!")));
    bench.local.set_port(444);
    let syn = bench.connect(asking(b"hello"));
    assert_eq!((cookie_of(&syn), syn.payload()), (Some(b"cookies!".to_vec()), &b"hello"[..]));
    bench.events();
    bench
}

/// Whether the next SYN to the peer tries Fast Open: with the option and data, or with neither.
fn tries(bench: &mut Bench) -> bool {
    bench.local.set_port(bench.local.port() + 1);
    let syn = bench.connect(asking(b"hello"));
    assert_eq!(cookie_of(&syn).is_some(), !syn.payload().is_empty());
    assert_eq!(bench.info().syn_data == SynData::BlackHole, syn.payload().is_empty());
    bench.endpoint.abort(bench.now, bench.id.unwrap());
    !syn.payload().is_empty()
}

/// RFC 7413 §4.1.3.1: a server that does not take the data and gives no cookie is not tried again for
/// `black_hole_memory`. Its other ports are.
#[test]
fn a_refusal_is_remembered_by_port() {
    let mut bench = with_a_cookie();
    bench.at(1010);
    bench.give(bench.made_syn_ack(1, mss(1460)));
    assert_eq!(bench.info().syn_data, SynData::Refused);
    assert!(!tries(&mut bench));
    bench.at(3_601_009);
    assert!(!tries(&mut bench));
    bench.peer.set_port(80);
    assert!(tries(&mut bench));
    bench.peer.set_port(40_000);
    bench.at(3_601_010);
    assert!(tries(&mut bench));
}

/// A server that gives another cookie wants that one: it is no refusal (RFC 7413 §4.2.2).
#[test]
fn another_cookie_is_no_refusal() {
    let mut bench = with_a_cookie();
    bench.give(bench.made_syn_ack(1, fast_open(b"another!")));
    assert!(tries(&mut bench));
}

/// A server that has taken data before may be busy: it is tried again soon.
#[test]
fn a_refusal_after_success_is_short() {
    let mut bench = with_a_cookie();
    bench.give(bench.made_syn_ack(6, mss(1460)));
    bench.local.set_port(445);
    bench.connect(asking(b"hello"));
    bench.give(bench.made_syn_ack(1, mss(1460)));
    assert!(!tries(&mut bench));
    bench.at(11_000);
    assert!(tries(&mut bench));
}

/// RFC 7413 §4.1.3.1: a hard ICMP error is a refusal, and so is no answer at all.
#[test]
fn icmp_errors_and_silence_are_refusals() {
    let mut bench = with_a_cookie();
    let reported = IcmpError {
        local: bench.local,
        remote: bench.peer,
        sequence: units::SeqNumber(bench.iss),
        kind: IcmpKind::Prohibited,
    };
    bench.endpoint.report_icmp_error(bench.now, reported).unwrap();
    assert!(!tries(&mut bench));
    let mut bench = with_a_cookie();
    bench.wait(200_000);
    assert!(bench.events().contains(&EventKind::Closed(CloseReason::TimedOut)));
    assert!(!tries(&mut bench));
}

/// Without cookies a refusal says nothing: the next SYN has its data.
#[test]
fn a_refusal_of_data_without_a_cookie_is_not_remembered() {
    let options = || ConnectOptions { syn_data: b"hello".to_vec(), ..ConnectOptions::default() };
    let (mut bench, _) = Bench::connecting(Config::default(), options());
    bench.give(bench.made_syn_ack(1, mss(1460)));
    bench.local.set_port(444);
    assert_eq!(bench.connect(options()).payload(), b"hello");
}

/// A flood of ordinary SYNs beyond `max_half_open_plain`, from one address each.
fn flooded() -> Bench {
    let config = Config { max_half_open_plain: 3, ..Config::default() };
    let mut bench = Bench::listening(config, everything());
    let honest = bench.peer;
    for host in 0..10u8 {
        bench.peer = address(&format!("203.0.113.{host}:5000"));
        assert_eq!(bench.give(bench.made_syn(mss(1460))).len(), 1);
    }
    bench.peer = honest;
    assert_eq!(bench.endpoint.counters().half_open_plain, 3);
    assert_eq!(bench.endpoint.counters().syn_cookies_sent, 7);
    bench
}

/// RFC 4987 §3.6: past the table an honest client gets through, and data go both ways.
#[test]
fn a_client_gets_through_a_flood_by_a_syn_cookie() {
    let mut bench = flooded();
    let sent = bench.syn(mss(1400), &[]);
    assert_eq!(shown(&sent), ["1000 S. 0+0 ack 1"]);
    let options = sent[0].options();
    assert_eq!(options, mss(1460), "nothing that would have to be remembered");
    bench.at(1010);
    bench.give(bench.made().data(b"request"));
    bench.id = bench.endpoint.accept(bench.listener.unwrap());
    assert_eq!((bench.state(), bench.read()), (State::Established, b"request".to_vec()));
    let reply = bench.write(&[b'w'; 3000]);
    // The MSS that the cookie can tell below 1400.
    assert_eq!(reply[0].to_string(), "1010 . 1+1380 ack 8");
    bench.give(bench.acking(3001).seq(8).flags(Flags::FIN));
    assert_eq!((bench.state(), bench.info().bytes_acked), (State::CloseWait, 3000));
}

/// RFC 4987 §3.6: a wrong cookie, another client's, or one that is old is answered by RST.
#[test]
fn only_a_true_syn_cookie_is_taken() {
    let mut bench = flooded();
    bench.syn(mss(1460), &[]);
    bench.at(1010);
    assert_eq!(bench.reply(bench.acking(2)), ["1010 R 2+0"]);
    assert_eq!(bench.reply(bench.made().seq(2)), ["1010 R 1+0"]);
    let mine = bench.peer;
    bench.peer.set_port(40_001);
    assert_eq!(bench.reply(bench.made()), ["1010 R 1+0"]);
    bench.peer = mine;
    bench.at(200_000);
    assert_eq!(bench.reply(bench.made()), ["200000 R 1+0"]);
    assert_eq!(bench.endpoint.counters().syn_cookies_accepted, 0);
}

/// SYNs with data past `max_half_open_with_data` are answered as ordinary ones.
#[test]
fn past_the_table_a_syn_with_data_is_ordinary() {
    let config = Config { max_half_open_with_data: 2, ..Config::default() };
    let mut bench = Bench::listening(config, ListenOptions { cookies: true, ..everything() });
    let honest = bench.peer;
    let cookie = granted(&mut bench);
    for host in 0..3u8 {
        bench.peer = address(&format!("203.0.113.{host}:5000"));
        let sent = bench.give(bench.made_syn(mss(1460)).data(b"flood"));
        assert_eq!(sent.len(), usize::from(host == 2), "the third at once");
    }
    let counters = *bench.endpoint.counters();
    assert_eq!((counters.half_open_with_data, counters.opened_without_data), (2, 1));
    // A valid cookie has its own right: its client is where it says.
    bench.peer = honest;
    assert!(bench.give(bench.made_syn(fast_open(&cookie)).data(b"hello")).is_empty());
    assert_eq!(bench.endpoint.counters().half_open_with_data, 3);
}

/// With the table full, a half-open connection whose SYN-ACK has had no answer for 3 s makes room.
#[test]
fn a_stale_half_open_connection_makes_room() {
    let config = Config { max_half_open_with_data: 1, ..Config::default() };
    for (at, evicted) in [(3999, 0), (4000, 1)] {
        let mut bench = Bench::listening(config.clone(), everything());
        bench.syn(mss(1460), b"stale");
        bench.wait(at);
        bench.peer.set_port(40_001);
        let sent = bench.give(bench.made_syn(mss(1460)).data(b"fresh"));
        assert_eq!(sent.len(), 1 - evicted);
        let counters = bench.endpoint.counters();
        assert_eq!(counters.half_open_evicted, evicted as u64, "at {at}");
        assert_eq!(counters.half_open_with_data, 1);
    }
}

/// Past `max_connections` no state is kept for a SYN, and no connection is begun.
#[test]
fn past_the_most_connections() {
    let config = Config { max_connections: 1, ..Config::default() };
    let mut bench = Bench::established_with(config, mss(1460));
    bench.peer.set_port(40_001);
    assert_eq!(bench.judge(&bench.made_syn(mss(1460))), Err(Ignored::NoRoom));
    assert_eq!(bench.sent().len(), 1);
    let error = bench.endpoint.connect(bench.now, bench.local, bench.peer, Default::default());
    assert_eq!(error, Err(ConnectError::TooMany(1)));
}
