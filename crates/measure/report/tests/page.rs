//! What the page must be: complete for a screen reader, offline, deterministic, harmless.

use report::{
    Axis, Bin, Block, Cell, Chart, Code, Column, Distribution, Fact, Flame, FlameFrame, Inline,
    KeyFigure, Mark, Note, Plot, Point, Report, Row, SIZE_BUDGET, Section, Series, Status, Table,
    Uncertainty, render,
};
use scraper::{Html, Selector};
use std::collections::BTreeSet;

/// A text that does harm wherever it is taken for markup.
const HOSTILE: &str = "</script><script>alert(1)</script>\"'><img src=http://evil.example/x onerror=alert(2)><a href='javascript:alert(3)'>&lt;";

fn plot(chart: Chart, text: &str) -> Plot {
    Plot::new(text, text, text, Axis::new(text, text), Axis::new(text, text), chart)
        .expect("a plot")
        .caption(text)
}

fn charts(text: &str) -> Vec<Chart> {
    let mark = || Mark::new(2.0).interval(1.0, 3.0).note(text).command(text);
    let points = || vec![Point::new(1.0, mark()), Point::new(2.0, mark())];
    let samples = || Distribution::new(vec![1.0, 2.0, 3.0, 90.0], 1).command(text);
    vec![
        Chart::Lines {
            series: vec![
                Series::measured(text, points()),
                Series::published(text, text, points()),
                Series::measured(text, points()).muted(),
            ],
            uncertainty: Uncertainty::Band,
        },
        Chart::Lines {
            series: vec![Series::measured(text, points())],
            uncertainty: Uncertainty::Bars,
        },
        Chart::Bars {
            categories: vec![text.to_owned(), text.to_owned()],
            series: vec![
                Series::measured(text, vec![Some(mark()), None]),
                Series::published(text, text, vec![None, Some(mark())]),
            ],
        },
        Chart::Stacks {
            categories: vec![text.to_owned(), text.to_owned()],
            series: vec![
                Series::measured(text, vec![Some(mark()), Some(mark())]),
                Series::measured(text, vec![None, Some(mark())]),
            ],
        },
        Chart::Ecdf { series: vec![Series::measured(text, samples())] },
        Chart::Boxes { series: vec![Series::measured(text, samples())] },
        Chart::Histogram {
            series: vec![Series::measured(text, Bin::count(&[1.0, 2.0, 2.5, 4.0], 3))],
        },
        Chart::Scatter { series: vec![Series::measured(text, points())] },
    ]
}

fn flame(text: &str) -> Flame {
    let frame = |depth, value| FlameFrame { depth, label: text.into(), kind: depth, value };
    Flame {
        title: text.into(),
        alt: text.into(),
        means: text.into(),
        unit: text.into(),
        kinds: vec![text.into(), text.into()],
        frames: vec![frame(0, 9.0), frame(1, 4.0), frame(2, 4.0), frame(1, 2.5)],
        open: true,
    }
}

/// A report with one of everything, each text in it being `text`. Numbers are invented.
fn everything(text: &str) -> Report {
    let mut table = Table::new(text, vec![Column::new(text), Column::new(text).unit(text).bars()]);
    table.push(Row::new(vec![Cell::text(text), Cell::estimate(1.0, 0.5, 2.0, 1)]).command(text));
    table.push(Row::new(vec![Cell::Code(text.to_owned()), Cell::Empty]));
    table.push(Row::new(vec![Cell::Status(Status::Bad, text.to_owned()), Cell::count(3)]));
    let mut section = Section::new(text, text)
        .with(Inline::new().text(text).code(text).strong(text))
        .with(Block::List(vec![text.into()]))
        .with(table)
        .with(Code { language: text.into(), caption: text.into(), text: text.into() })
        .with(Note::warning(text, text))
        .with(flame(text));
    for chart in charts(text) {
        section = section.with(plot(chart, text));
    }
    let mut report = Report::new(text);
    report.subtitle = text.into();
    report.question = text.into();
    report.answer = vec![text.into(), text.into()];
    let figure = KeyFigure {
        value: text.into(),
        unit: text.into(),
        label: text.into(),
        detail: text.into(),
        means: text.into(),
    };
    report.key_figures = vec![figure];
    let caution = || Note::warning(text, text);
    report.cautions = vec![
        caution().answer_stands(text),
        caution().answer_covers_less(text),
        caution().answer_may_change(text),
    ];
    report.sections = vec![section, Section::new(text, text)];
    report.calibration = vec![Fact::new(text, text, text)];
    report.manifest = serde_json::json!({ text: { text: [text, 1] } });
    report.generated_at = text.into();
    report.command = text.into();
    report.recorded_command = text.into();
    report
}

fn select<'a>(page: &'a Html, selector: &str) -> Vec<scraper::ElementRef<'a>> {
    let selector = Selector::parse(selector).expect("a selector");
    page.select(&selector).collect()
}

