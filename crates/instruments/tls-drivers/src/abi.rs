//! The driver interface as Rust sees it: `drivers/include/wiretax_driver.h`, member by member.

use std::ffi::{c_char, c_int, c_void};

/// `WT_ABI`: the interface's version.
pub(crate) const ABI: u32 = 1;

pub(crate) const OK: c_int = 0;
pub(crate) const AGAIN: c_int = 1;
pub(crate) const CLOSED: c_int = 2;
pub(crate) const ERROR: c_int = -1;
pub(crate) const UNSUPPORTED: c_int = -2;

/// What a call returns, by its name in the header (`WT_STATUS_TABLE`).
const STATUSES: [(&str, c_int); 5] = [
    ("WT_OK", OK),
    ("WT_AGAIN", AGAIN),
    ("WT_CLOSED", CLOSED),
    ("WT_ERROR", ERROR),
    ("WT_UNSUPPORTED", UNSUPPORTED),
];

/// A status for people: its name, or its number where that is none of the interface's.
pub(crate) fn status_text(status: c_int) -> String {
    let found = STATUSES.iter().find(|(_, number)| *number == status);
    found.map_or_else(
        || format!("{status}, which is not a known status"),
        |(name, _)| (*name).to_owned(),
    )
}

pub(crate) const IO_END: isize = 0;
pub(crate) const IO_AGAIN: isize = -1;
pub(crate) const IO_BROKEN: isize = -2;

#[repr(C)]
pub(crate) struct Transport {
    pub(crate) user: *mut c_void,
    pub(crate) recv: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> isize,
    pub(crate) send: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> isize,
}

#[repr(C)]
pub(crate) struct Pem {
    pub(crate) text: *const c_char,
    pub(crate) len: usize,
}

#[repr(C)]
pub(crate) struct Bytes {
    pub(crate) bytes: *const u8,
    pub(crate) len: usize,
}

#[repr(C)]
pub(crate) struct Ech {
    pub(crate) size: u32,
    pub(crate) placeholder: u32,
    pub(crate) configs: Bytes,
    pub(crate) key: Bytes,
}

pub(crate) const ECH_NONE: u32 = 0;
pub(crate) const ECH_ACCEPTED: u32 = 1;
pub(crate) const ECH_REJECTED: u32 = 2;

#[repr(C)]
pub(crate) struct Config {
    pub(crate) size: u32,
    pub(crate) server: u32,
    pub(crate) version: u32,
    pub(crate) cipher: u32,
    pub(crate) group: u32,
    pub(crate) signature: u32,
    pub(crate) tickets: u32,
    pub(crate) certificate_group: u32,
    pub(crate) chain: Pem,
    pub(crate) key: Pem,
    pub(crate) roots: Pem,
    pub(crate) server_name: *const c_char,
    pub(crate) sessions: u32,
    pub(crate) ech: *const Ech,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Facts {
    pub(crate) size: u32,
    pub(crate) version: u32,
    pub(crate) cipher: u32,
    pub(crate) group: u32,
    pub(crate) resumed: u32,
    pub(crate) ech: u32,
}

/// Opaque to us.
#[repr(C)]
pub(crate) struct RawContext([u8; 0]);
/// Opaque to us.
#[repr(C)]
pub(crate) struct RawConn([u8; 0]);
/// Opaque to us.
#[repr(C)]
pub(crate) struct RawSession([u8; 0]);

type Text = unsafe extern "C" fn() -> *const c_char;

#[repr(C)]
pub(crate) struct Driver {
    pub(crate) abi: u32,
    pub(crate) size: u32,
    pub(crate) library: *const c_char,
    pub(crate) version: Option<Text>,
    pub(crate) build_flags: Option<Text>,
    pub(crate) cpu_features: Option<Text>,
    pub(crate) functions: Option<unsafe extern "C" fn() -> u64>,
    pub(crate) init: Option<unsafe extern "C" fn() -> c_int>,
    pub(crate) error: Option<unsafe extern "C" fn(*mut c_char, usize)>,
    pub(crate) context_new:
        Option<unsafe extern "C" fn(*const Config, *mut *mut RawContext) -> c_int>,
    pub(crate) context_free: Option<unsafe extern "C" fn(*mut RawContext)>,
    pub(crate) conn_new: Option<
        unsafe extern "C" fn(
            *mut RawContext,
            *const Transport,
            *const RawSession,
            *mut *mut RawConn,
        ) -> c_int,
    >,
    pub(crate) handshake: Option<unsafe extern "C" fn(*mut RawConn) -> c_int>,
    pub(crate) read:
        Option<unsafe extern "C" fn(*mut RawConn, *mut c_void, usize, *mut usize) -> c_int>,
    pub(crate) write:
        Option<unsafe extern "C" fn(*mut RawConn, *const c_void, usize, *mut usize) -> c_int>,
    pub(crate) shutdown: Option<unsafe extern "C" fn(*mut RawConn) -> c_int>,
    pub(crate) facts: Option<unsafe extern "C" fn(*mut RawConn, *mut Facts) -> c_int>,
    pub(crate) take_session: Option<unsafe extern "C" fn(*mut RawConn) -> *mut RawSession>,
    pub(crate) session_free: Option<unsafe extern "C" fn(*mut RawSession)>,
    pub(crate) conn_free: Option<unsafe extern "C" fn(*mut RawConn)>,
    pub(crate) thread_end: Option<unsafe extern "C" fn()>,
    /// From here on members may be missing: [`LEAST_DRIVER`].
    pub(crate) ech_retry:
        Option<unsafe extern "C" fn(*mut RawConn, *mut c_void, usize, *mut usize) -> c_int>,
    pub(crate) server_name:
        Option<unsafe extern "C" fn(*mut RawConn, *mut c_char, usize, *mut usize) -> c_int>,
}

/// Bytes of a table without the members that may be missing.
pub(crate) const LEAST_DRIVER: usize = std::mem::offset_of!(Driver, ech_retry);

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Sessions;

