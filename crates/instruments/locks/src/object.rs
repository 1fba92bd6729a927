//! The embedded objects.

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use child::MemoryFile;
use fault::{Explain, Fault};
use serde::{Deserialize, Serialize};

/// A shared object that a process is started with (`LD_PRELOAD`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Object {
    /// The C library's locks, counted.
    Count,
    /// Small locks in their place.
    Light,
}

/// An object cannot be put where a process can load it.
#[derive(Debug, thiserror::Error)]
#[error("writing {path}: {source}", path = path.display())]
pub struct ObjectError {
    path: PathBuf,
    source: std::io::Error,
}

impl Explain for ObjectError {
    fn fault(&self) -> Fault {
        Fault::Machine
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some("free some memory, or give a directory that can be written and mapped".into())
    }
}

impl Object {
    /// What it is called: `count` or `light`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Object::Count => "count",
            Object::Light => "light",
        }
    }

    fn bytes(self) -> &'static [u8] {
        match self {
            Object::Count => include_bytes!(concat!(env!("OUT_DIR"), "/count.so")),
            Object::Light => include_bytes!(concat!(env!("OUT_DIR"), "/light.so")),
        }
    }

    /// The object without a name: for programs that this process starts.
    ///
    /// # Errors
    /// [`ObjectError`] when there is no memory or no descriptor.
    pub fn in_memory(self) -> Result<MemoryFile, ObjectError> {
        let name = format!("wiretax-locks-{}.so", self.name());
        MemoryFile::sealed(&name, self.bytes())
            .map_err(|source| ObjectError { path: PathBuf::from(name), source })
    }

    /// Writes the object into `dir` and returns its path. A process that starts at the same time
    /// sees it whole or not at all.
    ///
    /// # Errors
    /// [`ObjectError`] when the directory cannot be written.
    pub fn write_to(self, dir: &Path) -> Result<PathBuf, ObjectError> {
        let path = dir.join(format!("wiretax-locks-{}.so", self.name()));
        let draft = dir.join(format!("wiretax-locks-{}.{}.so", self.name(), std::process::id()));
        let written = std::fs::File::create(&draft)
            .and_then(|mut file| file.write_all(self.bytes()))
            .and_then(|()| std::fs::rename(&draft, &path));
        match written {
            Ok(()) => Ok(path),
            Err(source) => Err(ObjectError { path, source }),
        }
    }

    /// Writes the object into `dir`, and has `command` start with it. Its own children inherit the
    /// variable unless it takes `LD_PRELOAD` out of their environment.
    ///
    /// # Errors
    /// As [`Object::write_to`].
    pub fn preload(self, dir: &Path, command: &mut Command) -> Result<(), ObjectError> {
        command.env("LD_PRELOAD", self.write_to(dir)?);
        Ok(())
    }
}

/// The object that this process was started with, if any.
#[must_use]
pub fn preloaded() -> Option<Object> {
    // SAFETY: the name is ended by a zero byte, and RTLD_DEFAULT needs no handle.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"wiretax_locks_object".as_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: only our objects export that name, and there it is a function of this type.
    let which = unsafe { std::mem::transmute::<*mut libc::c_void, extern "C" fn() -> i32>(found) };
    match which() {
        1 => Some(Object::Count),
        2 => Some(Object::Light),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_whole_shared_objects() {
        let dir = tempfile::tempdir().unwrap();
        for object in [Object::Count, Object::Light] {
            let path = object.write_to(dir.path()).unwrap();
            assert_eq!(&std::fs::read(&path).unwrap()[..4], b"\x7fELF");
            assert_eq!(object.write_to(dir.path()).unwrap(), path, "again, over itself");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
        assert!(Object::Count.write_to(&dir.path().join("absent")).is_err());
    }

    #[test]
    fn nothing_is_preloaded_unless_asked_for() {
        assert_eq!(preloaded(), None);
        assert!(crate::Counter::find().is_none());
    }
}
