//! Running a program under callgrind.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use child::{End, Kept, MemoryFile};

use fault::{Explain, Fault};

use crate::output::{ParseError, Profile};

/// Callgrind's file may be this large, in bytes; that of a TLS library is some megabytes.
const OUTPUT_MAX: u64 = 256 << 20;
/// As much is read of what the program wrote.
const TEXT_MAX: usize = 1 << 20;

/// Why nothing was counted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no valgrind.
    #[error("{path} cannot be run", path = path.display())]
    NoValgrind {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The symbol is no plain name.
    #[error("{0:?} is not the name of a function")]
    Symbol(String),
    /// The two runs do not differ.
    #[error("the second run must have more handshakes than the first: {few} and {many}")]
    Handshakes {
        /// Of the first.
        few: u64,
        /// Of the second.
        many: u64,
    },
    /// The operating system refused.
    #[error("{doing}: {source}")]
    Io {
        /// What was done.
        doing: &'static str,
        /// What it said.
        source: std::io::Error,
    },
    /// It did not end.
    #[error("the program under valgrind did not end in {0:?}")]
    Timeout(Duration),
    /// It was ended, since the user stops.
    #[error("it was ended: you stopped")]
    Stopped,
    /// The program failed, or valgrind did.
    #[error("the program under valgrind failed ({status}): {message}")]
    Program {
        /// How it ended.
        status: String,
        /// The end of what it or valgrind wrote.
        message: String,
    },
    /// It ended well, and yet said that it had failed.
    #[error("the program under valgrind says: {0}")]
    Refused(String),
    /// The function was never entered.
    #[error("the function {symbol} was not executed, or the program has no symbols")]
    NothingCollected {
        /// The function's symbol.
        symbol: String,
    },
    /// Callgrind's file is larger than any expected.
    #[error("callgrind's output is larger than {OUTPUT_MAX} bytes")]
    TooLarge,
    /// Callgrind's file is not what it should be.
    #[error(transparent)]
    Output(#[from] ParseError),
}

impl Explain for Error {
    fn fault(&self) -> Fault {
        match self {
            Error::NoValgrind { .. } | Error::Io { .. } => Fault::Machine,
            Error::Symbol(_) | Error::Handshakes { .. } => Fault::Caller,
            Error::Timeout(_)
            | Error::Stopped
            | Error::Program { .. }
            | Error::Refused(_)
            | Error::NothingCollected { .. }
            | Error::TooLarge => Fault::Measurement,
            Error::Output(error) => error.fault(),
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        match self {
            Error::NoValgrind { .. } => {
                Some("install it (Debian and Ubuntu: apt install valgrind)".into())
            }
            Error::Timeout(_) => Some("give fewer handshakes or more time".into()),
            _ => None,
        }
    }
}

fn io(doing: &'static str) -> impl FnOnce(std::io::Error) -> Error {
    move |source| Error::Io { doing, source }
}

/// How valgrind is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Valgrind: a path, or a name that `PATH` leads to.
    pub valgrind: PathBuf,
    /// How long one run may take.
    pub timeout: Duration,
    /// How many functions are named at most, beside those with atomic instructions.
    pub top: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { valgrind: "valgrind".into(), timeout: Duration::from_secs(300), top: 40 }
    }
}

/// A program to be run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Invocation {
    /// A path, or a name that `PATH` leads to.
    pub program: PathBuf,
    /// Its arguments, without the program's name.
    pub arguments: Vec<OsString>,
    /// Variables added to its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// What it reads on its standard input.
    pub input: Vec<u8>,
    /// How many handshakes it makes.
    pub handshakes: u64,
}

/// Runs a program and counts what it executes inside the function `symbol` and what that calls.
/// `accept` judges what it wrote on its standard output (at most a mebibyte of it).
///
/// # Errors
/// [`Error`]. The program has ended in every case.
pub fn profile(
    invocation: &Invocation,
    symbol: &str,
    options: &Options,
    accept: impl FnOnce(&[u8]) -> Result<(), String>,
) -> Result<Profile, Error> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if symbol.is_empty() || !symbol.bytes().all(plain) {
        return Err(Error::Symbol(symbol.to_owned()));
    }
    let mut output = MemoryFile::new("callgrind.out").map_err(io("making a file"))?;
    let mut file = OsString::from("--callgrind-out-file=");
    file.push(output.path());
    let mut command = Command::new(&options.valgrind);
    command
        .args(["--tool=callgrind", "--dump-instr=yes", "--quiet"])
        // No pipes in the temporary folder.
        .arg("--vgdb=no")
        .arg(format!("--toggle-collect={symbol}"))
        .arg(file)
        .arg(&invocation.program)
        .args(&invocation.arguments)
        .envs(invocation.environment.iter().map(|(name, value)| (name, value)));
    let kept = [Kept::First(TEXT_MAX), Kept::First(TEXT_MAX)];
    let ran = child::run(&mut command, invocation.input.clone(), options.timeout, kept);
    let ran = ran.map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => {
            Error::NoValgrind { path: options.valgrind.clone() }
        }
        _ => Error::Io { doing: "starting valgrind", source },
    })?;
    let status = match ran.end {
        End::Exited(status) => status,
        End::Late => return Err(Error::Timeout(options.timeout)),
        End::Stopped => return Err(Error::Stopped),
    };
    if !status.success() {
        let silent = ran.stderr.trim_ascii().is_empty();
        let message = if silent { ran.stdout } else { ran.stderr };
        return Err(Error::Program { status: status.to_string(), message: tail(&message) });
    }
    accept(&ran.stdout).map_err(Error::Refused)?;
    let output = output.read(OUTPUT_MAX + 1).map_err(io("reading what valgrind wrote"))?;
    if output.len() as u64 > OUTPUT_MAX {
        return Err(Error::TooLarge);
    }
    let profile = Profile::parse(&output)?;
    if profile.total() == 0 {
        return Err(Error::NothingCollected { symbol: symbol.to_owned() });
    }
    Ok(profile)
}

/// The last lines of a message.
fn tail(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().rev().filter(|line| !line.is_empty()).take(4).collect();
    let joined = lines.into_iter().rev().collect::<Vec<_>>().join(" / ");
    joined.chars().take(600).collect()
}
