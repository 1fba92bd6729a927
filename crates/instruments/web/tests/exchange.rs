//! Requests and responses over every protocol.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, DATE, ETAG, IF_NONE_MATCH};
use tls::Version;
use web::{
    Answer, ConnectPlan, Ended, Finish, Outcome, Priority, Protocol, Request, RequestHead, Tickets,
};

use crate::common::*;

fn assert_whole(outcome: &Outcome, length: u64) {
    assert!(outcome.failure.is_none(), "{outcome:?}");
    assert_eq!((outcome.status(), outcome.body), (Some(200), length));
    assert_eq!(outcome.digest, Some(web::digest(length)));
    let steps = [outcome.sent, outcome.answered, outcome.first_data, outcome.ended];
    let happened: Vec<_> = steps.into_iter().flatten().collect();
    assert!(happened.is_sorted(), "{outcome:?}");
    assert_eq!(outcome.first_data.is_some(), length > 0);
}

#[test]
fn bodies_of_all_sizes_come_whole_on_one_connection() {
    on_a_node(async {
        for (protocol, version) in KINDS {
            let server = serve(|_| {});
            let connection = connect(&server, protocol, version).await;
            let facts = connection.facts();
            assert_eq!(facts.protocol, protocol);
            let steps = [Some(facts.started), facts.connected, facts.secured, Some(facts.ready)];
            assert!(steps.into_iter().flatten().is_sorted(), "{facts:?}");
            let negotiated = facts.tls.as_ref().and_then(|tls| tls.version);
            assert_eq!(negotiated.unwrap_or(version), version);
            assert_eq!(negotiated.is_none(), protocol == Protocol::Http1Clear);
            for length in [0, 1, 100_000, 10_000_000] {
                let outcome = get(&connection, &format!("/{length}")).await;
                assert_whole(&outcome, length);
                let headers = &outcome.head.as_ref().unwrap().headers;
                assert_eq!(headers[CONTENT_LENGTH], length.to_string());
                assert_eq!(headers[CONTENT_TYPE], "image/png");
                assert!(headers.contains_key(DATE), "{protocol}");
            }
            assert_eq!(get(&connection, "/nothing").await.status(), Some(404));
            let counted = server.counters().snapshot();
            assert_eq!((counted.connections, counted.requests), (1, 5), "{protocol}");
            assert_eq!(counted.body_bytes_sent, 10_100_001);
        }
    });
}

#[test]
fn uploads_are_counted_and_answered() {
    on_a_node(async {
        for (protocol, version) in KINDS {
            let server = serve(|_| {});
            let connection = connect(&server, protocol, version).await;
            for upload in [0, 300_000] {
                let request = Request { digest: true, ..Request::post(NAME, "/100", upload) };
                let outcome = connection.request(request).finish().await;
                assert_whole(&outcome, 100);
                assert_eq!(outcome.uploaded.is_some(), upload > 0);
                assert!(outcome.uploaded <= outcome.answered);
            }
            assert_eq!(server.counters().snapshot().body_bytes_received, 300_000, "{protocol}");
            drop(connection);
            let streams = server.log().take_streams();
            assert_eq!(streams[1].received, 300_000);
            assert!(streams[1].uploaded.unwrap() <= streams[1].answered.unwrap());
        }
    });
}

#[test]
fn fifty_exchanges_at_once_on_one_connection() {
    on_a_node(async {
        for (protocol, version) in KINDS.into_iter().filter(|(each, _)| each.is_multiplexed()) {
            let server = serve(|_| {});
            let connection = connect(&server, protocol, version).await;
            let paths: Vec<_> = (0..50).map(|each| format!("/{}", each * 3000)).collect();
            let outcomes = join_all(paths.iter().map(|path| get(&connection, path))).await;
            for (each, outcome) in outcomes.iter().enumerate() {
                assert_whole(outcome, each as u64 * 3000);
            }
            assert_eq!(server.counters().snapshot().connections, 1, "{protocol}");
            assert_eq!(connection.active(), 0);
        }
    });
}

#[test]
fn http1_has_one_exchange_at_a_time() {
    on_a_node(async {
        let server = serve(|_| {});
        let connection = connect(&server, Protocol::Http1, Version::Tls13).await;
        assert_eq!(connection.max_concurrent(), Some(1));
        let (first, second) = tokio::join!(get(&connection, "/think"), get(&connection, "/1"));
        assert_whole(&first, 10);
        assert_eq!(second.failure.unwrap().name(), "busy");
        assert_whole(&get(&connection, "/7").await, 7);
    });
}

