use fault::Explain;

use super::*;

fn error(text: &str) -> String {
    Plan::parse(text, "quick").unwrap_err().to_string()
}

fn quick(sweep: &str) -> String {
    format!("[scale.quick]\nsweep = [{{ {sweep} }}]\n")
}

#[test]
fn the_built_in_plans_are_plans() {
    for scale in ["quick", "paper", "full"] {
        let plan = Plan::built_in(scale).unwrap();
        assert!(!plan.cells().unwrap().0.is_empty(), "{scale}");
    }
    let error = Plan::built_in("tiny").unwrap_err();
    assert!(error.to_string().contains("tiny"), "{error}");
    assert_eq!(error.remedy().as_deref(), Some("there are: full, paper, quick, smoke"));
}

#[test]
fn wrong_plans_say_what_is_wrong() {
    for (sweep, problem) in [
        ("name = 'a', mode = ['tcp'], rtt = ['1ms'], repeat = 0", "repeat is 0"),
        ("name = 'a', mode = [], rtt = ['1ms'], repeat = 1", "`mode` is empty"),
        ("name = 'a', mode = ['tcp'], rtt = ['1'], repeat = 1", "no unit"),
        ("name = 'a', mode = ['sctp'], rtt = ['1ms'], repeat = 1", "no mode is called `sctp`"),
        ("name = 'a', mode = ['tcp'], rtt = ['11s'], repeat = 1", "at most 10s"),
        ("name = 'a', mode = ['tcp'], rtt = ['1ms'], loss = ['60%'], repeat = 1", "at most 50%"),
        ("name = 'a', mode = ['tcp'], rtt = ['1ms'], chain = [0], repeat = 1", "chain is 0"),
        ("name = 'a', mode = ['tcp'], rtt = ['1ms'], repeat = 1, speed = 9", "speed"),
        ("name = 'a', mode = ['tcp'], rtt = ['1ms'], repeat = 4000000", "200000 connections"),
        ("name = 'a', mode = ['tcp'], rtt = ['1ms'], repeat = 1, concurrent = 999", "1 to 256"),
    ] {
        let message = error(&quick(sweep));
        assert!(message.contains(problem), "{sweep}: {message}");
    }
    assert!(error("rtt = 3").contains("not a plan"));
}

#[test]
fn a_full_queue_has_a_bottleneck_before_the_client() {
    let text = quick(
        "name = 'a', mode = ['tcp'], rtt = ['20ms'], queue = ['none', 'droptail', 'codel'], repeat = 1",
    );
    let plan = Plan::parse(&text, "quick").unwrap();
    let (cells, _) = plan.cells().unwrap();
    let [none, drop_tail, codel] = cells.as_slice() else { panic!("{cells:?}") };
    assert_eq!(plan.path(none).backward.rate, None);
    assert_eq!(plan.path(drop_tail).backward.queue, Queue::Packets(QUEUED_PACKETS));
    assert_eq!(plan.path(codel).backward.queue, Queue::Codel(Codel::default()));
    for cell in [drop_tail, codel] {
        let path = plan.path(cell);
        assert!(path.backward.rate.is_some() && path.forward.rate.is_none());
        assert_eq!(path.round_trip(), cell.rtt);
    }
    let slower = Plan { rate: "5mbit".parse().ok(), ..plan };
    let five = slower.rate.map(RateSource::Fixed);
    assert_eq!(slower.path(codel).backward.rate, five);
}

#[test]
fn traces_are_files_beside_the_plan() {
    let millis = |last: u64| Trace::from_millis((1..=last).map(|at| at / 4)).unwrap();
    let mut base = Path::default();
    base.forward.rate = Some(RateSource::Trace(millis(1_100_000)));
    base.backward.rate = Some(RateSource::Trace(millis(40)));
    let plan = Plan { base: Some(base), budget: None, ..Plan::built_in("quick").unwrap() };
    let (value, files) = (plan.value(), plan.files());
    assert!(value.to_string().len() < 10_000 && files.len() == 2);
    assert_eq!(Plan::recorded_with(&value, &files).unwrap(), plan);
    assert!(Plan::recorded(&value).unwrap().base.is_some());
    let missing = Plan::recorded_with(&value, &PlanFiles::new()).unwrap_err();
    assert!(missing.to_string().contains("is missing"), "{missing}");
    // As manifests had them until then.
    let mut inline = value;
    inline["base"]["forward"]["rate"] = serde_json::json!({ "trace": [1, 5, 5] });
    let read = Plan::recorded_with(&inline, &files).unwrap().base.unwrap();
    assert!(
        matches!(read.forward.rate, Some(RateSource::Trace(trace)) if trace.millis() == [1, 5, 5])
    );
}

#[test]
fn impossible_points_are_left_out_with_a_reason() {
    let text = quick(
        "name = 'a', mode = ['tcp+tls12-rsa', 'tcp+tls13'], rtt = ['1ms'], \
         library = ['rustls', 'openssl'], repeat = 1",
    );
    let (cells, impossible) = Plan::parse(&text, "quick").unwrap().cells().unwrap();
    assert_eq!(cells[0].points.len(), 3);
    assert_eq!(impossible.len(), 1);
    assert_eq!(impossible[0].1, "rustls has no RSA key exchange");

    let only = quick(
        "name = 'a', mode = ['tcp+tls12-rsa'], rtt = ['1ms'], library = ['rustls'], repeat = 1",
    );
    assert!(error(&only).contains("measures nothing"));
}

#[test]
fn quic_is_measured_once_whatever_libraries_a_sweep_lists() {
    let text = quick(
        "name = 'a', mode = ['quic'], rtt = ['1ms'], library = ['rustls', 'openssl'], repeat = 1",
    );
    let (cells, _) = Plan::parse(&text, "quick").unwrap().cells().unwrap();
    assert_eq!(cells[0].points.len(), 1);
    assert_eq!(cells[0].points[0].library, tls::Library::Rustls);
}

#[test]
fn modes_take_turns_within_a_path() {
    let text = quick("name = 'a', mode = ['tcp', 'quic'], rtt = ['1ms', '2ms'], repeat = 3");
    let (cells, _) = Plan::parse(&text, "quick").unwrap().cells().unwrap();
    let rtts: Vec<_> = cells.iter().map(|cell| cell.rtt.to_string()).collect();
    assert_eq!(rtts, ["1ms", "2ms"]);
    assert!(cells.iter().all(|cell| cell.points.len() == 2 && cell.repeat == 3));
}

#[test]
fn the_path_splits_the_round_trip() {
    let text = quick("name = 'a', mode = ['tcp'], rtt = ['3ns'], loss = ['1%'], repeat = 1");
    let plan = Plan::parse(&text, "quick").unwrap();
    let (cells, _) = plan.cells().unwrap();
    let path = plan.path(&cells[0]);
    assert_eq!(path.forward.delay.to_string(), "1ns");
    assert_eq!(path.backward.delay.to_string(), "2ns");
}
