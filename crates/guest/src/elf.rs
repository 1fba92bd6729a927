//! What programs, libraries and kernel modules say of themselves: ELF files of 64 bits.

use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_STRSZ, DT_STRTAB, FileHeader64};
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _};
use object::{Endianness, Object as _, ObjectSection as _};

/// What a program or a library needs to be loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// The loader, as a path; a library has none.
    pub(crate) loader: Option<String>,
    /// Libraries by name.
    pub(crate) libraries: Vec<String>,
    /// Folders in which it wants them looked for first; `$ORIGIN` is its own.
    pub(crate) folders: Vec<String>,
}

/// What a program or library needs; `None` if the bytes are no ELF file of 64 bits.
pub(crate) fn needs(bytes: &[u8]) -> Option<Needs> {
    let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, bytes).ok()?;
    let mut needs = Needs::default();
    let mut entries = Vec::new();
    for segment in segments {
        if let Some(loader) = segment.interpreter(endian, bytes).ok()? {
            needs.loader = Some(String::from_utf8_lossy(loader).into_owned());
        }
        for entry in segment.dynamic(endian, bytes).ok()?.unwrap_or_default() {
            entries.push((entry.tag32(endian)?, entry.d_val(endian)));
        }
    }
    let value = |tag| entries.iter().find(|(is, _)| *is == tag).map(|(_, value)| *value);
    let Some((at, size)) = value(DT_STRTAB).zip(value(DT_STRSZ)) else { return Some(needs) };
    let found = |segment: &object::elf::ProgramHeader64<Endianness>| {
        segment.data_range(endian, bytes, at, size).ok().flatten()
    };
    let strings = segments.iter().find_map(found)?;
    for (tag, value) in entries {
        let text = || text_at(strings, value);
        match tag {
            DT_NEEDED => needs.libraries.push(text()?),
            DT_RUNPATH | DT_RPATH => {
                needs.folders.extend(text()?.split(':').map(str::to_owned));
            }
            _ => {}
        }
    }
    Some(needs)
}

fn text_at(strings: &[u8], at: u64) -> Option<String> {
    let text = strings.get(usize::try_from(at).ok()?..)?;
    let end = text.iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(text.get(..end)?).into_owned())
}

/// A program or library without what is not loaded: sections, symbols, what debuggers read. Other files
/// stay as they are.
pub(crate) fn loaded_part(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(end) = end_of_segments(&bytes) {
        bytes.truncate(end);
        // No table of sections (e_shoff; e_shentsize, e_shnum, e_shstrndx).
        for range in [0x28..0x30, 0x3a..0x40] {
            if let Some(field) = bytes.get_mut(range) {
                field.fill(0);
            }
        }
    }
    bytes
}

fn end_of_segments(bytes: &[u8]) -> Option<usize> {
    let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, bytes).ok()?;
    let ends = segments.iter().map(|segment| {
        let (at, size) = segment.file_range(endian);
        at.checked_add(size)
    });
    let end = ends.collect::<Option<Vec<_>>>()?.into_iter().max()?;
    usize::try_from(end).ok().filter(|end| (64..=bytes.len()).contains(end))
}

/// What stands behind a signed module (`include/linux/module_signature.h` of the kernel).
const SIGNED: &[u8] = b"~Module signature appended~\n";
/// Bytes of the signature's description before that, of which the last four are its length.
const SIGNATURE: usize = 12;

/// A kernel module without its signature, whose check takes a guest longer than all else of loading it.
pub(crate) fn unsigned(mut module: Vec<u8>) -> Vec<u8> {
    if let Some(length) = length_unsigned(&module) {
        module.truncate(length);
    }
    module
}

fn length_unsigned(module: &[u8]) -> Option<usize> {
    let signed = module.strip_suffix(SIGNED)?;
    let length = u32::from_be_bytes(*signed.last_chunk::<4>()?);
    signed.len().checked_sub(SIGNATURE)?.checked_sub(usize::try_from(length).ok()?)
}

