//! From return addresses to the functions that they return into.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};

use crate::names;

/// Files that are larger than this are not read for symbols, in bytes.
const FILE_MAX: u64 = 1 << 30;
/// The beginning of the name under which a file in memory is mapped (memfd_create(2)).
const NAMELESS: &str = "/memfd:";

/// A mapped part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    path: String,
}

/// The lines of /proc/PID/maps that are of files (proc_pid_maps(5)).
fn parse_maps(text: &str) -> Vec<Mapping> {
    text.lines().filter_map(parse_mapping).collect()
}

fn parse_mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let _permissions = fields.next()?;
    let offset = fields.next()?;
    let path = fields.nth(2)?.trim_start();
    path.starts_with('/').then_some(())?;
    Some(Mapping {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        offset: u64::from_str_radix(offset, 16).ok()?,
        path: path.to_owned(),
    })
}

/// The functions of a file.
#[derive(Debug, Default)]
struct File {
    /// Its loaded segments: offset in the file, size there, address.
    segments: Vec<(u64, u64, u64)>,
    /// Address, size and name; ascending.
    functions: Vec<(u64, u64, String)>,
}

impl File {
    fn read(path: &Path) -> Self {
        let nameless = nameless(path);
        let path = nameless.as_deref().unwrap_or(path);
        let small = std::fs::metadata(path).is_ok_and(|file| file.len() <= FILE_MAX);
        let bytes = if small { std::fs::read(path).unwrap_or_default() } else { Vec::new() };
        Self::parse(&bytes)
    }

    /// A file that is no object has no functions.
    fn parse(bytes: &[u8]) -> Self {
        let Ok(file) = object::File::parse(bytes) else { return Self::default() };
        let segments = file
            .segments()
            .map(|segment| {
                let (offset, size) = segment.file_range();
                (offset, size, segment.address())
            })
            .collect();
        let mut functions: Vec<(u64, u64, String)> = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() != 0)
            .filter_map(|symbol| {
                Some((symbol.address(), symbol.size(), symbol.name().ok()?.to_owned()))
            })
            .collect();
        functions.sort();
        // Of several names for one function, the first by size and alphabet, always the same.
        functions.dedup_by_key(|function| function.0);
        Self { segments, functions }
    }

    fn address_of(&self, offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|&(start, size, address)| {
            let inside = offset.checked_sub(start).filter(|&inside| inside < size)?;
            address.checked_add(inside)
        })
    }

    fn function_at(&self, address: u64) -> Option<&str> {
        let after = self.functions.partition_point(|function| function.0 <= address);
        let (start, size, name) = self.functions.get(after.checked_sub(1)?)?;
        // Assembly may not say how long it is.
        (*size == 0 || address - start < *size).then_some(name.as_str())
    }
}

/// Where a file in memory can be read that is mapped under this name: at a descriptor of this process.
fn nameless(name: &Path) -> Option<PathBuf> {
    name.to_str()?.strip_prefix(NAMELESS)?;
    let descriptors = std::fs::read_dir("/proc/self/fd").ok()?.flatten();
    let mut descriptors = descriptors.map(|entry| entry.path());
    descriptors.find(|path| std::fs::read_link(path).is_ok_and(|target| target == name))
}

/// A mapped file's name for people.
fn shown(path: &str) -> &str {
    match path.strip_prefix(NAMELESS) {
        Some(name) => name.strip_suffix(" (deleted)").unwrap_or(name),
        None => path.rsplit('/').next().unwrap_or(path),
    }
}

/// What is mapped into this process, and the symbols of its files as they are asked for.
pub(crate) struct Symbols {
    mappings: Vec<Mapping>,
    files: HashMap<String, File>,
    own: Option<String>,
}

