use study::Plan as _;

use super::cell::lanes_for;
use super::*;
use crate::point::{Loader, Visit};

#[test]
fn every_scale_reads_and_the_quick_ones_keep_to_their_time() {
    for scale in ["quick", "smoke", "full", "paper", "grid", "uploads", "windows"] {
        let plan = Plan::built_in(scale).unwrap();
        let (cells, impossible) = plan.cells().unwrap();
        assert!(!cells.is_empty() && impossible.is_empty(), "{scale}: {impossible:?}");
        assert_eq!(Plan { budget: plan.budget, ..Plan::recorded(&plan.value()).unwrap() }, plan);
        // With one processor fewer loads are under way at once: some are left out.
        let several = std::thread::available_parallelism().is_ok_and(|n| n.get() > 1);
        if let Some(budget) = plan.budget.filter(|_| several) {
            assert!(plan.expected() <= budget, "{scale}: {:?}", plan.expected());
        }
    }
    assert!(Plan::built_in("huge").is_err());
}

/// Its ten TCP windows by stream windows of 64 KB, 10, 64 and 100 MB, by page and rate.
#[test]
fn the_grid_of_windows_is_whole() {
    let (cells, _) = Plan::built_in("grid").unwrap().cells().unwrap();
    let points = || cells.iter().flat_map(|cell| &cell.points);
    let ways: BTreeSet<_> = points()
        .filter(|point| point.protocol == web::Protocol::Spdy3)
        .map(|point| (point.tcp_window.to_string(), point.stream_window.to_string()))
        .collect();
    let streams: BTreeSet<&str> = ways.iter().map(|(_, stream)| stream.as_str()).collect();
    assert_eq!(streams, BTreeSet::from(["64KiB", "10MiB", "64MiB", "100MiB"]));
    assert_eq!(ways.len(), 10 * 4);
    // HTTP/1.1 has a row for each TCP window in both of its sweeps.
    assert_eq!(points().count(), 4 * 2 * (10 * 4 + 2 * 10));
}

#[test]
fn protocols_share_a_cell_and_visits_a_series() {
    let (cells, _) = Plan::built_in("quick").unwrap().cells().unwrap();
    assert_eq!(cells.len(), 2);
    let series = cells[0].series();
    assert_eq!(series.len(), 4);
    let visits = |cell: &Cell, round| -> Vec<(Visit, u32)> {
        let loads = cell.loads(&series[0], round);
        loads.iter().map(|load| (load.point.visit, load.repeat)).collect()
    };
    assert_eq!(visits(&cells[0], 1), [(Visit::First, 1), (Visit::Kept, 1)]);
    // With several returns a browser stays: the repeats of all rounds are counted on.
    let stays = Cell { returns: 3, ..cells[0].clone() };
    let kept = |n| (Visit::Kept, n);
    assert_eq!(visits(&stays, 1), [(Visit::First, 1), kept(3), kept(4), kept(5)]);
    assert_eq!(stays.loads_of(&series[0].points[1]), 3 * stays.repeat);
    assert_eq!(
        visits_for([Visit::Closed, Visit::Closed]),
        [Visit::First, Visit::Closed, Visit::Closed]
    );
}

#[test]
fn lanes_come_of_the_rate_and_the_processors() {
    for (down, processors, lanes) in [
        (900_000, 2, 8),
        (1_370_000, 2, 8),
        (17_040_000, 2, 2),
        (61_120_000, 2, 1),
        (900_000, 1, 4),
        (17_040_000, 8, 9),
        (900_000, 64, 16),
        (0, 1, 4),
        (1_000_000_000, 1, 1),
    ] {
        assert_eq!(lanes_for(down, processors), lanes, "{down} bit/s, {processors}");
    }
}

#[test]
fn http_1_1_has_no_windows_to_vary() {
    let mut sweep = Sweep::of_defaults("x", &AXES, NUMBERS);
    let list = |words: &str| words.split(',').map(str::to_owned).collect::<Vec<String>>();
    sweep.lists.insert("stream-window".to_owned(), list("64KiB,1MiB"));
    sweep.lists.insert("protocol".to_owned(), list("http/1.1,h2"));
    sweep.lists.insert("link".to_owned(), list("wired-10"));
    sweep.lists.insert("visit".to_owned(), list("first"));
    let plan = Plan::new(vec![sweep], Pages::default()).unwrap();
    let (cells, _) = plan.cells().unwrap();
    let protocols: Vec<String> =
        cells[0].points.iter().map(|point| point.protocol.to_string()).collect();
    assert_eq!(protocols, ["http/1.1", "h2", "h2"]);
}

#[test]
fn chromium_takes_turns_with_our_loader_where_it_can() {
    let mut sweep = Sweep::of_defaults("x", &AXES, NUMBERS);
    let list = |words: &str| words.split(',').map(str::to_owned).collect::<Vec<String>>();
    sweep.lists.insert("loader".to_owned(), list("ours,chromium"));
    sweep.lists.insert("protocol".to_owned(), list("spdy/3.1,h2"));
    sweep.lists.insert("visit".to_owned(), list("first,closed"));
    sweep.lists.insert("stream-window".to_owned(), list("64KiB,1MiB"));
    sweep.lists.insert("link".to_owned(), list("3g-0.9"));
    let plan = Plan::new(vec![sweep], Pages::default()).unwrap();
    let (cells, impossible) = plan.cells().unwrap();
    let by_chromium = |point: &&Point| point.loader == Loader::Chromium;
    let points: Vec<&Point> = cells[0].points.iter().filter(by_chromium).collect();
    // Windows are its own: one point, not two.
    assert_eq!(points.len(), 1, "{points:?}");
    assert_eq!(points[0].fields()["loader"], "chromium");
    assert!(cells[0].points.iter().any(|point| !point.fields().contains_key("loader")));
    let reasons: Vec<&str> = impossible.iter().map(|(_, reason)| *reason).collect();
    assert!(reasons.iter().any(|reason| reason.contains("no SPDY")), "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason.contains("close its connections")));
    // A browser needs more of a processor than a loader that renders nothing.
    assert_eq!(cells[0].lanes, 2);
}