fn count(page: &Html, selector: &str) -> usize {
    select(page, selector).len()
}

/// The page without the plotting library, which holds strings of every kind.
fn own_part(html: &str) -> String {
    let start = html.find("<script type=\"text/plain\" id=\"plotly\">").expect("the library");
    let end = start + html[start..].find("</script>").expect("its end");
    format!("{}{}", &html[..start], &html[end..])
}

#[test]
fn landmarks_headings_and_language() {
    let page = Html::parse_document(&render(&everything("Plain words")));
    assert!(page.errors.is_empty(), "{:?}", page.errors);
    for landmark in ["header", "nav[aria-label]", "main#main", "footer", "h1", "html[lang=en-GB]"] {
        assert_eq!(count(&page, landmark), 1, "{landmark}");
    }
    let skip = select(&page, "body > a.skip").first().and_then(|a| a.value().attr("href"));
    assert_eq!(skip, Some("#main"));
    for section in select(&page, "main > section") {
        let heading = section.value().attr("aria-labelledby").expect("a label");
        assert_eq!(count(&page, &format!("h2#{heading}")), 1);
    }
}

#[test]
fn identifiers_are_unique_and_references_lead_somewhere() {
    let page = Html::parse_document(&render(&everything("Same words")));
    let mut ids = BTreeSet::new();
    for element in select(&page, "[id]") {
        let id = element.value().attr("id").unwrap_or_default();
        assert!(ids.insert(id.to_owned()), "{id} twice");
    }
    for link in select(&page, "a[href]") {
        let target = link.value().attr("href").and_then(|href| href.strip_prefix('#'));
        assert!(target.is_some_and(|id| ids.contains(id)), "{target:?}");
    }
    for element in select(&page, "[aria-labelledby]") {
        let label = element.value().attr("aria-labelledby").unwrap_or_default();
        assert!(ids.contains(label), "{label}");
    }
}

#[test]
fn every_table_has_a_caption_and_every_head_its_scope() {
    let page = Html::parse_document(&render(&everything("Words")));
    assert!(count(&page, "table") >= 10);
    assert_eq!(count(&page, "table"), count(&page, "table > caption"));
    assert_eq!(count(&page, "th"), count(&page, "th[scope=col]") + count(&page, "th[scope=row]"));
    for row in select(&page, "tbody > tr") {
        let heads = Selector::parse("th[scope=row]").expect("a selector");
        assert_eq!(row.select(&heads).count(), 1);
    }
}

#[test]
fn every_plot_has_its_sentence_and_its_table() {
    let page = Html::parse_document(&render(&everything("Words")));
    let plots = select(&page, "figure.plot");
    assert_eq!(plots.len(), charts("").len());
    for plot in plots {
        for (inside, number) in [
            ("[role=img][aria-label='Words']", 1),
            ("figcaption", 1),
            ("figcaption p.means", 1),
            ("details table caption", 1),
            ("script[type='application/json']", 1),
            ("noscript", 1),
        ] {
            let selector = Selector::parse(inside).expect("a selector");
            assert_eq!(plot.select(&selector).count(), number, "{inside}");
        }
    }
}

#[test]
fn hostile_text_stays_text() {
    let harmless = Html::parse_document(&render(&everything("words")));
    let html = render(&everything(HOSTILE));
    let page = Html::parse_document(&html);
    // Were any of it markup, there would be more elements.
    for element in ["script", "a", "td", "details", "button", "body *"] {
        assert_eq!(count(&page, element), count(&harmless, element), "{element}");
    }
    assert_eq!(count(&page, "img, iframe, object, embed, link, [onerror], [onload]"), 0);
    assert!(!own_part(&html).contains("<img"));
    let title: String = select(&page, "title").iter().flat_map(|title| title.text()).collect();
    assert_eq!(title, HOSTILE, "nothing is lost either");
    for script in select(&page, "script.figure") {
        let json: String = script.text().collect();
        let figure: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        for key in ["/layout/xaxis/title/text", "/data/0/name"] {
            if let Some(text) = figure.pointer(key).and_then(serde_json::Value::as_str) {
                assert!(!text.contains('<'), "plotly.js would read {text}");
            }
        }
    }
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    let html = render(&everything("words"));
    let page = Html::parse_document(&html);
    for attribute in
        ["src", "srcset", "data", "poster", "action", "formaction", "background", "ping"]
    {
        assert_eq!(count(&page, &format!("[{attribute}]")), 0, "{attribute}");
    }
    assert_eq!(count(&page, "link, base, iframe, object, embed, img, meta[http-equiv=refresh]"), 0);
    for link in select(&page, "[href]") {
        assert!(link.value().attr("href").is_some_and(|href| href.starts_with('#')));
    }
    let own = own_part(&html);
    for load in ["http://", "https://", "@import", "url(", "fetch(", "XMLHttpRequest", "import("] {
        assert!(!own.contains(load), "{load}");
    }
    // The library itself names addresses, for maps that no plot here has: the browser is told to
    // load nothing.
    let policy = select(&page, "meta[http-equiv=Content-Security-Policy]")
        .first()
        .and_then(|meta| meta.value().attr("content"))
        .expect("a policy");
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert!(!policy.contains("http") && !policy.contains('*'), "{policy}");
    assert!(!html.contains("mathjax@") && !html.contains("cdn.jsdelivr"));
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    assert_eq!(render(&everything("words")), render(&everything("words")));
}

