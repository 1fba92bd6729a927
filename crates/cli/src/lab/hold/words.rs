//! Figures and lines of the verdict's text.

use std::fmt::Write as _;
use std::time::Duration;

/// Returns the sizes of the buffers, and the setting to raise.
pub(super) fn buffers(
    (name, bytes): (&str, u32),
    (setting, most): (&str, Option<u64>),
    question: &str,
    product: Option<f64>,
) -> String {
    let mut text = String::new();
    if bytes > 0 {
        let _ = write!(text, "; {name} {}", size(f64::from(bytes)));
    }
    // The kernel's own structures take up to half of a buffer.
    let wanted = product.map(|product| 2.0 * product);
    match (most, wanted) {
        (Some(most), Some(wanted)) if (most as f64) < wanted => {
            let _ = write!(
                text,
                ", {setting} allows {}: raise it to {}",
                size(most as f64),
                size(wanted)
            );
        }
        (Some(most), _) if u64::from(bytes) < most => {
            let _ = write!(text, ", {setting} allows {}: {question}", size(most as f64));
        }
        (Some(most), _) => {
            let _ = write!(text, ", the most that {setting} allows: {}", size(most as f64));
        }
        (None, _) => {}
    }
    text
}

/// Text in lines of at most `width` columns, each after the first indented by two more.
pub(super) fn wrapped(text: &str, indent: &str, width: usize) -> String {
    let (mut lines, mut line) = (String::new(), indent.to_owned());
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > width {
            lines += &line;
            lines.push('\n');
            line = format!("{indent}  ");
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line += word;
        is_empty = false;
    }
    lines + &line + "\n"
}

pub(super) fn size(bytes: f64) -> String {
    match bytes {
        few if few < 1e3 => format!("{few:.0} B"),
        some if some < 1e6 => format!("{:.0} kB", some / 1e3),
        many => format!("{:.1} MB", many / 1e6),
    }
}

pub(super) fn bits(per_second: f64) -> String {
    match per_second {
        few if few < 1e6 => format!("{:.0} kbit/s", few / 1e3),
        some if some < 1e9 => format!("{:.1} Mbit/s", some / 1e6),
        many => format!("{:.2} Gbit/s", many / 1e9),
    }
}

pub(super) fn time(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1e3;
    if millis < 10.0 { format!("{millis:.1} ms") } else { format!("{millis:.0} ms") }
}

pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 1.0 { format!("{percent:.2} %") } else { format!("{percent:.1} %") }
}
