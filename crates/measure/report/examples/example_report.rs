//! Writes a report with INVENTED numbers, to look at the design:
//! `cargo run -p report --example example_report -- example.html`.

use report::{
    Axis, Block, Cell, Chart, Code, Column, Distribution, Fact, Inline, KeyFigure, Mark, Note,
    Plot, PlotError, Point, Report, Row, Section, Series, Status, Table, Uncertainty,
};

/// Invented: name, round trips before the first request byte, milliseconds of computing.
const MODES: [(&str, f64, f64); 8] = [
    ("TLS 1.2, RSA key exchange", 3.0, 2.4),
    ("TLS 1.2, ECDHE", 3.0, 1.9),
    ("TLS 1.2, resumed", 2.0, 0.7),
    ("TLS 1.3", 2.0, 1.6),
    ("TLS 1.3, resumed, early data", 1.0, 0.9),
    ("TLS 1.3, early data, Fast Open", 0.0, 1.1),
    ("QUIC 1-RTT", 1.0, 2.2),
    ("QUIC 0-RTT", 0.0, 1.3),
];
const RTTS: [f64; 6] = [0.4, 11.6, 20.0, 50.0, 85.5, 200.0];

fn command(mode: &str, rtt: f64) -> String {
    let mode = mode.to_lowercase().replace([',', ' '], "-").replace("--", "-");
    format!("wiretax handshake --mode {mode} --rtt {rtt}ms --repeat 20 --seed 4207")
}

fn mark(mode: &str, trips: f64, compute: f64, rtt: f64) -> Mark {
    let value = trips * rtt + compute;
    Mark::new(value)
        .interval(value - 0.3 - 0.01 * rtt, value + 0.4 + 0.02 * rtt)
        .note("20 of 20 completed, seed 4207")
        .command(command(mode, rtt))
}

fn by_rtt() -> Result<Plot, PlotError> {
    let mut series: Vec<_> = MODES
        .iter()
        .map(|(name, trips, compute)| {
            let points =
                RTTS.iter().map(|rtt| Point::new(*rtt, mark(name, *trips, *compute, *rtt)));
            Series::measured(*name, points.collect::<Vec<_>>())
        })
        .collect();
    let paper = [11.6, 85.5].map(|rtt| Point::new(rtt, Mark::new(3.1 * rtt + 9.0)));
    series.push(Series::published("TLS 1.2", "an invented paper", paper.to_vec()));
    Plot::new(
        "Time until the client may send its first request byte",
        "Time grows with the round-trip time in every mode; TLS 1.2 grows three times as fast as QUIC 1-RTT, and modes with early data hardly grow.",
        "A user at 85.5 ms waits 259 ms by TLS 1.2 and 88 ms by QUIC before the first request may leave.",
        Axis::new("Round-trip time", "ms").from_zero(),
        Axis::new("Median time to first request byte", "ms").from_zero(),
        Chart::Lines { series, uncertainty: Uncertainty::Bars },
    )
    .map(|plot| plot.caption("Points are medians of 20 connections, bars their 95 % bootstrap intervals. Invented numbers."))
}

fn compared() -> Result<Plot, PlotError> {
    let rtt = 85.5;
    let bars = |extra: f64| {
        MODES
            .iter()
            .map(|(name, trips, compute)| Some(mark(name, *trips, *compute + extra, rtt)))
            .collect()
    };
    Plot::new(
        "Libraries compared at 85.5 ms",
        "The two invented libraries differ by less than 2 ms in every mode; the mode matters a hundred times more.",
        "Choose the mode first, which is worth up to 257 ms: the library is worth 2 ms.",
        Axis::new("Median time to first request byte", "ms"),
        Axis::default(),
        Chart::Bars {
            categories: MODES.iter().map(|mode| mode.0.to_owned()).collect(),
            series: vec![
                Series::measured("rustls", bars(0.0)),
                Series::measured("OpenSSL", bars(1.4)),
            ],
        },
    )
}

fn tail() -> Result<Plot, PlotError> {
    let samples = |trips: f64| -> Vec<f64> {
        (0..200_u32)
            .map(|n| {
                let lost =
                    if n % 17 == 0 { 1000.0 } else { 0.0 } + if n % 61 == 0 { 2000.0 } else { 0.0 };
                trips * 85.5 + 3.0 + f64::from(n * 37 % 101) / 20.0 + lost
            })
            .collect()
    };
    let series = MODES
        .iter()
        .skip(1)
        .step_by(2)
        .map(|(name, trips, _)| {
            let failed = if *trips > 2.5 { 9 } else { 2 };
            Series::measured(
                *name,
                Distribution::new(samples(*trips), failed).command(command(name, 85.5)),
            )
        })
        .collect();
    Plot::new(
        "With 3 % loss: how many connections are ready by when",
        "Nineteen in twenty connections are ready within a second of the median; TLS 1.2 leaves the most failures.",
        "One user in twenty waits a second longer, whatever the mode.",
        Axis::new("Time to first request byte", "ms").log(),
        Axis::new("Share of connections", ""),
        Chart::Ecdf { series },
    )
    .map(|plot| plot.caption("Failed connections count as later than every time drawn: their curve ends below 100 %."))
}