#[test]
fn the_size_is_that_of_one_library() {
    let one = Report::new("t");
    assert!(render(&one).len() < 100_000, "without plots there is no library");
    let html = render(&everything("words"));
    assert!(html.len() < SIZE_BUDGET + 200_000, "{}", html.len());
    assert_eq!(html.matches("<!-- plotly.js v").count(), 1);
    let mut plain = Report::new("t");
    let chart = charts("words").pop().expect("a chart");
    plain.sections = vec![Section::new("s", "s").with(plot(chart, "words"))];
    let size = render(&plain).len();
    assert!(size < SIZE_BUDGET, "{size} bytes");
}

#[test]
fn numbers_carry_their_value_for_sorting_and_copying() {
    let page = Html::parse_document(&render(&everything("words")));
    let cell = *select(&page, "td[data-low]").first().expect("an estimate");
    let attribute = |name| cell.value().attr(name);
    assert_eq!(
        [attribute("data-v"), attribute("data-low"), attribute("data-high"), attribute("class")],
        [Some("1"), Some("0.5"), Some("2"), Some("n")]
    );
}

#[test]
fn what_cannot_be_drawn_honestly_is_refused() {
    let axis = || Axis::new("x", "ms");
    let lines = |mark: Mark| Chart::Lines {
        series: vec![Series::measured("s", vec![Point::new(1.0, mark)])],
        uncertainty: Uncertainty::Bars,
    };
    let bars = || Chart::Bars {
        categories: vec!["c".into()],
        series: vec![Series::measured("s", vec![Some(Mark::new(1.0))])],
    };
    let short = Chart::Bars {
        categories: vec!["c".into(), "d".into()],
        series: vec![Series::measured("s", vec![None])],
    };
    let overlapping =
        vec![Bin { from: 0.0, to: 2.0, count: 1 }, Bin { from: 1.0, to: 3.0, count: 1 }];
    let bins = Chart::Histogram { series: vec![Series::measured("s", overlapping)] };
    for (title, alt, x, chart, words) in [
        ("", "a", axis(), bars(), "needs a title"),
        ("t", " ", axis(), bars(), "needs a sentence that says what it shows"),
        ("t", "a", axis(), Chart::Ecdf { series: Vec::new() }, "nothing to draw"),
        ("t", "a", axis(), lines(Mark::new(f64::NAN)), "not finite"),
        ("t", "a", axis(), lines(Mark::new(1.0).interval(2.0, 1.0)), "down to"),
        ("t", "a", axis().log(), bars(), "logarithmic"),
        ("t", "a", axis(), short, "1 bars for 2 categories"),
        ("t", "a", axis(), bins, "out of order"),
    ] {
        let error = Plot::new(title, alt, "m", x, axis(), chart).expect_err(words);
        assert!(error.to_string().contains(words), "{error}");
    }
    let zero = lines(Mark::new(0.0));
    let error = Plot::new("t", "a", "m", axis(), axis().log(), zero).expect_err("log");
    assert!(error.to_string().contains("only positive"), "{error}");
    let error = Plot::new("t", "a", " ", axis(), axis(), bars()).expect_err("no meaning");
    assert!(error.to_string().contains("what it means for the reader"), "{error}");
}

#[test]
fn a_report_is_written_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.html");
    let report = everything("words");
    let size = report.write_to(&path).expect("written");
    let written = std::fs::read_to_string(&path).expect("read");
    assert_eq!(written.len(), size);
    assert_eq!(written, render(&report));
    assert_eq!(std::fs::read_dir(folder.path()).expect("read").count(), 1);
}

#[test]
fn a_flame_graph_is_as_wide_as_the_page_and_has_a_table() {
    let page = Html::parse_document(&render(&everything("Plain words")));
    let figure = select(&page, "figure.flame");
    assert_eq!(figure.len(), 1);
    assert_eq!(count(&page, "figure.flame h3"), 1);
    let styles = select(&page, "figure.flame .frames > span");
    let styles: Vec<&str> = styles.iter().filter_map(|span| span.value().attr("style")).collect();
    assert_eq!(
        styles,
        [
            "left:0.000%;width:100.000%;top:0.00rem",
            "left:0.000%;width:44.444%;top:1.25rem",
            "left:0.000%;width:44.444%;top:2.50rem",
            "left:44.444%;width:27.778%;top:1.25rem"
        ]
    );
    assert_eq!(count(&page, "figure.flame details.values tbody tr"), 4);
}
