//! The compilers that are on the machine, and our programs built by them.

use std::env;
use std::fs;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use outfile::Scratch;
use siphasher::sip128::{Hasher128, SipHasher13};

use crate::child::{io, run};
use crate::peer::Program;
use crate::{Error, Runtime};

/// Sources by the names that they are compiled under.
type Sources = &'static [(&'static str, &'static str)];

const GO_SOURCES: Sources =
    &[("main.go", include_str!("../go/main.go")), ("wire.go", include_str!("../go/wire.go"))];
const JAVA_SOURCES: Sources = &[
    ("Peer.java", include_str!("../java/Peer.java")),
    ("Wire.java", include_str!("../java/Wire.java")),
];

/// A version is told at once; a virtual machine on a busy computer takes its time.
const TELL: Duration = Duration::from_secs(60);
/// The first build compiles the standard library's packages too.
const BUILD: Duration = Duration::from_secs(600);

/// A toolchain that answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    /// Of which runtime.
    pub runtime: Runtime,
    /// `go` or `javac`.
    pub compiler: PathBuf,
    /// What runs the program; for Go the program runs itself.
    pub launcher: Option<PathBuf>,
    /// What the compiler says of itself.
    pub version: String,
}

impl Runtime {
    /// The toolchain, if it is here: `go` on the path; `javac` and `java` in `JAVA_HOME` or on the path.
    ///
    /// # Errors
    /// [`Error::NotHere`].
    pub fn available(self) -> Result<Toolchain, Error> {
        let (compiler, question, launcher) = match self {
            Self::Go => (find("go"), "version", None),
            Self::Java => (find_java("javac"), "-version", Some(find_java("java"))),
        };
        let compiler = compiler.ok_or_else(|| self.not_here("no compiler on the path"))?;
        let launcher = match launcher {
            Some(found) => Some(found.ok_or_else(|| self.not_here("no `java` on the path"))?),
            None => None,
        };
        let mut command = Command::new(&compiler);
        command.arg(question);
        surroundings(self, &mut command);
        let (well, version) =
            run(&mut command, TELL).map_err(|error| self.not_here(&error.to_string()))?;
        if !well {
            return Err(self.not_here(&version));
        }
        let version = version
            .lines()
            .find(|line| !line.starts_with("Picked up"))
            .unwrap_or_default()
            .to_owned();
        Ok(Toolchain { runtime: self, compiler, launcher, version })
    }

    fn not_here(self, why: &str) -> Error {
        let hint = match self {
            Self::Go => "install Go (go.dev/doc/install, or the package golang-go)",
            Self::Java => {
                "install a JDK (the package default-jdk-headless), or set JAVA_HOME to one"
            }
        };
        Error::NotHere { runtime: self, why: why.to_owned(), hint }
    }

    const fn sources(self) -> Sources {
        match self {
            Self::Go => GO_SOURCES,
            Self::Java => JAVA_SOURCES,
        }
    }
}

impl Toolchain {
    /// The program, built into the cache unless it is there: its folder is named by what it is made of.
    /// Nothing is fetched: the programs use the standard libraries only.
    ///
    /// # Errors
    /// [`Error::Build`] with the compiler's words; [`Error::Io`] for the cache.
    pub fn build(&self, cache: &Path) -> Result<Program, Error> {
        let runtime = self.runtime;
        let folder = cache.join(format!("{runtime}-{}", self.key()));
        let program = |folder: &Path| Program::new(self.clone(), folder.to_path_buf());
        if folder.is_dir() {
            return Ok(program(&folder));
        }
        fs::create_dir_all(cache).map_err(io("making the cache"))?;
        let work = Scratch::new_in(cache, ".build-").map_err(io("making a folder in the cache"))?;
        for (name, text) in runtime.sources() {
            fs::write(work.path().join(name), text).map_err(io("writing the source"))?;
        }
        let mut command = Command::new(&self.compiler);
        surroundings(runtime, &mut command);
        // What a compiler leaves when it is killed goes with the folder.
        let temporary = work.path().join("tmp");
        fs::create_dir(&temporary).map_err(io("making a folder in the cache"))?;
        command.current_dir(work.path()).env("TMPDIR", absolute(&temporary)?);
        match runtime {
            Runtime::Go => {
                // The language's version decides over defaults of crypto/tls: the toolchain's own.
                let module = format!("module peer\n\ngo {}\n", self.go_language());
                fs::write(work.path().join("go.mod"), module).map_err(io("writing the source"))?;
                command
                    .args(["build", "-trimpath", "-o", "peer", "."])
                    .env("GOCACHE", absolute(&cache.join("go-build"))?);
            }
            Runtime::Java => {
                command.args(["-d", "."]).args(runtime.sources().iter().map(|(name, _)| name));
            }
        }
        let (well, output) = run(&mut command, BUILD)
            .map_err(io(&format!("running {}", self.compiler.display())))?;
        if !well {
            return Err(Error::Build { runtime, output });
        }
        fs::remove_dir_all(&temporary).map_err(io("removing the compiler's temporary folder"))?;
        if let Err(source) = work.publish(&folder) {
            // Another process was first: its folder is as good.
            if !folder.is_dir() {
                return Err(Error::Io {
                    what: format!("moving a build to {}", folder.display()),
                    source,
                });
            }
        }
        Ok(program(&folder))
    }

