//! The report as a reader sees it, in headless Chromium: nothing wider than the page or the paper, nothing too pale,
//! no error, each plot with what belongs to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use chromium::{Chromium, Http, Setting, View};
use lab::Lab;
use lab_test::{Need, Test, TestResult, net::sleeping, skip};
use serde_json::{Map, Value};

/// Looks, and says what it sees.
const LOOK: &str = include_str!("look.js");
/// The widths that a report must fit: a phone's, a small laptop's, a large screen's.
const WIDTHS: [u32; 3] = [390, 1280, 1920];
/// How many parts are folded, once the plots that are not are drawn; `false` before.
const READY: &str = "document.documentElement.hasAttribute('data-ready') \
                     && document.querySelectorAll('details:not([open])').length";
/// Unfolds some parts, and says how many are left when their plots are drawn.
const UNFOLD: &str = "(async () => {
    const folded = () => [...document.querySelectorAll('details:not([open])')];
    folded().slice(0, 20).forEach((one) => { one.open = true; });
    for (let n = 0; n < 2; n++) await new Promise((done) => setTimeout(done, 20));
    return folded().length;
})()";
const LIMIT: Duration = Duration::from_secs(60);
/// A browser on a busy machine, in a build for tests.
const MINUTES: Duration = Duration::from_secs(300);
/// Bytes of a report.
const MOST_BYTES: u64 = 5_000_000;
/// The committed results that a report of several studies is made of.
const STUDIES: [&str; 6] = ["page", "link", "roam", "observe", "stacks", "haproxy"];
/// What a page of A4 has room for in CSS pixels, between the margins that the report's style sheet names.
const PAPER: u32 = 688;
/// What browsers do before they print: nothing stays folded, and what is drawn is drawn anew.
const PRINT: &str = "(async () => {
    dispatchEvent(new Event('beforeprint'));
    for (let n = 0; n < 2; n++) await new Promise((done) => setTimeout(done, 20));
    return document.querySelectorAll('details:not([open])').length;
})()";

pub fn tests() -> Vec<Test> {
    vec![
        Test::new("a_report_of_one_study_is_fit_to_read", one_study).within(MINUTES),
        Test::new("a_report_of_several_studies_is_fit_to_read", several_studies).within(MINUTES),
    ]
}

fn committed(study: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results").join(study)
}

/// The report of results.
fn report(results: &Path, folder: &Path) -> TestResult<PathBuf> {
    let html = folder.join("report.html");
    let mut command = Command::new(env!("CARGO_BIN_EXE_wiretax"));
    let output = command.args(["-q", "report"]).arg(results).arg("--html").arg(&html).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    Ok(html)
}

/// Results of several studies in one folder, as a run leaves them.
fn joined(folder: &Path) -> TestResult<PathBuf> {
    let results = folder.join("results");
    fs::create_dir(&results)?;
    let (mut samples, mut all) = (String::new(), Value::Null);
    let mut parts: [(&str, Map<String, Value>); 2] =
        ["plan", "values"].map(|part| (part, Map::new()));
    for study in STUDIES {
        samples += &fs::read_to_string(committed(study).join("samples.jsonl"))?;
        let manifest = fs::read_to_string(committed(study).join("manifest.json"))?;
        let manifest: Value = serde_json::from_str(&manifest)?;
        for (part, own) in &mut parts {
            own.extend(manifest[*part].as_object().cloned().unwrap_or_default());
        }
        if all.is_null() {
            all = manifest;
        }
    }
    for (part, own) in parts {
        all[part] = own.into();
    }
    fs::write(results.join("samples.jsonl"), samples)?;
    fs::write(results.join("manifest.json"), all.to_string())?;
    Ok(results)
}

fn one_study() -> TestResult {
    let folder = tempfile::tempdir()?;
    let html = report(&committed("handshake"), folder.path())?;
    is_fit(&html)
}

fn several_studies() -> TestResult {
    let folder = tempfile::tempdir()?;
    let results = joined(folder.path())?;
    let html = report(&results, folder.path())?;
    let text = fs::read_to_string(&html)?;
    assert_eq!(text.matches("<article class=\"card\">").count(), STUDIES.len());
    is_fit(&html)
}

/// Asks until the answer is not `false`, a bounded time.
async fn await_true(view: &mut View, script: &str) -> Result<Value, chromium::Error> {
    for _ in 0..600 {
        let answer = view.ask(script).await?;
        if answer != Value::Bool(false) {
            return Ok(answer);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(Value::Null)
}

fn is_fit(html: &Path) -> TestResult {
    let Ok(program) = chromium::find(None) else {
        return skip(Need::Chromium, "no headless Chromium is installed");
    };
    let bytes = fs::metadata(html)?.len();
    assert!(bytes < MOST_BYTES, "{bytes} bytes");
    lab_test::net::enter()?;
    let mut lab = Lab::new(sleeping(7))?;
    let node = lab.add_node("reader")?;
    let setting = Setting { http: Http::V1, key_pin: None, name_server: [127, 0, 0, 1].into() };
    let browser = Chromium::start(&node, &program, &setting)?;
    let (address, url) = (browser.address(), format!("file://{}", html.display()));
    let seen = node.spawn(move || async move {
        let mut view = View::begin(address).await?;
        let mut seen = Vec::new();
        for width in WIDTHS {
            view.show(&url, [width, 900], LIMIT).await?;
            let mut parts = await_true(&mut view, READY).await?;
            // Some parts at a time: each command has a time limit of its own.
            while parts.as_u64() > Some(0) {
                parts = view.ask(UNFOLD).await?;
            }
            seen.push((width, view.ask(LOOK).await?, view.errors().await?.to_vec()));
        }
        view.on_paper(true).await?;
        view.show(&url, [PAPER, 900], LIMIT).await?;
        await_true(&mut view, READY).await?;
        let folded = view.ask(PRINT).await?;
        seen.push((PAPER, view.ask(LOOK).await?, view.errors().await?.to_vec()));
        Ok::<_, chromium::Error>((seen, folded))
    });
    let (seen, folded) = seen.join()??;
    assert_eq!(folded, 0, "parts are folded on paper");
    let mut wrong = Vec::new();
    for (width, looked, errors) in seen {
        for what in ["wide", "pale", "plots"] {
            let found = looked[what].as_array().cloned().unwrap_or_default();
            wrong.extend(found.iter().map(|one| format!("{width} pixels, {what}: {one}")));
        }
        wrong.extend(errors.iter().map(|error| format!("{width} pixels, console: {error}")));
        if looked["page"].as_u64() > Some(u64::from(width)) {
            wrong.push(format!("{width} pixels: the page is {} wide", looked["page"]));
        }
        assert!(looked["count"].as_u64() > Some(2), "{looked}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