#[test]
fn what_the_client_has_is_not_sent_again() {
    on_a_node(async {
        for (protocol, version) in KINDS {
            let server = serve(|_| {});
            let connection = connect(&server, protocol, version).await;
            let fresh = get(&connection, "/cached").await;
            assert_whole(&fresh, 5000);
            let headers = fresh.head.unwrap().headers;
            assert_eq!(headers[CACHE_CONTROL], "max-age=60");
            let known = vec![(IF_NONE_MATCH, headers[ETAG].clone())];
            let request = Request { headers: known, ..Request::get(NAME, "/cached") };
            let outcome = connection.request(request).finish().await;
            assert_eq!((outcome.status(), outcome.body), (Some(304), 0), "{protocol}");
            assert!(outcome.failure.is_none());
            let other = vec![(IF_NONE_MATCH, HeaderValue::from_static("\"v0\""))];
            let request = Request { headers: other, ..Request::get(NAME, "/cached") };
            assert_eq!(connection.request(request).finish().await.body, 5000);
        }
    });
}

#[test]
fn the_second_connection_resumes_the_first() {
    on_a_node(async {
        for (protocol, version) in KINDS {
            if protocol == Protocol::Http1Clear {
                continue;
            }
            let server = serve(|_| {});
            let (client, tickets) = (client(version), Some(Tickets::new(4)));
            let plan = ConnectPlan { tickets: tickets.clone(), ..plan(&server, protocol) };
            for is_second in [false, true] {
                let connection = client.connect(&plan).await.unwrap();
                assert_whole(&get(&connection, "/100").await, 100);
                assert_eq!(connection.facts().resumed, Some(is_second), "{protocol} {version}");
            }
            let counted = server.counters().snapshot();
            assert_eq!((counted.full_handshakes, counted.resumed_handshakes), (1, 1));
            // Without tickets, in full again.
            let plan = ConnectPlan { tickets: None, ..plan };
            assert_eq!(client.connect(&plan).await.unwrap().facts().resumed, Some(false));
        }
    });
}

#[test]
fn the_preferred_protocol_is_negotiated() {
    on_a_node(async {
        let server = serve(|_| {});
        let both = vec![Protocol::Http2, Protocol::Http1];
        let offer = ConnectPlan { protocols: both, ..plan(&server, Protocol::Http2) };
        let connection = client(Version::Tls13).connect(&offer).await.unwrap();
        assert_eq!(connection.facts().alpn.as_deref(), Some("h2"));

        let only = |plan: &mut web::ServerPlan| {
            plan.tls.as_mut().unwrap().protocols = vec![Protocol::Http1];
        };
        let server = serve(only);
        let offer = ConnectPlan { address: server.addresses()[0], ..offer };
        let connection = client(Version::Tls13).connect(&offer).await.unwrap();
        assert_eq!(connection.facts().protocol, Protocol::Http1);
        let alone = plan(&server, Protocol::Http2);
        let failure = client(Version::Tls13).connect(&alone).await.unwrap_err();
        assert_eq!(failure.name(), "tls", "{failure}");
    });
}

#[test]
fn several_names_have_one_certificate_and_a_wrong_one_is_refused() {
    on_a_node(async {
        for (protocol, version) in KINDS {
            if protocol == Protocol::Http1Clear {
                continue;
            }
            let server = serve(|_| {});
            for name in [NAME, OTHER] {
                let plan = ConnectPlan { name: name.to_owned(), ..plan(&server, protocol) };
                let connection = client(version).connect(&plan).await.unwrap();
                assert_whole(&get(&connection, "/5").await, 5);
            }
            let name = "www.elsewhere.test".to_owned();
            let plan = ConnectPlan { name, ..plan(&server, protocol) };
            let failure = client(version).connect(&plan).await.unwrap_err();
            assert_eq!(failure.name(), "certificate", "{protocol} {version}: {failure}");
        }
    });
}

#[test]
fn the_peers_limit_makes_requests_wait() {
    on_a_node(async {
        for protocol in WINDOWED.into_iter().chain([Protocol::Http3]) {
            let server = serve(|plan| plan.settings.max_concurrent_streams = 3);
            let connection = connect(&server, protocol, Version::Tls13).await;
            // The peer's SETTINGS are here with the first response.
            assert_whole(&get(&connection, "/1").await, 1);
            if protocol.is_over_tcp() {
                assert_eq!(connection.max_concurrent(), Some(3));
            }
            let outcomes = join_all((0..12).map(|_| get(&connection, "/think"))).await;
            outcomes.iter().for_each(|outcome| assert_whole(outcome, 10));
            let mut changes: Vec<_> = server
                .log()
                .take_streams()
                .iter()
                .flat_map(|stream| [(stream.requested, 1), (stream.finished.unwrap(), -1)])
                .collect();
            changes.sort();
            let peak = changes.iter().scan(0, |now, (_, change)| {
                *now += change;
                Some(*now)
            });
            assert_eq!(peak.max(), Some(3), "{protocol}");
        }
    });
}

