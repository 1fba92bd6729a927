//! Windows, priorities, and who waits for whom.

use std::time::Duration;

use tls::Version;
use units::Time;
use web::{Bottleneck, ConnectPlan, Finish, Priority, Protocol, Request, Settings, Stalled, What};

use crate::common::*;

/// Reads a whole body through windows of `bytes`, and returns the server's record of it.
async fn through(protocol: Protocol, settings: Settings) -> web::StreamRecord {
    let server = serve(|_| {});
    let plan = ConnectPlan { settings, ..plan(&server, protocol) };
    let connection = client(Version::Tls13).connect(&plan).await.unwrap();
    let outcome = get(&connection, "/3000000").await;
    assert_eq!(outcome.body, 3_000_000, "{:?}", outcome.failure);
    server.log().take_streams().pop().unwrap()
}

#[test]
fn small_windows_stall_and_large_ones_do_not() {
    on_a_node(async {
        for protocol in WINDOWED {
            let small = Settings::OFF.with_windows(65_536);
            let record = through(protocol, small).await;
            assert_eq!(record.finish, Finish::Complete);
            // The client opens the window again when half of it is read: 3 MB take dozens of them.
            let Stalled { time, count, intervals } = &record.stalled;
            assert!(*count > 10 && *time > Duration::ZERO, "{protocol}: {record:?}");
            let sum: Duration =
                intervals.iter().map(|stall| stall.to.saturating_since(stall.from)).sum();
            assert!(sum <= *time);
        }
        for protocol in WINDOWED.into_iter().chain([Protocol::Http3]) {
            let record = through(protocol, Settings::OFF).await;
            assert_eq!(record.stalled, Stalled::default(), "{record:?}");
        }
    });
}

#[test]
fn a_window_shut_while_packets_wait_at_the_bottleneck_does_not_stall() {
    on_a_node(async {
        for protocol in WINDOWED {
            let server = serve(|plan| plan.bottleneck = Some(Bottleneck::new(conn::now)));
            let settings = Settings::OFF.with_windows(65_536);
            let plan = ConnectPlan { settings, ..plan(&server, protocol) };
            let connection = client(Version::Tls13).connect(&plan).await.unwrap();
            assert_eq!(get(&connection, "/3000000").await.body, 3_000_000);
            let record = server.log().take_streams().pop().unwrap();
            assert_eq!(record.stalled, Stalled::default(), "{record:?}");
        }
    });
}

#[test]
fn uploads_through_small_windows_stall_and_through_large_ones_do_not() {
    on_a_node(async {
        let windows = [(65_536, true), (10_000_000, false)];
        let cases = WINDOWED.into_iter().flat_map(|protocol| windows.map(|each| (protocol, each)));
        for (protocol, (window, stalls)) in cases {
            let server = serve(|plan| plan.settings = plan.settings.with_windows(window));
            let stalled = upload(&plan(&server, protocol)).await;
            assert_eq!(stalled.count > 0, stalls, "{protocol}: {stalled:?}");
            assert_eq!(stalled.time > Duration::ZERO, stalls, "{protocol}: {stalled:?}");
        }
    });
}

/// That HTTP/3's do stall by a small window is a matter of round trips: the lab has some.
#[test]
fn uploads_do_not_stall_while_packets_wait_at_the_bottleneck() {
    on_a_node(async {
        for protocol in WINDOWED.into_iter().chain([Protocol::Http3]) {
            let server = serve(|plan| plan.settings = plan.settings.with_windows(65_536));
            let bottleneck = Some(Bottleneck::new(conn::now));
            let plan = ConnectPlan { bottleneck, ..plan(&server, protocol) };
            assert_eq!(upload(&plan).await, Stalled::default(), "{protocol}");
        }
    });
}

#[test]
fn what_has_no_window_or_a_large_one_does_not_stall_uploads() {
    on_a_node(async {
        for protocol in [Protocol::Http1Clear, Protocol::Http1, Protocol::Http3] {
            let server = serve(|plan| plan.settings = plan.settings.with_windows(10_000_000));
            assert_eq!(upload(&plan(&server, protocol)).await, Stalled::default(), "{protocol}");
        }
    });
}

/// Uploads 3 MB after the server's SETTINGS are here: how long it stalled.
async fn upload(plan: &ConnectPlan) -> Stalled {
    let connection = client(Version::Tls13).connect(plan).await.unwrap();
    get(&connection, "/1").await;
    let outcome = connection.request(Request::post(NAME, "/1", 3_000_000)).finish().await;
    assert_eq!(outcome.status(), Some(200), "{outcome:?}");
    outcome.stalled
}

