//! Plans: what they come to, and what is wrong with some.

use tls_drivers::{Contexts, Wire, Workload};

use super::*;
use crate::roster::tests::roster;
use crate::roster::{Build, Roster, UnknownLibrary};

fn default_set() -> Roster {
    roster(&[
        "openssl-1.1.1w+",
        "openssl-3.0.2+",
        "openssl-3.5.5+",
        "openssl-4.0.3+",
        "awslc-5.12.0+",
        "wolfssl-5.9.4+",
        "boringssl+",
        "rustls-aws-lc-rs+",
        "go",
        "java",
        "null",
    ])
}

fn built_in(scale: &str) -> Result<Plan, Problem> {
    Plan::parse(BUILT_IN, scale)
}

fn one(text: &str) -> Result<Plan, Problem> {
    Plan::parse(&format!("[scale.x]\nsweep = [{text}]\n"), "x")
}

#[test]
fn the_built_in_plans_keep_their_time() {
    for (scale, cores, most) in
        [("quick", 2, 60), ("quick", 64, 60), ("default", 2, 300), ("default", 64, 300)]
    {
        let expanded = built_in(scale).unwrap().expand(&default_set(), cores).unwrap();
        let expected = expanded.expected().as_secs();
        assert!(expected < most && expected > most / 3, "{scale} on {cores}: {expected} s");
        assert!(expanded.left_out.is_empty(), "{scale}");
        let no_time: Vec<&str> = expanded.no_time.iter().map(String::as_str).collect();
        // A virtual machine warms up for longer than the quick scale has.
        assert_eq!(
            no_time,
            if scale == "quick" { vec!["java"] } else { vec![] },
            "{scale} {cores}"
        );
    }
    let full = built_in("full").unwrap().expand(&default_set(), 2).unwrap();
    assert!(full.measurements() > 1000);
}

#[test]
fn plans_for_one_question_come_to_their_measurements() {
    let expanded = |scale: &str, cores| {
        let plan = built_in(scale).unwrap();
        assert_eq!(plan.budget, None, "{scale}");
        plan.expand(&default_set(), cores).unwrap()
    };
    // Eight drivers, two workloads, two keys; their locks; two with light locks. Runtimes cannot be counted.
    assert_eq!(expanded("profile", 2).measurements(), 8 * (2 * 2 + 2) + 2);
    assert_eq!(expanded("client", 2).measurements(), 8 * 2 * 2 * 20);
    // Three ways to resume, timed with 1, 2 and 4 threads and counted.
    assert_eq!(expanded("sessions", 2).measurements(), 8 * 3 * (3 * 20 + 1));
    let curves = expanded("64-cores", 64);
    let threads = curves.cells.iter().flat_map(|cell| &cell.points).map(|point| point.threads);
    let counts: std::collections::BTreeSet<usize> = threads.collect();
    assert!(counts.len() >= crate::scaling::LEAST_COUNTS && counts.last() == Some(&64));
}

#[test]
fn quick_takes_whatever_is_built_as_long_as_it_fits() {
    let few = roster(&["openssl-1.1.1w+", "gnutls", "null"]);
    let expanded = built_in("quick").unwrap().expand(&few, 2).unwrap();
    assert!(expanded.cells.iter().any(|cell| cell.points.iter().any(|p| p.library == "gnutls")));
    let none = roster(&["openssl-1.1.1w+", "!boringssl+", "!gnutls", "null"]);
    let expanded = built_in("quick").unwrap().expand(&none, 2).unwrap();
    assert_eq!(expanded.left_out.keys().collect::<Vec<_>>(), ["boringssl"], "how to build it");
    let none = roster(&["openssl-1.1.1w+", "!gnutls", "!go", "null"]);
    let expanded = built_in("quick").unwrap().expand(&none, 2).unwrap();
    assert_eq!(expanded.left_out["go"], "go is not here");
    let mut many = default_set();
    many.libraries
        .extend(roster(&["gnutls", "nss", "botan", "s2n", "quictls-3.1.7", "mbedtls"]).libraries);
    let mut names: Vec<String> = (0..20).map(|n| format!("openssl-9.{n}")).collect();
    names.sort();
    many.libraries.extend(roster(&names.iter().map(String::as_str).collect::<Vec<_>>()).libraries);
    let expanded = built_in("quick").unwrap().expand(&many, 2).unwrap();
    assert!(expanded.expected().as_secs() < 60, "{:?}", expanded.expected());
    assert!(expanded.no_time.contains("gnutls") && !expanded.no_time.contains("null"));
}