#[test]
fn a_server_that_stops_serves_what_is_under_way() {
    on_a_node(async {
        for (protocol, version) in KINDS {
            let server = serve(|_| {});
            let counters = server.counters();
            let connection = connect(&server, protocol, version).await;
            let stop = async {
                until("request", || (counters.snapshot().requests == 1).then_some(())).await;
                server.stop(PATIENCE).await
            };
            let (outcome, in_order) = tokio::join!(get(&connection, "/think"), stop);
            assert_whole(&outcome, 10);
            assert!(in_order, "{protocol}");
            let ended = connection.closed().await;
            assert!(matches!(ended, Ended::Closed | Ended::GoAway), "{protocol}: {ended:?}");
            let late = get(&connection, "/1").await;
            assert_eq!(late.failure.unwrap().name(), "broken", "{protocol}");
        }
    });
}

#[test]
fn a_server_that_is_dropped_breaks_off() {
    on_a_node(async {
        for (protocol, version) in KINDS {
            let server = serve(|_| {});
            // Data wait for a window all the while, and what closes the connection must not wait for them.
            let mut plan = plan(&server, protocol);
            plan.settings = plan.settings.with_windows(65_536);
            let connection = client(version).connect(&plan).await.unwrap();
            let mut exchange = connection.request(Request::get(NAME, "/50000000"));
            let mut server = Some(server);
            let failure = loop {
                match exchange.next().await.expect("an end").what {
                    web::What::Data(_) => drop(server.take()),
                    web::What::Failed(failure) => break failure,
                    web::What::End => panic!("{protocol}: the whole body came"),
                    _ => {}
                }
            };
            let name = failure.name();
            assert!(["broken", "http", "stream-reset"].contains(&name), "{protocol}: {failure}");
        }
    });
}

#[test]
fn the_log_has_streams_and_connections() {
    on_a_node(async {
        for (protocol, version) in KINDS {
            let server = serve(|plan| plan.sample = Some(Duration::from_millis(1)));
            let connection = connect(&server, protocol, version).await;
            get(&connection, "/2000000").await;
            get(&connection, "/think").await;
            drop(connection);
            let log = server.log();
            let record = until("record", || log.take_connections().pop()).await;
            assert_eq!((record.protocol, record.requests), (Some(protocol), 2));
            assert_eq!(record.error, None, "{protocol}");
            assert!(record.bytes_sent > 2_000_000, "{protocol}");
            if protocol.is_over_tcp() {
                let tcp = record.tcp.unwrap();
                assert!(tcp.bytes_sent > 2_000_000, "{tcp:?}");
                assert!(tcp.congestion_window > 0);
                assert!(record.samples.iter().is_sorted_by_key(|sample| sample.at));
                assert!(!record.samples.is_empty());
            } else {
                assert!(record.quic.unwrap().congestion_window > 0);
                assert!(!record.quic_samples.is_empty());
            }
            let streams = log.take_streams();
            assert_eq!(streams.len(), 2);
            let first = &streams[0];
            assert_eq!((first.path.as_str(), first.status, first.urgency), ("/2000000", 200, 3));
            assert_eq!((first.length, first.sent), (2_000_000, 2_000_000));
            assert_eq!(first.finish, Finish::Complete);
            let thought = streams[1].answered.unwrap().saturating_since(streams[1].requested);
            assert!(thought >= Duration::from_millis(30));
        }
    });
}

#[test]
fn http3_sends_the_most_urgent_response_first() {
    on_a_node(async {
        let server = serve(|plan| {
            // All are answered at once, so that the order is not that of the requests.
            plan.site = Arc::new(|_: &RequestHead<'_>| Answer {
                think: Duration::from_millis(30),
                ..Answer::new(1_000_000)
            });
        });
        let connection = connect(&server, Protocol::Http3, Version::Tls13).await;
        let ask = |urgency| {
            let priority = Some(Priority { urgency, incremental: false });
            connection.request(Request { priority, ..Request::get(NAME, "/") }).finish()
        };
        let outcomes = join_all([7, 5, 3, 1].map(ask)).await;
        let ended: Vec<_> = outcomes.iter().map(|outcome| outcome.ended.unwrap()).collect();
        assert!(ended.iter().rev().is_sorted(), "{ended:?}");
    });
}
