//! Where results come from, for Markdown.

use record::Manifest;
use report::plain_markdown;

/// Date, machine and command: `Measured 2026-11-21 on … by `wiretax …``.
#[must_use]
pub fn provenance(manifest: &Manifest) -> String {
    let known = |text: Option<String>| text.map_or("unknown".to_owned(), |text| text_of(&text));
    let session = manifest.sessions.first();
    let date = manifest.started().map(|time| time.strftime("%Y-%m-%d").to_string());
    let machine = session.map(|session| &session.environment);
    format!(
        "Measured {} on {} ({} processors, Linux {}) by `{}`",
        known(date),
        known(machine.and_then(|machine| machine.cpu_model.clone())),
        known(machine.and_then(|machine| machine.cpus.map(|cpus| cpus.to_string()))),
        known(machine.and_then(|machine| machine.kernel.clone())),
        session.map_or("unknown".to_owned(), |session| program_name_only(&session.command))
    )
}

/// A text of the results that stands outside code.
fn text_of(text: &str) -> String {
    plain_markdown(&text.replace('`', "\u{FFFD}"))
}

/// `3.5.5` of `OpenSSL 3.5.5 27 Jan 2026`.
#[must_use]
pub fn version_number<'a>(name: &str, version: &'a str) -> &'a str {
    let words = version.strip_prefix(name).unwrap_or(version).trim_start();
    words.split(' ').next().unwrap_or(words)
}

/// A command without the folder that its program lay in, on one line and without a mark of Markdown's: the
/// results' own text.
fn program_name_only(command: &str) -> String {
    let marks = |letter: char| letter == '`' || letter.is_control();
    let command = command.replace(marks, "\u{FFFD}");
    let (program, rest) = command.split_once(' ').unwrap_or((&command, ""));
    let name = program.rsplit('/').next().unwrap_or(program);
    format!("{name} {rest}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_no_folder_of_a_machine() {
        assert_eq!(program_name_only("/x/y/wiretax run --seed 1"), "wiretax run --seed 1");
        assert_eq!(program_name_only("wiretax"), "wiretax");
        assert_eq!(program_name_only("wiretax `x`\n# y"), "wiretax \u{FFFD}x\u{FFFD}\u{FFFD}# y");
    }

    #[test]
    fn a_machine_of_a_stranger_is_no_markup() {
        assert_eq!(text_of("Intel(R) Xeon(R)"), "Intel(R) Xeon(R)");
        assert_eq!(text_of("<!-- /figures -->\n# `<b>"), "\\<!-- /figures --> # \u{FFFD}\\<b>");
    }

    #[test]
    fn versions_read_well() {
        assert_eq!(version_number("OpenSSL", "OpenSSL 3.5.5 27 Jan 2026"), "3.5.5");
        assert_eq!(version_number("rustls", "0.23.46"), "0.23.46");
    }
}
