//! The mirror of the header, what the drivers say of themselves, and calls that break the rules.

#[allow(dead_code, reason = "each test file uses a part")]
mod common;

use std::fmt::Write as _;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;
use std::ptr::{null, null_mut};

use common::{Context, Key, Pair, Pins, by_name, identity};
use rustls_shim::abi::{self, Config, Driver, Facts, Pem, Transport};

const OURS: [&str; 2] = ["rustls-aws-lc-rs", "rustls-ring"];
const PINS: Pins = Pins { version: 0x0304, cipher: 0x1301, group: 29, signature: 0x0403 };

/// A C compiler finds every member of the header where the mirror has it, which ends where the header has what ECH added.
#[test]
fn the_mirror_is_the_header() {
    let mut source = "#include <wiretax_driver.h>\n".to_owned();
    macro_rules! same {
        ($mirror:ty, $name:literal, $end:literal, $($member:ident)*) => {
            writeln!(source, "_Static_assert({} == {}, \"\");", $end, size_of::<$mirror>()).unwrap();
            $(writeln!(source, "_Static_assert(offsetof(struct {}, {}) == {}, \"\");",
                $name, stringify!($member), offset_of!($mirror, $member)).unwrap();)*
        };
    }
    same!(Transport, "wt_transport", "sizeof(struct wt_transport)", user recv send);
    same!(Pem, "wt_pem", "sizeof(struct wt_pem)", text len);
    same!(Config, "wt_config", "offsetof(struct wt_config, ech)", size server version cipher group signature tickets certificate_group chain key roots
        server_name sessions);
    same!(Facts, "wt_facts", "offsetof(struct wt_facts, ech)", size version cipher group resumed);
    same!(Driver, "wt_driver", "offsetof(struct wt_driver, ech_retry)", abi size library version build_flags cpu_features functions init error context_new
        context_free conn_new handshake read write shutdown facts take_session session_free conn_free thread_end);
    for (name, value) in [
        ("WT_ABI", i64::from(abi::ABI)),
        ("WT_OK", abi::OK.into()),
        ("WT_AGAIN", abi::AGAIN.into()),
        ("WT_CLOSED", abi::CLOSED.into()),
        ("WT_ERROR", abi::ERROR.into()),
        ("WT_UNSUPPORTED", abi::UNSUPPORTED.into()),
        ("WT_IO_END", abi::IO_END as i64),
        ("WT_IO_AGAIN", abi::IO_AGAIN as i64),
        ("WT_IO_BROKEN", abi::IO_BROKEN as i64),
        ("WT_TLS_1_2", abi::TLS_1_2 as i64),
        ("WT_TLS_1_3", abi::TLS_1_3 as i64),
        ("WT_EARLY_DATA", abi::EARLY_DATA as i64),
        ("WT_QUIC_TLS", abi::QUIC_TLS as i64),
        ("WT_POST_QUANTUM", abi::POST_QUANTUM as i64),
        ("WT_FIPS", abi::FIPS as i64),
        ("WT_ECH", abi::ECH as i64),
    ] {
        writeln!(source, "_Static_assert({name} == {value}, \"\");").unwrap();
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mirror.c");
    std::fs::write(&file, source).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("include");
    let output = Command::new("cc")
        .arg("-fsyntax-only")
        .arg("-I")
        .arg(include)
        .arg(&file)
        .output()
        .expect("a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_driver_says_what_it_is_made_of() {
    for name in OURS {
        let driver = by_name(name);
        let version = driver.text(driver.table.version);
        assert!(version.starts_with("rustls 0.23."), "{version}");
        let provider = name.strip_prefix("rustls-").unwrap();
        assert!(version.contains(&format!(", {provider} ")), "{version}");
        assert!(driver.text(driver.table.build_flags).contains("opt-level="));
        // SAFETY: no arguments, no conditions.
        let functions = unsafe { (driver.table.functions)() };
        let wanted = abi::TLS_1_2 | abi::TLS_1_3 | abi::EARLY_DATA | abi::QUIC_TLS;
        assert_eq!(functions & wanted, wanted);
        assert_eq!(functions & abi::POST_QUANTUM != 0, provider == "aws-lc-rs");
        println!(
            "{version}; {}; {}",
            driver.text(driver.table.build_flags),
            driver.text(driver.table.cpu_features)
        );
    }
}

#[test]
fn null_pointers_and_wrong_sizes_are_errors() {
    for name in OURS {
        let table = by_name(name).table;
        let context = Context::client(by_name(name), PINS, identity(Key::EcdsaP256));
        // SAFETY: what is not null is valid; the driver is to refuse the rest.
        unsafe {
            let mut raw = null_mut();
            assert_eq!((table.context_new)(null(), &raw mut raw), abi::ERROR);
            let config = Config {
                size: 4,
                server: 0,
                version: 0x0304,
                cipher: 0x1301,
                group: 29,
                signature: 0x0403,
                tickets: 0,
                certificate_group: 0,
                chain: Pem { text: null(), len: 0 },
                key: Pem { text: null(), len: 0 },
                roots: Pem { text: null(), len: 0 },
                server_name: null(),
                sessions: 0,
            };
            assert_eq!((table.context_new)(&raw const config, &raw mut raw), abi::ERROR);
            for server in [0, 1] {
                let config = Config { size: size_of::<Config>() as u32, server, ..config };
                assert_eq!((table.context_new)(&raw const config, &raw mut raw), abi::ERROR);
                assert_eq!((table.context_new)(&raw const config, null_mut()), abi::ERROR);
            }
            assert!(raw.is_null());
            let mut conn = null_mut();
            assert_eq!((table.conn_new)(context.raw, null(), null(), &raw mut conn), abi::ERROR);
            let transport = Transport { user: null_mut(), recv: None, send: None };
            assert_eq!(
                (table.conn_new)(context.raw, &raw const transport, null(), &raw mut conn),
                abi::ERROR
            );
            assert!(by_name(name).error().contains("function"));
            assert_eq!((table.handshake)(null_mut()), abi::ERROR);
            let mut done = 7;
            assert_eq!((table.read)(null_mut(), null_mut(), 1, &raw mut done), abi::ERROR);
            assert_eq!((table.write)(null_mut(), null(), 1, &raw mut done), abi::ERROR);
            assert_eq!(done, 7);
            assert_eq!((table.facts)(null_mut(), null_mut()), abi::ERROR);
            assert!((table.take_session)(null_mut()).is_null());
            (table.conn_free)(null_mut());
            (table.session_free)(null_mut());
            (table.context_free)(null_mut());
            let mut text = [1; 4];
            (table.error)(text.as_mut_ptr(), text.len());
            assert_eq!(text[3], 0, "an error is cut and ended");
            (table.error)(null_mut(), 4);
            (table.error)(text.as_mut_ptr(), 0);
        }
    }
}

/// Bytes that are no TLS end in an error, and the peer is told so.
#[test]
fn rubbish_from_the_peer_is_an_error() {
    for name in OURS {
        let driver = by_name(name);
        let client = Context::client(driver, PINS, identity(Key::EcdsaP256));
        let server = Context::server(driver, PINS, identity(Key::EcdsaP256));
        for rubbish in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[22, 3, 3, 0, 4, 1, 0, 0, 0], &[0xff; 64]]
        {
            let mut pair = Pair::new(&client, &server, None).unwrap();
            pair.server.from.borrow_mut().bytes.extend(rubbish);
            let error = pair.server.handshake().unwrap_err();
            assert!(error.contains("rustls: "), "{error}");
            assert_eq!(pair.client.from.borrow().seen.first(), Some(&21), "no alert");
            // The facts of a handshake that failed are an error, too.
            let mut facts = Facts { size: size_of::<Facts>() as u32, ..Facts::default() };
            // SAFETY: a connection and facts of ours.
            assert_eq!(
                unsafe { (driver.table.facts)(pair.server.raw, &raw mut facts) },
                abi::ERROR
            );
        }
    }
}
