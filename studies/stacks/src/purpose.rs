//! What instructions are for, by the name of the function: the rule is a table, `purposes.csv`.

use std::sync::LazyLock;

use tls_drivers::hosts::{Function, Graph};

use crate::sample::value;

units::named! {
    /// What a function is for.
    pub enum Purpose: "purpose" {
        /// Signatures and key agreement, and the arithmetic below them.
        PublicKey = "public key",
        /// Encryption of records and tickets.
        Symmetric = "symmetric",
        /// Hashes, MACs and keys derived with them.
        Hash = "hash",
        /// Locks and counts of references.
        Locks = "locks and atomics",
        /// Memory asked for and given back.
        Allocation = "allocation",
        /// To find an algorithm's implementation by name, and to tell it its parameters.
        Provider = "provider fetch",
        /// Messages, records and certificates.
        Records = "records and parsing",
    }
}

/// What has no purpose that the rule knows.
pub const OTHER: &str = "other";

/// A line of the rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What functions of these names are for; none where that is their callers' purpose.
    pub purpose: Option<Purpose>,
    /// Names, `*` standing for any characters.
    pub pattern: String,
    /// Where the library keeps them.
    pub source: String,
}

/// The rule's lines, in order.
pub static RULE: LazyLock<Vec<Line>> = LazyLock::new(|| {
    let lines = include_str!("../purposes.csv").lines();
    lines.filter(|line| !line.starts_with('#')).skip(1).filter_map(read).collect()
});

/// What its callers are for.
const CALLER: &str = "caller";

fn read(line: &str) -> Option<Line> {
    let mut fields = line.splitn(3, ',');
    let (purpose, pattern, source) = (fields.next()?, fields.next()?, fields.next()?);
    let purpose = match purpose {
        CALLER => None,
        name => Some(name.parse().ok()?),
    };
    let source = source.trim_matches('"').to_owned();
    Some(Line { purpose, pattern: pattern.to_owned(), source })
}

/// What a function of this name is for; none where that is its callers' purpose.
#[must_use]
pub fn purpose(symbol: &str) -> Option<Purpose> {
    let name = bare(symbol);
    RULE.iter().find(|line| fits(&line.pattern, name))?.purpose
}

/// A name without what a build puts before all of its names: AWS-LC's and ring's in crates of Rust.
fn bare(symbol: &str) -> &str {
    let digits = |rest: &'_ str| rest.find(|c: char| !c.is_ascii_digit() && c != '_');
    ["aws_lc_", "ring_core_"]
        .into_iter()
        .filter_map(|start| symbol.strip_prefix(start))
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        .find_map(|rest| rest.get(digits(rest)?..))
        .unwrap_or(symbol)
}

fn fits(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, after)) = name.split_once(part) else { return false };
        name = after;
    }
    name.ends_with(end)
}

/// Instructions by purpose, in the order of [`Purpose::ALL`], and of none.
#[must_use]
pub fn by_purpose(graph: &Graph) -> Vec<f64> {
    let mut sums = vec![0.0; Purpose::ALL.len() + 1];
    for (function, shares) in graph.functions.iter().zip(shares(graph)) {
        for (sum, share) in sums.iter_mut().zip(shares) {
            *sum += share * function.instructions;
        }
    }
    sums
}

/// How each function's instructions divide among purposes and none.
pub(crate) fn shares(graph: &Graph) -> Vec<Vec<f64>> {
    let index = |function: &Function| {
        let own = purpose(&function.symbol)?;
        Purpose::ALL.iter().position(|other| *other == own)
    };
    graph.shares(Purpose::ALL.len(), index)
}