/// Nor is a look, or a reading of quinn's counters, taken for something to send.
#[test]
fn what_fits_into_the_first_flight_waits_for_nothing_below() {
    on_a_node(async {
        for (protocol, version) in KINDS {
            let idle = Some(Bottleneck::new(|| Time::ZERO));
            let server = serve(|plan| {
                plan.bottleneck = idle.clone();
                plan.sample = Some(Duration::from_millis(1));
            });
            let plan = ConnectPlan { bottleneck: idle, ..plan(&server, protocol) };
            let connection = client(version).connect(&plan).await.unwrap();
            // Only who sends a body is watched.
            assert_eq!(get(&connection, "/100").await.tcp_stalls, None, "{protocol}");
            let upload = connection.request(Request::post(NAME, "/1", 100)).finish().await;
            assert_eq!(upload.tcp_stalls, Some(Vec::new()), "{protocol}: {upload:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
            drop(connection);
            let log = server.log();
            let record = until("record", || log.take_connections().pop()).await;
            assert_eq!(record.tcp_stalls, Some(Vec::new()), "{protocol}: {record:?}");
        }
    });
}

#[test]
fn one_stalled_stream_does_not_stop_the_others() {
    on_a_node(async {
        for protocol in WINDOWED.into_iter().chain([Protocol::Http3]) {
            let server = serve(|_| {});
            let settings = Settings { stream_window: 65_535, ..Settings::default() };
            let plan = ConnectPlan { settings, ..plan(&server, protocol) };
            let connection = client(Version::Tls13).connect(&plan).await.unwrap();
            // Nobody takes this one's events.
            let mut unread = connection.request(Request::get(NAME, "/10000000"));
            let counters = server.counters();
            until("stop", || (counters.snapshot().body_bytes_sent >= 65_535).then_some(())).await;
            assert_eq!(get(&connection, "/1000000").await.body, 1_000_000, "{protocol}");
            let sent = counters.snapshot().body_bytes_sent - 1_000_000;
            assert!(sent < 10_000_000, "{protocol}: {sent}");
            // It goes on as soon as somebody does.
            let mut body = 0;
            while let Some(event) = unread.next().await {
                if let What::Data(bytes) = event.what {
                    body += bytes;
                }
            }
            assert_eq!(body, 10_000_000, "{protocol}");
            drop(connection);
            let log = server.log();
            let record = until("record", || log.take_connections().pop()).await;
            assert!(record.stalled > Duration::ZERO, "{protocol}");
            let streams = log.take_streams();
            let stalls = |path: &str| {
                let own = streams.iter().find(|stream| stream.path == path);
                own.map(|stream| stream.stalled.count)
            };
            assert!(stalls("/10000000").is_some_and(|stalls| stalls > 0), "{protocol}");
        }
    });
}

#[test]
fn a_client_that_does_not_read_holds_little_and_is_given_up() {
    on_a_node(async {
        for (protocol, version) in KINDS {
            let server = serve(|plan| {
                plan.timeouts.stall = Duration::from_millis(300);
                plan.timeouts.idle = Duration::from_millis(600);
            });
            let settings = Settings::default().with_windows(100_000);
            let plan = ConnectPlan { settings, ..plan(&server, protocol) };
            let connection = client(version).connect(&plan).await.unwrap();
            let unread = connection.request(Request::get(NAME, "/500000000"));
            let log = server.log();
            let record = until("record", || log.take_connections().pop()).await;
            let sent = record.bytes_sent;
            assert!(sent < 100_000_000, "{protocol}: {sent} bytes were sent");
            assert!(record.error.is_some(), "{protocol}");
            drop(unread);
        }
    });
}

#[test]
fn urgent_responses_overtake_others() {
    on_a_node(async {
        for protocol in WINDOWED {
            let server = serve(|plan| plan.tcp.not_sent_low_water = Some(16_384));
            let settings = Settings::OFF;
            let mut plan = ConnectPlan { settings, ..plan(&server, protocol) };
            plan.tcp.receive_buffer = Some(65_536);
            let connection = client(Version::Tls13).connect(&plan).await.unwrap();
            let ask = |urgency| {
                let priority = Some(Priority { urgency, incremental: false });
                connection.request(Request { priority, ..Request::get(NAME, "/4000000") })
            };
            // Begun one after the other, the least urgent first.
            let exchanges: Vec<_> = [7, 5, 5, 0].into_iter().map(ask).collect();
            let finished = exchanges.into_iter().map(|exchange| exchange.finish());
            let ends: Vec<_> = futures_util::future::join_all(finished).await;
            let ends: Vec<_> = ends.iter().map(|outcome| outcome.ended.unwrap()).collect();
            assert!(ends[3] < ends[1] && ends[3] < ends[2], "{ends:?}");
            assert!(ends[1] < ends[0] && ends[2] < ends[0], "{ends:?}");
            // Round robin within an urgency: both were begun before either was done.
            let streams = server.log().take_streams();
            let equal: Vec<_> = streams.iter().filter(|stream| stream.urgency == 5).collect();
            assert!(
                equal[0].first_data < equal[1].finished && equal[1].first_data < equal[0].finished
            );
        }
    });
}