/// What a kernel module says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ModuleInfo {
    /// Modules that it cannot be loaded without.
    pub(crate) depends: Vec<String>,
    /// Modules that should be there first, if there are such.
    pub(crate) wants: Vec<String>,
    /// Other names by which the kernel asks for it.
    pub(crate) aliases: Vec<String>,
}

/// What a kernel module says of itself; `None` if the bytes are no module.
pub(crate) fn module_info(bytes: &[u8]) -> Option<ModuleInfo> {
    let file = object::File::parse(bytes).ok()?;
    let section = file.section_by_name(".modinfo")?;
    Some(read_module_info(section.data().ok()?))
}

/// The section's text: `name=value`, each ended by a zero.
fn read_module_info(section: &[u8]) -> ModuleInfo {
    let mut info = ModuleInfo::default();
    for line in section.split(|byte| *byte == 0) {
        let Ok(line) = std::str::from_utf8(line) else { continue };
        match line.split_once('=') {
            Some(("depends", list)) => {
                let names = list.split(',').filter(|name| !name.is_empty());
                info.depends.extend(names.map(str::to_owned));
            }
            Some(("softdep", list)) => {
                // `pre: a b post: c`
                let before = list.split("post:").next().unwrap_or_default();
                let names = before.split_whitespace().filter(|word| *word != "pre:");
                info.wants.extend(names.map(str::to_owned));
            }
            Some(("alias", name)) => info.aliases.push(name.to_owned()),
            _ => {}
        }
    }
    info
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    fn this_program() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    static BEGINNING: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let mut bytes = this_program();
        bytes.truncate(4096);
        bytes
    });

    #[test]
    fn a_program_names_its_loader_and_the_c_library() {
        let needs = needs(&this_program()).unwrap();
        assert!(needs.loader.unwrap().contains("ld-linux"));
        assert!(
            needs.libraries.iter().any(|name| name.starts_with("libc.so")),
            "{:?}",
            needs.libraries
        );
    }

    #[test]
    fn what_is_not_loaded_is_left_out_and_the_rest_says_the_same() {
        let whole = this_program();
        let (length, before) = (whole.len(), needs(&whole));
        let less = loaded_part(whole);
        assert!(less.len() < length, "{} of {length}", less.len());
        assert_eq!(needs(&less), before);
        assert_eq!(loaded_part(b"#!/bin/sh\n".to_vec()), b"#!/bin/sh\n");
    }

    #[test]
    fn a_module_says_what_it_needs() {
        let section = b"license=GPL\0depends=ipv6,udp_tunnel\0alias=rtnl-link-wireguard\0\
            softdep=pre: crypto-gcm crypto-ctr post: late\0depends=\0\xff\0";
        let info = read_module_info(section);
        assert_eq!(info.depends, ["ipv6", "udp_tunnel"]);
        assert_eq!(info.aliases, ["rtnl-link-wireguard"]);
        assert_eq!(info.wants, ["crypto-gcm", "crypto-ctr"]);
        assert_eq!(module_info(b"no module"), None);
    }

    #[test]
    fn a_signature_is_cut_off_and_nothing_else() {
        let mut signed = b"module".to_vec();
        signed.extend([9; 5]);
        signed.extend([0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 5]);
        signed.extend(SIGNED);
        assert_eq!(unsigned(signed.clone()), b"module");
        assert_eq!(unsigned(b"module".to_vec()), b"module");
        // A length beyond the file's.
        let damaged = signed.split_off(6);
        assert_eq!(unsigned(damaged.clone()).len(), 0);
        assert_eq!(unsigned(damaged[1..].to_vec()), damaged[1..]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>(),
        ) {
            // A small ELF file: the header of this program, damaged.
            let mut bytes = BEGINNING.clone();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes.truncate(cut.index(4096));
            let _ = (needs(&bytes), module_info(&bytes));
            let _ = loaded_part(bytes);
        }
    }
}