/// The values of a sample that hold them, server's and client's, in the same order.
pub(crate) const VALUES: [(&str, &str); 8] = [
    (value::SERVER_PUBLIC_KEY, value::CLIENT_PUBLIC_KEY),
    (value::SERVER_SYMMETRIC, value::CLIENT_SYMMETRIC),
    (value::SERVER_HASH, value::CLIENT_HASH),
    (value::SERVER_LOCKS, value::CLIENT_LOCKS),
    (value::SERVER_ALLOCATION, value::CLIENT_ALLOCATION),
    (value::SERVER_PROVIDER, value::CLIENT_PROVIDER),
    (value::SERVER_RECORDS, value::CLIENT_RECORDS),
    (value::SERVER_OTHER, value::CLIENT_OTHER),
];

/// The purposes' names, and that of none, in the same order.
pub(crate) fn names() -> Vec<&'static str> {
    Purpose::ALL.iter().map(|purpose| purpose.name()).chain([OTHER]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tls_drivers::hosts::Call;

    #[test]
    fn every_line_of_the_rule_is_read() {
        let written = include_str!("../purposes.csv").lines();
        let written = written.filter(|line| !line.starts_with('#')).count() - 1;
        assert_eq!(RULE.len(), written);
        assert!(RULE.iter().all(|line| !line.source.is_empty() && !line.pattern.is_empty()));
        for purpose in Purpose::ALL {
            assert!(RULE.iter().any(|line| line.purpose == Some(*purpose)), "{purpose}");
        }
        assert_eq!((names().len(), VALUES.len()), (8, 8));
    }

    #[test]
    fn a_name_tells_the_purpose() {
        use Purpose::*;
        for (symbol, expected) in [
            ("bn_mul_mont", Some(PublicKey)),
            ("aws_lc_0_39_1_bn_mul_mont", Some(PublicKey)),
            ("ring_core_0_17_14__x25519_fe51_mul", Some(PublicKey)),
            ("__ecp_nistz256_mul_montq", Some(PublicKey)),
            ("p256_montjadd", Some(PublicKey)),
            ("EVP_DigestSignFinal", Some(PublicKey)),
            ("EVP_DigestUpdate", Some(Hash)),
            ("sha256_block_data_order_avx2", Some(Hash)),
            ("aes_gcm_enc_update_vaes_avx2", Some(Symmetric)),
            ("aesni_ctr32_encrypt_blocks", Some(Symmetric)),
            ("CRYPTO_THREAD_read_lock", Some(Locks)),
            ("pthread_rwlock_unlock", Some(Locks)),
            ("EVP_PKEY_up_ref", Some(Locks)),
            ("CRYPTO_THREAD_get_local", None),
            ("malloc", Some(Allocation)),
            ("_int_free", Some(Allocation)),
            ("CRYPTO_zalloc", Some(Allocation)),
            ("EVP_MD_fetch", Some(Provider)),
            ("OSSL_PARAM_locate", Some(Provider)),
            ("ossl_namemap_name2num", Some(Provider)),
            ("tls_process_client_hello", Some(Records)),
            ("rustls::server::hs::process", Some(Records)),
            ("memcpy", None),
            ("wiretax_server_turns", None),
            ("", None),
        ] {
            assert_eq!(purpose(symbol), expected, "{symbol}");
        }
    }

    #[test]
    fn stars_stand_for_any_characters() {
        for (pattern, name, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*b", "ab", true),
            ("*b*", "abc", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c2b", false),
            ("ab*b", "ab", false),
            ("*", "", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn what_copies_is_part_of_what_it_copies_for() {
        let function = |symbol: &str, instructions| Function {
            object: "a.so".to_owned(),
            symbol: symbol.to_owned(),
            instructions,
        };
        let graph = Graph {
            functions: vec![
                function("EVP_MD_fetch", 10.0),
                function("ssl_read", 20.0),
                function("memcpy", 40.0),
                function("main", 5.0),
            ],
            calls: vec![
                Call { caller: 0, callee: 2, instructions: 30.0 },
                Call { caller: 1, callee: 2, instructions: 10.0 },
            ],
        };
        assert_eq!(by_purpose(&graph), [0.0, 0.0, 0.0, 0.0, 0.0, 40.0, 30.0, 5.0]);
        assert_eq!(by_purpose(&Graph::default()), [0.0; 8]);
    }
}