    pub(crate) const HEADER: &str = include_str!("../../../../drivers/include/wiretax_driver.h");
    /// The same in Rust, for drivers of rustls.
    pub(crate) const SHIM: &str = include_str!("../../../../drivers/rustls-shim/src/abi.rs");

    /// The rows of the header's table: `STATUS(WT_OK, 0, "...")`.
    fn in_the_header() -> Vec<(String, c_int)> {
        let rows = HEADER.lines().filter_map(|line| line.trim().strip_prefix("STATUS("));
        let row = |row: &str| {
            let mut parts = row.split(", ");
            (parts.next().unwrap().to_owned(), parts.next().unwrap().parse().unwrap())
        };
        rows.map(row).collect()
    }

    #[test]
    fn statuses_are_those_of_the_headers_table() {
        let own: Vec<(String, c_int)> =
            STATUSES.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect();
        assert_eq!(own, in_the_header());
        for (name, number) in STATUSES {
            let line = format!("pub const {}: c_int = {number};", name.trim_start_matches("WT_"));
            assert!(SHIM.contains(&line), "{line}");
            assert_eq!(status_text(number), name);
        }
        assert_eq!(status_text(77), "77, which is not a known status");
    }

    #[test]
    fn ways_to_resume_are_the_headers_and_the_shims() {
        for way in Sessions::ALL {
            let (name, number) = (way.to_string().to_uppercase(), way.number());
            assert!(HEADER.contains(&format!("WT_SESSIONS_{name} = {number}")), "{name}");
            let line = format!("pub const SESSIONS_{name}: u32 = {number};");
            assert!(SHIM.contains(&line), "{line}");
        }
        assert!(HEADER.contains("#define WT_SESSIONS_HELD 20480\n"));
        assert!(SHIM.contains("pub const SESSIONS_HELD: usize = 20_480;"));
        // The member is the last: a driver from before it reads all the others where they were.
        assert_eq!(std::mem::offset_of!(Config, sessions), 88);
        assert_eq!(std::mem::offset_of!(rustls_shim::abi::Config, sessions), 88);
    }

    #[test]
    fn what_ech_added_stands_behind_all_else() {
        use std::mem::offset_of;
        assert_eq!((offset_of!(Config, ech), size_of::<Config>()), (96, 104));
        assert_eq!((offset_of!(Facts, ech), size_of::<Facts>()), (20, 24));
        assert_eq!(LEAST_DRIVER, size_of::<rustls_shim::abi::Driver>());
        assert_eq!(size_of::<Driver>(), LEAST_DRIVER + 16);
        // A driver of rustls is from before it.
        assert_eq!(size_of::<rustls_shim::abi::Config>(), offset_of!(Config, ech));
        assert_eq!(size_of::<rustls_shim::abi::Facts>(), offset_of!(Facts, ech));
        assert_eq!((offset_of!(Ech, configs), offset_of!(Ech, key), size_of::<Ech>()), (8, 24, 40));
        let answers = [("NONE", ECH_NONE), ("ACCEPTED", ECH_ACCEPTED), ("REJECTED", ECH_REJECTED)];
        for (name, number) in answers {
            assert!(HEADER.contains(&format!("WT_ECH_{name} = {number}")), "{name}");
        }
    }

    /// The compiler of C has the last word on where members lie.
    #[test]
    fn members_lie_where_the_header_has_them() {
        use std::mem::offset_of;
        if lab_test::program("cc").is_none() {
            lab_test::skip!(lab_test::Need::Cc, "there is no C compiler");
        }
        let folder = tempfile::tempdir().unwrap();
        let places = [
            ("struct wt_config, sessions", offset_of!(Config, sessions)),
            ("struct wt_config, ech", offset_of!(Config, ech)),
            ("struct wt_facts, ech", offset_of!(Facts, ech)),
            ("struct wt_ech, placeholder", offset_of!(Ech, placeholder)),
            ("struct wt_ech, configs", offset_of!(Ech, configs)),
            ("struct wt_ech, key", offset_of!(Ech, key)),
            ("struct wt_bytes, len", offset_of!(Bytes, len)),
            ("struct wt_driver, thread_end", offset_of!(Driver, thread_end)),
            ("struct wt_driver, ech_retry", offset_of!(Driver, ech_retry)),
            ("struct wt_driver, server_name", offset_of!(Driver, server_name)),
        ];
        let mut text = "#include \"wiretax_driver.h\"\n".to_owned();
        for (member, place) in places {
            text += &format!("_Static_assert(offsetof({member}) == {place}, \"{member}\");\n");
        }
        let file = folder.path().join("places.c");
        std::fs::write(&file, text).unwrap();
        let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../drivers/include");
        let mut cc = std::process::Command::new("cc");
        let output = cc.args(["-fsyntax-only", "-I", include]).arg(&file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    #[test]
    fn ends_of_a_transport_and_the_version_are_the_headers() {
        let define = |name: &str| {
            let line =
                HEADER.lines().find_map(|line| line.strip_prefix(&format!("#define {name} ")));
            let word = line.unwrap().split_whitespace().next().unwrap();
            word.trim_matches(['(', ')', 'u']).parse::<isize>().unwrap()
        };
        assert_eq!(define("WT_ABI"), ABI as isize);
        let ends = [("WT_IO_END", IO_END), ("WT_IO_AGAIN", IO_AGAIN), ("WT_IO_BROKEN", IO_BROKEN)];
        for (name, number) in ends {
            assert_eq!(define(name), number, "{name}");
        }
    }
}