    /// What a build is made of.
    fn key(&self) -> String {
        let mut hasher = SipHasher13::new();
        let sources = self.runtime.sources().iter().map(|(_, text)| *text);
        let compiler = self.compiler.to_string_lossy();
        for part in sources.chain([self.version.as_str(), &compiler]) {
            hasher.write_usize(part.len());
            hasher.write(part.as_bytes());
        }
        format!("{:032x}", u128::from(hasher.finish128()))
    }

    /// The version alone: "1.26.8" of "go version go1.26.8 linux/amd64", "17.0.16" of "javac 17.0.16".
    #[must_use]
    pub fn number(&self) -> &str {
        let words = self.version.split_whitespace();
        let mut numbers = words.map(|word| word.strip_prefix("go").unwrap_or(word));
        numbers.find(|word| word.starts_with(|c: char| c.is_ascii_digit())).unwrap_or("unknown")
    }

    /// "1.26" of "go version go1.26.8 linux/amd64"; a development version has the one that go.mod may
    /// name at least.
    fn go_language(&self) -> String {
        let number = self.version.split_whitespace().find_map(|word| word.strip_prefix("go1."));
        let minor = number.and_then(|text| text.split(|c: char| !c.is_ascii_digit()).next());
        format!("1.{}", minor.filter(|text| !text.is_empty()).unwrap_or("21"))
    }
}

/// No network, no user's settings, no other toolchain than the one that was found.
fn surroundings(runtime: Runtime, command: &mut Command) {
    match runtime {
        Runtime::Go => {
            for (key, value) in [
                ("GOFLAGS", "-mod=mod"),
                ("GOPROXY", "off"),
                ("GOTOOLCHAIN", "local"),
                ("GOENV", "off"),
                ("GOWORK", "off"),
                ("GO111MODULE", "on"),
                ("CGO_ENABLED", "0"),
            ] {
                command.env(key, value);
            }
            command.env_remove("GODEBUG").env_remove("GOFIPS140");
        }
        Runtime::Java => {
            command
                .env_remove("JAVA_TOOL_OPTIONS")
                .env_remove("JDK_JAVAC_OPTIONS")
                .env_remove("CLASSPATH");
            command.arg(format!("-J{NO_FIGURES}"));
        }
    }
}

/// Has a virtual machine write no figures for other programs into the temporary folder.
pub(crate) const NO_FIGURES: &str = "-XX:+PerfDisableSharedMem";

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(io("finding the cache"))
}

fn find_java(name: &str) -> Option<PathBuf> {
    match env::var_os("JAVA_HOME").filter(|home| !home.is_empty()) {
        Some(home) => Some(Path::new(&home).join("bin").join(name)).filter(|path| path.is_file()),
        None => find(name),
    }
}

fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    // An empty entry would be the current folder.
    let folders = env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn go(version: &str) -> Toolchain {
        Toolchain {
            runtime: Runtime::Go,
            compiler: "go".into(),
            launcher: None,
            version: version.to_owned(),
        }
    }

    #[test]
    fn the_language_is_the_toolchains() {
        assert_eq!(go("go version go1.26.8 linux/amd64").go_language(), "1.26");
        assert_eq!(go("go version go1.27rc1 linux/amd64").go_language(), "1.27");
        assert_eq!(go("go version devel linux/amd64").go_language(), "1.21");
    }

    #[test]
    fn the_version_is_a_number() {
        for (said, number) in [
            ("go version go1.26.8 linux/amd64", "1.26.8"),
            ("go version go1.27rc1 linux/amd64", "1.27rc1"),
            ("javac 17.0.16", "17.0.16"),
            ("", "unknown"),
        ] {
            assert_eq!(go(said).number(), number, "{said}");
        }
    }

    #[test]
    fn a_build_is_named_by_what_it_is_made_of() {
        let one = go("go version go1.26.8 linux/amd64");
        assert_eq!(one.key(), one.clone().key());
        assert_ne!(one.key(), go("go version go1.26.9 linux/amd64").key());
        assert_ne!(one.key(), Toolchain { runtime: Runtime::Java, ..one.clone() }.key());
    }

    #[test]
    fn a_toolchain_that_is_no_toolchain_fails_by_name() {
        let cache = tempfile::tempdir().unwrap();
        let error = Toolchain { compiler: "/bin/false".into(), ..go("go1.26") }
            .build(cache.path())
            .unwrap_err();
        assert!(matches!(error, Error::Build { runtime: Runtime::Go, .. }), "{error}");
        let error = Toolchain { compiler: "/nonexistent/go".into(), ..go("go1.26") }
            .build(cache.path())
            .unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0, "rests of a failed build");
    }
}
