//! Inside a guest. The program is there under three names: as the first process, which sets the machine up
//! and carries bytes in and out; as the process that does the job; and as what the kernel calls when it wants
//! a module.

mod init;
pub(crate) mod places;
pub(crate) mod ports;

use std::ffi::OsStr;
use std::fs;
use std::fs::File;
use std::io;
use std::path::Path;

use host::Registry;
use rustix::system::finit_module;

use crate::boot::Boot;
use crate::modules::List;

/// The variable that says what the program is in the guest.
pub(crate) const ROLE: &str = "WIRETAX_GUEST";
/// Its value in the first process: the kernel takes it from its command line.
pub(crate) const FIRST: &str = "first";
/// Its value in the process that does the job.
const WORKER: &str = "worker";

/// To be called first thing in `main`, before any thread is started, by a program that can be a guest's: inside
/// a guest it does the jobs of these workers, and does not return; elsewhere it returns at once.
///
/// In the guest [`lab::entered`] is true: the machine is the lab's alone.
pub fn init_if_guest(workers: impl FnOnce() -> Registry) {
    let by_kernel = std::env::args_os().next().is_some_and(|name| is_modprobe(&name));
    let role = std::env::var_os(ROLE);
    if (!by_kernel && role.is_none()) || !Path::new("/").join(places::LIST).is_file() {
        return;
    }
    let well = match role.as_deref().and_then(OsStr::to_str) {
        _ if by_kernel => modprobe(),
        Some(FIRST) => init::run(),
        Some(WORKER) => work(&workers().with(Boot)),
        _ => return,
    };
    // Nothing of `main` is to happen.
    std::process::exit(if well { 0 } else { 1 })
}

fn is_modprobe(name: &OsStr) -> bool {
    Path::new(name).file_name() == Some(OsStr::new("modprobe"))
}

/// Does the job that is on standard input; whether it went well.
fn work(workers: &Registry) -> bool {
    let served = lab::alone().map_err(|error| error.to_string()).and_then(|_| {
        host::serve(workers, &mut io::stdin().lock(), &mut io::stdout().lock())
            .map_err(|error| error.to_string())
    });
    if let Err(error) = &served {
        eprintln!("the guest cannot do its job: {error}");
    }
    served.is_ok()
}

/// The modules of this guest.
fn list() -> List {
    let text = fs::read_to_string(Path::new("/").join(places::LIST));
    List::read(&text.unwrap_or_default())
}

/// Loads a module. One that is there is as good.
fn load(name: &str) -> io::Result<()> {
    let file = File::open(Path::new("/").join(places::module(name)))?;
    match finit_module(&file, c"", 0) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// What the kernel calls as `modprobe -q -- NAME`; whether it is loaded.
fn modprobe() -> bool {
    let mut words = std::env::args_os().skip(1).filter_map(|word| word.into_string().ok());
    let asked = words.find(|word| !word.starts_with('-'));
    let list = list();
    let names = asked.as_deref().map(|asked| list.for_request(asked)).unwrap_or_default();
    !names.is_empty() && names.into_iter().all(|name| load(name).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elsewhere_nothing_happens() {
        init_if_guest(|| panic!("no workers are wanted"));
        assert!(is_modprobe(OsStr::new("/sbin/modprobe")) && !is_modprobe(OsStr::new("/init")));
    }
}