fn savings() -> Table {
    let mut table = Table::new(
        "What each mode would save against TLS 1.2 with RSA key exchange, at 85.5 ms (invented numbers)",
        vec![
            Column::new("Mode"),
            Column::new("Round trips"),
            Column::new("Fit: n").unit("RTT"),
            Column::new("Fit: c").unit("ms"),
            Column::new("Median").unit("ms"),
            Column::new("Saved").unit("ms").bars(),
            Column::new("Saved").unit("%"),
            Column::new("As specified"),
        ],
    );
    let base = MODES[0].1 * 85.5 + MODES[0].2;
    for (name, trips, compute) in MODES {
        let value = trips * 85.5 + compute;
        let measured = if name == "QUIC 1-RTT" { trips + 0.08 } else { trips + 0.004 };
        let verdict = if name == "QUIC 1-RTT" {
            Cell::Status(Status::Bad, "0.08 too many".to_owned())
        } else {
            Cell::Status(Status::Good, "yes".to_owned())
        };
        table.push(
            Row::new(vec![
                Cell::text(name),
                Cell::number(trips, 0),
                Cell::estimate(measured, measured - 0.006, measured + 0.007, 3),
                Cell::estimate(compute, compute - 0.2, compute + 0.3, 1),
                Cell::estimate(value, value - 0.7, value + 1.1, 1),
                Cell::difference(base - value, 1),
                Cell::difference(100.0 * (base - value) / base, 0),
                verdict,
            ])
            .command(command(name, 85.5)),
        );
    }
    table
}

fn report() -> Result<Report, PlotError> {
    let mut report = Report::new("Handshake study (example, invented numbers)");
    report.subtitle = "Emulated links of 0.4 to 200 ms, 20 connections per point, real TLS libraries over kernel TCP".into();
    report.question = "What does setting up a secure connection cost at my users\u{2019} RTT, and what would I save?".into();
    report.answer = vec![
        Inline::marked(
            "Switch on TLS 1.3 with early data: at 85.5 ms RTT a request leaves **172 ms sooner** than with TLS 1.2.",
        ),
        Inline::marked(
            "TCP Fast Open saves the last round trip where the path lets it through; QUIC 0-RTT does the same without asking the path.",
        ),
        Inline::marked(
            "Two lines of nginx do the first: `ssl_protocols TLSv1.3` and `ssl_early_data on`.",
        ),
    ];
    let figure = |value: &str, unit: &str, label: &str, detail: &str, means: &str| KeyFigure {
        value: value.into(),
        unit: unit.into(),
        label: label.into(),
        detail: detail.into(),
        means: means.into(),
    };
    report.key_figures = vec![
        figure(
            "258.9",
            "ms",
            "TLS 1.2 with RSA key exchange, today",
            "[258.2, 260.0] at 85.5 ms RTT",
            "Each new connection waits a quarter of a second.",
        ),
        figure(
            "\u{2212}171",
            "ms",
            "by TLS 1.3 with early data",
            "67 % less, needs resumption",
            "A user who comes back waits 88 ms.",
        ),
        figure(
            "\u{2212}257",
            "ms",
            "with TCP Fast Open as well",
            "99 % less",
            "A user who comes back waits 2 ms.",
        ),
        figure(
            "1.1",
            "ms",
            "left: computing",
            "RSA-2048, X25519",
            "Faster processors could save 1 ms more at most.",
        ),
    ];
    let nginx = Code {
        language: "nginx".into(),
        caption: "TLS 1.3, tickets and early data".into(),
        text: "ssl_protocols TLSv1.3;\nssl_session_tickets on;\nssl_early_data on;\nproxy_set_header Early-Data $ssl_early_data;".into(),
    };
    let sysctl = Code {
        language: "sysctl".into(),
        caption: "TCP Fast Open on both sides".into(),
        text: "net.ipv4.tcp_fastopen = 3".into(),
    };
    report.sections = vec![
        Section::new("change", "What to change")
            .with(savings())
            .with(nginx)
            .with(sysctl)
            .with(Note::warning(
                "Early data can be replayed by who sees it.",
                Inline::marked("Let only safe requests (`GET`, `HEAD`) through with it: answer the others with status 425 (RFC 8470)."),
            )),
        Section::new("rtt", "Cost by round-trip time").with(by_rtt()?).with(Block::List(vec![
            Inline::marked("The slope of a line is its number of round trips, **n**."),
            Inline::marked("Where it meets the axis is the compute time, **c**."),
        ])),
        Section::new("libraries", "Libraries").with(compared()?),
        Section::new("loss", "The tail under loss").with(tail()?).with(Note::info(
            "A lost first segment costs a second: the kernel\u{2019}s first retransmission timeout.",
        )),
    ];
    report.calibration = vec![
        Fact::new("Delay error, median", "0.9 µs", "added to each one-way delay"),
        Fact::new("Delay error, p99", "41 µs", "real-time scheduling was on"),
        Fact::new("Capacity", "812 000 frames/s", "1000-byte frames, veth"),
    ];
    report.manifest = serde_json::json!({
        "wiretax": {"version": "0.1.0", "commit": "0123456789abcdef"},
        "machine": {"cpu": "An Invented CPU at 3.0 GHz", "cores": 2, "memory": "8 GiB", "kernel": "6.1.0"},
        "libraries": {"rustls": "0.23", "OpenSSL": "3.5", "quinn": "0.11"},
        "warnings": ["frequency scaling is on"],
    });
    report.generated_at = "at no time: the numbers are invented".into();
    report.command =
        "wiretax handshake --rtt 0.4ms,11.6ms,20ms,50ms,85.5ms,200ms --repeat 20 --seed 4207"
            .into();
    Ok(report)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "example-report.html".to_owned());
    let report = report()?;
    let size = report.write_to(path.as_ref())?;
    print!("{}", report.to_text(100));
    eprintln!("{path}: {size} bytes");
    Ok(())
}
