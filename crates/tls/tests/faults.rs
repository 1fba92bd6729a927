//! Chains that clients refuse: each fault has a name and an advice of its own.

use openssl::asn1::Asn1Time;
use openssl::bn::BigNum;
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::x509::extension::{BasicConstraints, SubjectAlternativeName};
use openssl::x509::{X509, X509Extension, X509Name};
use tls::Trust;
use tls::chain::{Chain, ChainFault};

/// 2026-11-23, in seconds since 1970.
const NOW: i64 = 1_795_392_000;
const DAY: i64 = 86_400;
const NAME: &str = "server.test";

/// A certificate and its key.
struct Made {
    certificate: X509,
    key: PKey<Private>,
}

/// How to make a certificate.
struct Recipe<'a> {
    subject: &'a str,
    names: &'a [&'a str],
    from: i64,
    until: i64,
    key: PKey<Private>,
    ca: bool,
    aia: bool,
    hash: MessageDigest,
}

fn p256() -> PKey<Private> {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap()
}

fn leaf() -> Recipe<'static> {
    Recipe {
        subject: "leaf",
        names: &[NAME],
        from: NOW - DAY,
        until: NOW + DAY,
        key: p256(),
        ca: false,
        aia: false,
        hash: MessageDigest::sha256(),
    }
}

fn ca(subject: &'static str) -> Recipe<'static> {
    Recipe { subject, names: &[], ca: true, ..leaf() }
}

fn name(common: &str) -> X509Name {
    let mut name = X509Name::builder().unwrap();
    name.append_entry_by_text("CN", common).unwrap();
    name.build()
}

fn make(recipe: Recipe<'_>, issuer: Option<&Made>) -> Made {
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    let serial = BigNum::from_u32(7).unwrap().to_asn1_integer().unwrap();
    builder.set_serial_number(&serial).unwrap();
    let subject = name(recipe.subject);
    builder.set_subject_name(&subject).unwrap();
    let by = issuer.map_or(&*subject, |issuer| issuer.certificate.subject_name());
    builder.set_issuer_name(by).unwrap();
    builder.set_pubkey(&recipe.key).unwrap();
    builder.set_not_before(&Asn1Time::from_unix(recipe.from).unwrap()).unwrap();
    builder.set_not_after(&Asn1Time::from_unix(recipe.until).unwrap()).unwrap();
    let mut constraints = BasicConstraints::new();
    constraints.critical();
    if recipe.ca {
        constraints.ca();
    }
    builder.append_extension(constraints.build().unwrap()).unwrap();
    let context = builder.x509v3_context(issuer.map(|issuer| &*issuer.certificate), None);
    let mut more = Vec::new();
    if !recipe.names.is_empty() {
        let mut names = SubjectAlternativeName::new();
        for name in recipe.names {
            names.dns(name);
        }
        more.push(names.build(&context).unwrap());
    }
    if recipe.aia {
        let nid = Nid::INFO_ACCESS;
        #[allow(deprecated, reason = "the crate has no other builder of this extension")]
        let aia = X509Extension::new_nid(None, None, nid, "caIssuers;URI:http://ca.test/ca.der");
        more.push(aia.unwrap());
    }
    for extension in more {
        builder.append_extension(extension).unwrap();
    }
    let signer = issuer.map_or(&recipe.key, |issuer| &issuer.key);
    builder.sign(signer, recipe.hash).unwrap();
    Made { certificate: builder.build(), key: recipe.key }
}

fn faults(sent: &[&Made], roots: &[&Made], wanted: &str) -> Vec<ChainFault> {
    let der = |made: &&Made| made.certificate.to_der().unwrap();
    let chain = Chain::from_der(&sent.iter().map(der).collect::<Vec<_>>()).unwrap();
    let roots = Trust::Roots(roots.iter().map(der).collect());
    chain.faults(&roots, wanted, NOW).unwrap()
}

/// Asserts that there is one fault, which the pattern describes, and that the advice has these words and
/// speaks of `--ca` only where a root helps.
macro_rules! one_fault {
    ($faults:expr, $pattern:pat, $words:expr, $ca:expr) => {
        let faults: Vec<ChainFault> = $faults;
        assert!(matches!(faults.as_slice(), [$pattern]), "{faults:?}");
        let remedy = faults[0].remedy();
        assert!(remedy.contains($words), "{remedy}");
        assert_eq!(remedy.contains("--ca"), $ca, "{remedy}");
    };
}

#[test]
fn each_fault_has_its_own_advice() {
    let root = make(ca("root"), None);
    let stranger = make(ca("stranger"), None);
    let good = make(leaf(), Some(&root));
    assert_eq!(faults(&[&good], &[&root], NAME), []);

    let expired = make(Recipe { from: NOW - 9 * DAY, until: NOW - DAY, ..leaf() }, Some(&root));
    one_fault!(faults(&[&expired], &[&root], NAME), ChainFault::Expired { .. }, "renew", false);
    let early = make(Recipe { from: NOW + DAY, until: NOW + 9 * DAY, ..leaf() }, Some(&root));
    one_fault!(faults(&[&early], &[&root], NAME), ChainFault::NotYetValid { .. }, "date", false);
    one_fault!(
        faults(&[&good], &[&root], "other.test"),
        ChainFault::WrongName { .. },
        "--name server.test",
        false
    );
    let nameless = make(Recipe { names: &[], ..leaf() }, Some(&root));
    one_fault!(
        faults(&[&nameless], &[&root], NAME),
        ChainFault::WrongName { .. },
        "subjectAltName",
        false
    );
    let key = PKey::from_rsa(Rsa::generate(1024).unwrap()).unwrap();
    let weak = make(Recipe { key, ca: true, ..leaf() }, None);
    let under_weak = make(leaf(), Some(&weak));
    one_fault!(
        faults(&[&under_weak, &weak], &[&weak], NAME),
        ChainFault::WeakKey { issuer: Some(_), .. },
        "P-256",
        false
    );
    one_fault!(
        faults(&[&good], &[&stranger], NAME),
        ChainFault::UnknownIssuer { .. },
        "intermediate",
        true
    );
    one_fault!(
        faults(&[&good, &root], &[&stranger], NAME),
        ChainFault::PrivateRoot { .. },
        "`root`",
        true
    );
    let own = make(leaf(), None);
    one_fault!(faults(&[&own], &[&stranger], NAME), ChainFault::SelfSigned, "itself", true);
    let middle = make(ca("middle"), Some(&root));
    let public = make(Recipe { aia: true, ..leaf() }, Some(&middle));
    one_fault!(
        faults(&[&public], &[&root], NAME),
        ChainFault::Incomplete { .. },
        "whole chain",
        false
    );
    assert_eq!(faults(&[&public, &middle], &[&root], NAME), []);
    let ca_as_server = make(Recipe { ca: true, ..leaf() }, Some(&root));
    one_fault!(faults(&[&ca_as_server], &[&root], NAME), ChainFault::CaAsServer, "CA:FALSE", false);
}

#[test]
fn several_faults_are_all_named() {
    let (root, stranger) = (make(ca("root"), None), make(ca("stranger"), None));
    let expired = make(Recipe { from: NOW - 9 * DAY, until: NOW - DAY, ..leaf() }, Some(&root));
    let found = faults(&[&expired], &[&stranger], "other.test");
    assert!(
        matches!(
            found.as_slice(),
            [
                ChainFault::Expired { .. },
                ChainFault::WrongName { .. },
                ChainFault::UnknownIssuer { .. }
            ]
        ),
        "{found:?}"
    );
}
