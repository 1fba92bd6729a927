//! Counts of programs that are known to the instruction.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use callgrind::{Error, Invocation, Options, Part, per_handshake, profile};

/// A round: 5 x lock add and an exchange in the library, one lock add of its own, one barrier.
const LIBRARY: &str = r#"
unsigned long shared;
static __attribute__((noinline)) unsigned long deep(unsigned long n) {
    __asm__ volatile("lock xaddq %0, %1" : "+r"(n), "+m"(shared) : : "memory");
    return n;
}
unsigned long step_in_library(unsigned long n) {
    for (int i = 0; i < 5; i++)
        deep(n);
    __asm__ volatile("xchgq %0, %1" : "+r"(n), "+m"(shared) : : "memory");
    __asm__ volatile("lock orl $0, (%%rsp)" : : : "memory");
    __asm__ volatile("xchgq %%rax, %%rdx" : : : "rax", "rdx");
    return n;
}
"#;

const PROGRAM: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static unsigned long (*step)(unsigned long);
unsigned long own;
__attribute__((noinline)) void wiretax_server_step(void) {
    __asm__ volatile("lock addq $2, %0" : "+m"(own) : : "memory");
    step(own);
}
/* Not to be counted. */
__attribute__((noinline)) void wiretax_client_step(void) {
    __asm__ volatile("lock addq $2, %0" : "+m"(own) : : "memory");
}
int main(int count, char **values) {
    char word[16] = "";
    if (count < 3)
        return 2;
    if (strcmp(values[1], "fail") == 0) {
        fprintf(stderr, "no luck\n");
        return 3;
    }
    if (strcmp(values[1], "hang") == 0)
        for (;;)
            pause();
    void *library = dlopen(values[2], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return 4;
    step = (unsigned long (*)(unsigned long))dlsym(library, "step_in_library");
    if (!fgets(word, sizeof word, stdin))
        return 5;
    /* Start-up that differs in nothing but is no part of a round. */
    for (int i = 0; i < 1000; i++)
        step(1), wiretax_client_step();
    for (int i = atoi(values[1]); i > 0; i--)
        wiretax_server_step(), wiretax_client_step();
    printf("read %s", word);
    return 0;
}
"#;

struct Built {
    dir: tempfile::TempDir,
}

impl Built {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let compile = |name: &str, text: &str, flags: &[&str]| {
            let source = dir.path().join(format!("{name}.c"));
            std::fs::write(&source, text).unwrap();
            let mut command = Command::new("cc");
            command.args(["-O1", "-o"]).arg(dir.path().join(name)).arg(&source).args(flags);
            assert!(command.status().unwrap().success());
        };
        compile("library.so", LIBRARY, &["-shared", "-fPIC"]);
        compile("program", PROGRAM, &["-ldl"]);
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn run(&self, rounds: u64) -> Invocation {
        self.with(rounds.to_string(), rounds)
    }

    fn with(&self, first: String, handshakes: u64) -> Invocation {
        Invocation {
            program: self.path("program"),
            arguments: vec![first.into(), OsString::from(self.path("library.so"))],
            input: b"word\n".to_vec(),
            handshakes,
            ..Invocation::default()
        }
    }
}

fn accepted(wrote: &[u8]) -> Result<(), String> {
    if wrote == b"read word\n" { Ok(()) } else { Err(String::from_utf8_lossy(wrote).into()) }
}

fn part<'a>(parts: &'a [Part], object: &str, symbol: &str) -> &'a Part {
    let found = parts.iter().find(|part| part.object == object && part.symbol == symbol);
    found.unwrap_or_else(|| panic!("{object} {symbol}: {parts:#?}"))
}

/// Without Valgrind they cannot say anything.
fn has_valgrind() -> bool {
    let there = Command::new("valgrind").arg("--version").output().is_ok();
    if !there {
        lab_test::skipped(lab_test::Need::Valgrind, "valgrind is not installed");
    }
    there
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_round_is_counted_to_the_instruction() {
    if !has_valgrind() {
        return;
    }
    let built = Built::new();
    let step = "wiretax_server_step";
    let count = |few, many| {
        per_handshake(&built.run(few), &built.run(many), step, &Options::default(), accepted)
    };
    let counts = count(3, 10).unwrap();
    assert_eq!(counts.handshakes, 7);
    assert_eq!(counts.atomic_rmw, Some(7.0), "{counts:#?}");
    assert_eq!((counts.fences, counts.unread), (Some(1.0), 0.0));
    let library = part(&counts.by_object, "library.so", "");
    assert_eq!(library.atomic_rmw, Some(6.0));
    assert_eq!(part(&counts.by_object, "program", "").atomic_rmw, Some(1.0));
    assert_eq!(part(&counts.by_symbol, "library.so", "deep").atomic_rmw, Some(5.0));
    // xadd, (a move,) return: by the compiler's choice, but the same number each time.
    let deep = part(&counts.by_symbol, "library.so", "deep").instructions;
    assert_eq!(deep % 5.0, 0.0);
    assert_eq!(counts.by_symbol[0].symbol, "deep", "the most atomic first");
    assert_eq!(counts.by_object.len(), 2, "the client's step is not there: {counts:#?}");
    // Of other extents, the same.
    let again = count(1, 21).unwrap();
    assert_eq!(again.handshakes, 20);
    assert_eq!((again.instructions, again.by_symbol), (counts.instructions, counts.by_symbol));
}

#[test]
fn what_fails_is_reported() {
    if !has_valgrind() {
        return;
    }
    let built = Built::new();
    let options = Options { timeout: Duration::from_secs(120), ..Options::default() };
    let run = |invocation: &Invocation, symbol: &str, options: &Options| {
        profile(invocation, symbol, options, accepted).unwrap_err()
    };
    let error = run(&built.run(2), "wiretax_absent_step", &options);
    assert!(matches!(error, Error::NothingCollected { .. }), "{error}");
    let error = run(&built.with("fail".into(), 1), "wiretax_server_step", &options);
    assert!(error.to_string().contains("no luck"), "{error}");
    let short = Options { timeout: Duration::from_millis(1500), ..options.clone() };
    let error = run(&built.with("hang".into(), 1), "wiretax_server_step", &short);
    assert!(matches!(error, Error::Timeout(_)), "{error}");
    let mut other = built.run(1);
    other.input = b"other\n".to_vec();
    let error = run(&other, "wiretax_server_step", &options);
    assert!(matches!(&error, Error::Refused(text) if text.contains("other")), "{error}");
    let absent = Invocation { program: built.path("absent"), ..built.run(1) };
    let error = run(&absent, "wiretax_server_step", &options);
    assert!(matches!(error, Error::Program { .. }), "{error}");
}

#[test]
fn without_valgrind_its_package_is_named() {
    let options = Options { valgrind: Path::new("/nowhere/valgrind").into(), ..Options::default() };
    let run = Invocation { program: "true".into(), handshakes: 1, ..Invocation::default() };
    let error = profile(&run, "step", &options, |_| Ok(())).unwrap_err();
    let remedy = fault::Explain::remedy(&error).unwrap_or_default();
    assert!(remedy.contains("apt install valgrind"), "{error}: {remedy}");
    let more = Invocation { handshakes: 1, ..run.clone() };
    let error = per_handshake(&run, &more, "step", &options, |_| Ok(())).unwrap_err();
    assert!(matches!(error, Error::Handshakes { few: 1, many: 1 }), "{error}");
    let error = profile(&run, "step*", &options, |_| Ok(())).unwrap_err();
    assert!(matches!(error, Error::Symbol(_)), "{error}");
}