impl Symbols {
    /// Of the process as it is now.
    pub(crate) fn of_this_process() -> Self {
        let text = std::fs::read("/proc/self/maps").unwrap_or_default();
        let mappings = parse_maps(&String::from_utf8_lossy(&text));
        let mut symbols = Self { mappings, files: HashMap::new(), own: None };
        // SAFETY: the name is ended by a zero byte, and RTLD_DEFAULT needs no handle.
        let counter = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"wiretax_locks_side".as_ptr()) };
        symbols.own = symbols.mapping(counter as u64).map(|mapping| mapping.path.clone());
        symbols
    }

    fn mapping(&self, address: u64) -> Option<&Mapping> {
        self.mappings.iter().find(|mapping| (mapping.start..mapping.end).contains(&address))
    }

    /// The function that wanted the lock, and its file: of the frames, innermost first, the first
    /// that is neither ours nor a wrapper around locks; where all are wrappers, the outermost.
    pub(crate) fn site(&mut self, frames: &[u64]) -> (String, String) {
        let mut outermost = None;
        for &frame in frames {
            // It returns to after the call: the call itself is in the function.
            let Some((name, path)) = self.function(frame.saturating_sub(1)) else { continue };
            if Some(&path) == self.own.as_ref() {
                continue;
            }
            let object = shown(&path).to_owned();
            if !names::is_wrapper(&name) {
                return (name, object);
            }
            outermost = Some((name, object));
        }
        outermost.unwrap_or_else(|| ("unknown".to_owned(), String::new()))
    }

    fn function(&mut self, address: u64) -> Option<(String, String)> {
        let mapping = self.mapping(address)?;
        let path = mapping.path.clone();
        let offset = (address - mapping.start).checked_add(mapping.offset)?;
        let file =
            self.files.entry(path.clone()).or_insert_with_key(|path| File::read(Path::new(path)));
        let place = file.address_of(offset).unwrap_or(offset);
        let name = match file.function_at(place) {
            Some(symbol) => names::plain(symbol),
            None => format!("{}+{place:#x}", shown(&path)),
        };
        Some((name, path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_read() {
        let text = "55aa0000-55ab0000 r-xp 00001000 fe:01 77   /usr/lib/a b.so\n\
                    7f000000-7f001000 rw-p 00000000 00:00 0 \n\
                    7ffd0000-7ffe0000 r-xp 00000000 00:00 0   [vdso]\nrubbish\n-\n";
        let found = parse_maps(text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].path, "/usr/lib/a b.so");
        assert_eq!(
            (found[0].start, found[0].end, found[0].offset),
            (0x55aa_0000, 0x55ab_0000, 4096)
        );
    }

    #[test]
    fn a_function_is_found_by_an_address_inside_it() {
        let file = File {
            segments: vec![(0, 0x100, 0x1000), (0x100, 0x100, 0x3000)],
            functions: vec![(0x3000, 16, "a".into()), (0x3020, 0, "b".into())],
        };
        assert_eq!(file.address_of(0x10f), Some(0x300f));
        assert_eq!(file.address_of(0x200), None);
        assert_eq!(file.function_at(0x300f), Some("a"));
        assert_eq!(file.function_at(0x3010), None);
        assert_eq!(file.function_at(0x3030), Some("b"));
        assert_eq!(file.function_at(0x2fff), None);
    }

    #[test]
    fn a_file_that_is_no_object_has_no_functions() {
        for bytes in [&b""[..], b"#!/bin/sh\n", b"\x7fELF\x02\x01\x01"] {
            assert!(File::parse(bytes).functions.is_empty());
        }
    }

    #[test]
    fn a_file_in_memory_is_read_by_its_descriptor() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        let file = child::MemoryFile::sealed("some library.so", &program).unwrap();
        let mapped = std::fs::read_link(file.path()).unwrap();
        let mapped = mapped.to_str().unwrap();
        assert_eq!(mapped, "/memfd:some library.so (deleted)");
        assert!(!File::read(Path::new(mapped)).functions.is_empty());
        assert_eq!((shown(mapped), shown("/usr/lib/a.so")), ("some library.so", "a.so"));
        drop(file);
        assert!(File::read(Path::new("/memfd:none (deleted)")).functions.is_empty());
    }

    #[inline(never)]
    fn somewhere() -> u64 {
        somewhere as fn() -> u64 as usize as u64
    }

    #[test]
    fn this_test_finds_its_own_function() {
        let (name, _) = Symbols::of_this_process().site(&[somewhere() + 2]);
        assert!(name.contains("somewhere"), "{name}");
    }
}