#[test]
fn libraries_take_turns_and_the_null_driver_among_them() {
    let plan = one(r#"{ name = "a", library = ["default", "null"], workload = ["full"], locks = ["pthread", "light"], ms = 100, repeat = 2 }"#).unwrap();
    let expanded = plan.expand(&default_set(), 2).unwrap();
    assert_eq!(expanded.cells.len(), 1);
    let points = &expanded.cells[0].points;
    assert_eq!(points.len(), 17, "null has no locks to replace");
    assert_eq!(points[0].library, "openssl-1.1.1w");
    assert_eq!(points[1].library, "openssl-3.0.2");
    assert_eq!(expanded.measurements(), 34);
}

#[test]
fn what_cannot_be_is_left_out() {
    let text = r#"{ name = "a", workload = ["full", "chain:2"], wire = ["memory", "loopback"], version = ["tls1.2", "tls1.3"], group = ["x25519", "x25519mlkem768"], contexts = ["shared", "per-thread"], threads = ["1", "cores"], ms = 100, repeat = 1 }"#;
    let expanded = one(text).unwrap().expand(&roster(&["boringssl+"]), 2).unwrap();
    let points: Vec<&Point> = expanded.cells.iter().flat_map(|cell| &cell.points).collect();
    assert!(points.iter().all(|point| point.suite.exists()));
    assert!(points.iter().all(|p| p.threads > 1 || p.contexts == Contexts::Shared));
    let chain = |p: &&&Point| matches!(p.workload, Workload::Chain { .. });
    assert!(points.iter().filter(chain).all(|p| p.wire == Wire::Loopback));
    // 3 suites; full: 2 ways, 1 + 2 contexts; chain: 1 way.
    assert_eq!(points.len(), 3 * (2 * 3 + 3));
    let mut fields: Vec<_> = points.iter().map(|point| point.fields()).collect();
    fields.sort();
    fields.dedup();
    assert_eq!(fields.len(), points.len(), "no point twice");
}

#[test]
fn libraries_that_are_not_built_are_named() {
    let mut there = roster(&["openssl-1.1.1w+", "!boringssl+", "go", "!java"]);
    if let Some(first) = there.libraries.first_mut() {
        first.build = Build::Failed("no perl".to_owned());
    }
    let expanded = built_in("default").unwrap().expand(&there, 2);
    // The roster has no null driver: the plan names it, and that is said.
    assert!(expanded.unwrap_err().downcast_ref::<UnknownLibrary>().is_some());
    there.libraries.extend(roster(&["null"]).libraries);
    let expanded = built_in("default").unwrap().expand(&there, 2).unwrap();
    assert_eq!(expanded.left_out["openssl-1.1.1w"], "its build failed: no perl");
    assert_eq!(expanded.left_out["boringssl"], "it is not built");
    assert_eq!(expanded.left_out["java"], "java is not here");
}

#[test]
fn the_client_is_the_same_the_reference_or_a_name() {
    let text = |client: &str| {
        format!(
            r#"{{ name = "a", library = ["gnutls", "null"], client = ["{client}"], workload = ["full"], ms = 100, repeat = 1 }}"#
        )
    };
    let clients = |client: &str, there: &[&str]| {
        let expanded = one(&text(client)).unwrap().expand(&roster(there), 2)?;
        let points = expanded.cells.iter().flat_map(|cell| &cell.points);
        Ok::<_, Problem>(points.map(|p| p.client.clone()).collect::<Vec<_>>())
    };
    assert_eq!(clients("same", &["gnutls", "null"]).unwrap(), ["gnutls", "null"]);
    assert_eq!(clients("reference", &["gnutls", "null"]).unwrap(), ["gnutls", "null"]);
    assert_eq!(
        clients("reference", &["gnutls", "openssl-3.5.5", "boringssl", "null"]).unwrap(),
        ["boringssl", "null"]
    );
    let error = clients("schannel", &["gnutls", "null"]).unwrap_err();
    let remedy = error.remedy().unwrap_or_default();
    assert!(remedy.contains("same, reference, load, gnutls"), "{error:?}: {remedy}");
}

#[test]
fn a_runtime_takes_part_where_it_can_and_with_clients_that_it_can_have() {
    let text = |client: &str| {
        format!(
            r#"{{ name = "a", library = ["built"], client = ["{client}"], workload = ["full", "resume", "chain:2", "bulk"], wire = ["memory", "loopback"], tickets = [1, 2], contexts = ["shared", "per-thread"], locks = ["pthread", "light", "count"], threads = ["2"], ms = 100, repeat = 1 }}"#
        )
    };
    let there = roster(&["boringssl", "go", "!java", "null"]);
    let go = |client: &str| {
        let expanded = one(&text(client)).unwrap().expand(&there, 2).unwrap();
        let points = expanded.cells.iter().flat_map(|cell| &cell.points);
        let own = points.filter(|point| point.library == "go").cloned();
        own.map(|point| (workload_of(&point), point.client)).collect::<Vec<_>>()
    };
    let both = |client: &str| {
        ["full", "resume"].map(|workload| (workload.to_owned(), client.to_owned())).to_vec()
    };
    assert_eq!(go("same"), both("go"));
    assert_eq!(go("reference"), both("load"));
    assert_eq!(go("load"), both("load"));
    assert_eq!(go("go"), both("go"));
    // A driver's client cannot leave its host; Java is not here.
    assert!(go("boringssl").is_empty() && go("java").is_empty());
    // The load generator and runtimes are no clients of drivers.
    for client in ["load", "go"] {
        let expanded = one(&text(client)).unwrap().expand(&there, 2).unwrap();
        let mut points = expanded.cells.iter().flat_map(|cell| &cell.points);
        assert!(points.all(|point| point.library != "boringssl"), "{client}");
    }
}

fn workload_of(point: &Point) -> String {
    point.workload.to_string()
}

#[test]
fn wrong_plans_are_refused_with_what_is_possible() {
    let wrong = |text: &str| {
        let expanded = one(text).and_then(|plan| plan.expand(&default_set(), 2));
        let problem = expanded.unwrap_err();
        format!("{problem}: {}", problem.remedy().unwrap_or_default())
    };
    let rest = "repeat = 1, ms = 100";
    assert!(
        wrong(&format!(r#"{{ name = "a", workload = [], {rest} }}"#))
            .contains("`workload` is empty")
    );
    assert!(
        wrong(&format!(r#"{{ name = "a", workload = ["half"], {rest} }}"#))
            .contains("full, resume")
    );
    assert!(
        wrong(&format!(r#"{{ name = "a", workload = ["full"], version = ["ssl3"], {rest} }}"#))
            .contains("tls1.2")
    );
    assert!(wrong(r#"{ name = "a", workload = ["full"], repeat = 0 }"#).contains("1 to 1000"));
    assert!(wrong(r#"{ name = "a", workload = ["full"], ms = 1, repeat = 1 }"#).contains("10 to"));
    assert!(wrong(r#"{ name = "a", workload = ["full"], tickets = [17] }"#).contains("1 to 16"));
    assert!(wrong(r#"{ name = "a", workload = ["full"], threads = ["many"] }"#).contains("powers"));
    let by_id = r#"name = "a", sessions = ["tickets", "cache"]"#;
    for rest in [
        r#"workload = ["resume"]"#,
        r#"workload = ["full", "bulk"], version = ["tls1.2"]"#,
        r#"workload = ["resume"], version = ["tls1.3"]"#,
    ] {
        assert!(wrong(&format!("{{ {by_id}, {rest} }}")).contains("in TLS 1.2 only"), "{rest}");
    }
    let tls12 = r#"version = ["tls1.2"]"#;
    let unknown =
        format!(r#"{{ name = "a", sessions = ["shelf"], workload = ["resume"], {tls12} }}"#);
    assert!(wrong(&unknown).contains("tickets, cache, external"));
    let hybrid =
        format!(r#"{{ name = "a", workload = ["full"], group = ["x25519mlkem768"], {tls12} }}"#);
    assert!(
        wrong(&hybrid).contains("measures nothing") && wrong(&hybrid).contains("came with TLS 1.3")
    );
    assert!(
        wrong(r#"{ name = "a", workload = ["full"], ms = 100, connections = 5, repeat = 1 }"#)
            .contains("exclude")
    );
    let twice = format!(
        r#"{{ name = "a", workload = ["full"], {rest} }}, {{ name = "a", workload = ["full"], {rest} }}"#
    );
    assert!(wrong(&twice).contains("two sweeps"));
    let huge = built_in("huge").unwrap_err();
    assert_eq!(
        huge.remedy(),
        Some("there are: 64-cores, client, default, full, profile, quick, sessions, smoke")
    );
    assert!(
        Plan::parse("[scale.x]\nsweep = []\n", "x").unwrap_err().to_string().contains("no sweep")
    );
    assert!(Plan::parse("not a plan", "x").is_err());
}

#[test]
fn a_plan_that_says_nothing_of_slices_has_forty_of_fifty_milliseconds() {
    let of = |plan: &Plan| {
        let expanded = plan.expand(&default_set(), 2).unwrap();
        (expanded.cells[0].extent, expanded.cells[0].repeat)
    };
    let plan = one(r#"{ name = "a", workload = ["full"] }"#).unwrap();
    assert_eq!(of(&plan), (Extent::Milliseconds(50), 40));
    // Its manifest says so, whatever the defaults will be.
    let mut value = plan.value();
    assert_eq!(
        (&value["sweeps"][0]["ms"], &value["sweeps"][0]["repeat"]),
        (&json!(50), &json!(40))
    );
    assert_eq!(Plan::recorded(&value).unwrap(), plan);
    // One from before: measurements of half a second, as it then was.
    let sweep = value["sweeps"][0].as_object_mut().unwrap();
    sweep.remove("ms");
    sweep.insert("repeat".to_owned(), json!(5));
    assert_eq!(of(&Plan::recorded(&value).unwrap()), (Extent::Milliseconds(500), 5));
}

#[test]
fn a_budget_makes_slices_shorter_and_then_fewer() {
    let text = |seconds: u64| {
        let sweep =
            r#"{ name = "a", library = ["default"], workload = ["full"], ms = 50, repeat = 40 }"#;
        format!("[scale.x]\nseconds = {seconds}\nsweep = [{sweep}]\n")
    };
    let of = |seconds: u64| {
        let plan = Plan::parse(&text(seconds), "x").unwrap();
        let expanded = plan.expand(&default_set(), 2).unwrap();
        assert!(
            expanded.expected() <= Duration::from_secs(seconds) || expanded.cells[0].repeat == 6
        );
        let Extent::Milliseconds(ms) = expanded.cells[0].extent else { panic!("it is timed") };
        (ms, expanded.cells[0].repeat)
    };
    assert_eq!(of(60), (50, 40));
    let (ms, slices) = of(15);
    assert!((20..50).contains(&ms) && slices == 40, "{ms} ms, {slices}");
    let (ms, slices) = of(5);
    assert!(ms == 20 && (6..40).contains(&slices), "{ms} ms, {slices}");
    assert_eq!(of(1), (20, 6));
}
