//! The verdict over all combinations of answers: it contradicts none of them, and always has an advice.

use proptest::prelude::*;

use super::*;

fn about() -> About {
    About { port: 4433, server_name: "server.test".to_owned(), names: Vec::new() }
}

fn negotiated(version: WireVersion, suite: u16) -> Negotiated {
    Negotiated {
        version,
        cipher_suite: CipherSuite(suite),
        group: None,
        hello_retry_request: false,
        key: None,
        chain_bytes: 0,
    }
}

fn usual() -> Answer {
    Answer::Completed(Some(negotiated(WireVersion::TLS13, 0x1301)))
}

fn old() -> Negotiated {
    negotiated(WireVersion::TLS10, 0x002f)
}

fn ended(how: End) -> Answer {
    Answer::Ended { how, after_tls: false, asked: false }
}

fn alert(code: u8) -> Answer {
    Answer::Alert { code, asked: false }
}

/// One answer of each kind.
fn answers() -> Vec<Answer> {
    vec![
        usual(),
        Answer::Completed(Some(old())),
        Answer::Chose(old()),
        alert(40),
        Answer::Alert { code: 40, asked: true },
        alert(UNRECOGNIZED_NAME),
        ended(End::Closed),
        ended(End::TimedOut),
        Answer::Ended { how: End::Reset, after_tls: true, asked: false },
        Answer::Spoke(Speaker::Http),
        Answer::Spoke(Speaker::Smtp),
        Answer::Spoke(Speaker::Unknown),
        Answer::LongMessage,
        Answer::Broken("BadSignature".to_owned()),
        Answer::Untried("no memory".to_owned()),
    ]
}

fn tried(answers: &[(Hello, Answer)]) -> Vec<Tried> {
    let number = |at: usize| u32::try_from(at + 1).unwrap();
    let of = |(at, (hello, answer)): (usize, &(Hello, Answer))| Tried {
        number: number(at),
        hello: *hello,
        answer: answer.clone(),
    };
    answers.iter().enumerate().map(of).collect()
}

/// Asserts that a verdict fits what was tried.
fn assert_fits(tries: &[Tried], found: Option<&Finding>) {
    let hellos = || tries.iter().filter(|one| one.hello != Hello::Tcp);
    let completed = |hello: Hello| {
        tries.iter().any(|one| {
            one.hello == hello && one.answer.negotiated().is_some() && one.answer.is_completed()
        })
    };
    let any_completed = hellos().any(|one| one.answer.is_completed());
    let named_completed =
        hellos().any(|one| one.hello != Hello::Nameless && one.answer.is_completed());
    let any_tls = hellos().any(|one| one.answer.is_tls());
    let spoke = |wanted: Speaker| tries.iter().any(|one| one.answer == Answer::Spoke(wanted));
    let has_alert = |wanted: u8| {
        hellos().any(|one| matches!(one.answer, Answer::Alert { code, .. } if code == wanted))
    };
    let Some(Finding { kind, text, remedy }) = found else {
        let untried = tries.iter().all(|one| one.hello != Hello::Browser);
        let fine = completed(Hello::Browser) || untried && any_completed;
        assert!(fine || hellos().next().is_none(), "{tries:?}");
        return;
    };
    let context = format!("{kind}: {text}: {remedy} of {tries:?}");
    assert!(!text.is_empty() && !remedy.is_empty(), "{context}");
    assert!(!text.ends_with('.') && !remedy.ends_with('.') && text.len() < 250, "{context}");
    if any_tls {
        for denied in ["not a TLS server", "not TLS", "no answer", "does not speak TLS"] {
            assert!(!text.contains(denied), "{context}");
        }
    }
    assert!(!text.contains("plain HTTP") || spoke(Speaker::Http), "{context}");
    assert!(!text.contains("SMTP") || spoke(Speaker::Smtp), "{context}");
    let asked = hellos().any(|one| match one.answer {
        Answer::Alert { asked, .. } | Answer::Ended { asked, .. } => asked,
        _ => false,
    });
    let is_true = match kind {
        Kind::PlainHttp | Kind::SpeaksFirst | Kind::NotTls => !any_tls,
        Kind::Silent => !any_tls && !tries.iter().any(|one| matches!(one.answer, Answer::Spoke(_))),
        Kind::CertificateRequired => !any_completed && (asked || has_alert(CERTIFICATE_REQUIRED)),
        Kind::UnknownName => {
            !named_completed && (has_alert(UNRECOGNIZED_NAME) || completed(Hello::Nameless))
        }
        Kind::LongHello => !completed(Hello::Browser) && any_completed,
        Kind::Tls13Hello => !completed(Hello::Browser) && !completed(Hello::Small) && any_completed,
        Kind::BrowserOnly => completed(Hello::Browser),
        Kind::OldSuites => {
            completed(Hello::Compatible)
                && ![Hello::Browser, Hello::Small, Hello::Tls12].into_iter().any(completed)
        }
        Kind::Unusual => {
            !completed(Hello::Browser)
                && !completed(Hello::Small)
                && hellos().any(|one| one.answer.negotiated().is_some())
        }
        Kind::LongCertificates => {
            !completed(Hello::Browser) && hellos().any(|one| one.answer == Answer::LongMessage)
        }
        Kind::Limited => tries.iter().any(|late| {
            late.answer.end().is_some()
                && tries.iter().any(|one| {
                    one.number < late.number && one.hello == late.hello && one.answer.is_completed()
                })
        }),
        Kind::Refuses => {
            !any_completed && hellos().any(|one| matches!(one.answer, Answer::Alert { .. }))
        }
        Kind::Broken => {
            !any_completed && hellos().any(|one| matches!(one.answer, Answer::Broken(_)))
        }
        Kind::Unfinished => any_tls && !any_completed,
        Kind::Untried => {
            hellos().all(|one| matches!(one.answer, Answer::Untried(_) | Answer::Completed(None)))
        }
    };
    assert!(is_true, "{context}");
}

#[test]
fn no_combination_of_answers_is_contradicted() {
    let answers = answers();
    let first = [Hello::Browser, Hello::Small, Hello::Tls12];
    let mut combinations: Vec<Vec<(Hello, Answer)>> =
        vec![vec![(Hello::Tcp, Answer::Completed(None))]];
    for hello in first {
        combinations = combinations
            .into_iter()
            .flat_map(|before| {
                answers
                    .iter()
                    .map(move |answer| [before.clone(), vec![(hello, answer.clone())]].concat())
            })
            .collect();
    }
    assert_eq!(combinations.len(), 15 * 15 * 15);
    let some = [0, 2, 3, 5, 6, 9, 13].map(|at| answers[at].clone());
    for before in combinations {
        for everything in &some {
            let more = (Hello::Everything, everything.clone());
            let tries = tried(&[before.clone(), vec![more]].concat());
            assert_fits(&tries, verdict(&tries, &about()).as_ref());
        }
    }
}

fn hello() -> impl Strategy<Value = Hello> {
    prop::sample::select(vec![
        Hello::Tcp,
        Hello::Browser,
        Hello::Small,
        Hello::Tls12,
        Hello::Nameless,
        Hello::Compatible,
        Hello::Everything,
        Hello::Old,
        Hello::Measured(Version::Tls12),
        Hello::Measured(Version::Tls13),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn no_order_of_answers_is_contradicted(
        pairs in prop::collection::vec((hello(), prop::sample::select(answers())), 0..10),
        port: u16,
    ) {
        let possible = |(hello, answer): &(Hello, Answer)| match hello {
            // No TLS comes without a hello.
            Hello::Tcp if answer.is_tls() => (*hello, Answer::Completed(None)),
            _ => (*hello, answer.clone()),
        };
        let tries = tried(&pairs.iter().map(possible).collect::<Vec<_>>());
        let about = About { port, ..about() };
        assert_fits(&tries, verdict(&tries, &about).as_ref());
    }
}

/// The verdict on a browser's answer and those after it.
fn on(answers: &[(Hello, Answer)]) -> Finding {
    verdict(&tried(answers), &about()).unwrap()
}

#[test]
fn kinds_of_servers() {
    let small = (Hello::Small, usual());
    for (how, word) in [(End::Reset, "resets"), (End::TimedOut, "does not answer")] {
        let found = on(&[(Hello::Browser, ended(how)), small.clone()]);
        assert_eq!(found.kind, Kind::LongHello);
        assert!(found.text.contains(word), "{found:?}");
    }
    let required = [Answer::Alert { code: 40, asked: true }, alert(CERTIFICATE_REQUIRED)];
    for answer in required {
        let found = on(&[(Hello::Browser, answer)]);
        assert!(found.remedy.contains("--cert FILE --key FILE"), "{found:?}");
    }
    let found = on(&[(Hello::Browser, alert(UNRECOGNIZED_NAME))]);
    assert!(found.remedy.contains("--name"), "{found:?}");
    let found = on(&[(Hello::Browser, Answer::Spoke(Speaker::Imap))]);
    assert!(found.text.contains("IMAP") && found.remedy.contains("--starttls imap"), "{found:?}");
    let found = on(&[(Hello::Browser, Answer::Spoke(Speaker::Http))]);
    assert_eq!(found.text, "not a TLS server: it answered in plain HTTP");
    let refused = (Hello::Browser, alert(40));
    let found = on(&[refused.clone(), (Hello::Everything, Answer::Completed(Some(old())))]);
    assert!(found.text.contains("TLS 1.0") && found.text.contains("TLS_RSA_WITH"), "{found:?}");
    let p521 = Negotiated { group: Some(NamedGroup(0x19)), ..old() };
    let p521 =
        Negotiated { version: WireVersion::TLS13, cipher_suite: CipherSuite(0x1301), ..p521 };
    let found = on(&[refused.clone(), (Hello::Everything, Answer::Completed(Some(p521)))]);
    assert!(found.text.contains("secp521r1") && found.remedy.contains("X25519"), "{found:?}");
    let weak = Negotiated { key: Some("RSA-1024".to_owned()), ..old() };
    let broken = (Hello::Browser, Answer::Broken("BadSignature".to_owned()));
    let found = on(&[broken, (Hello::Everything, Answer::Completed(Some(weak)))]);
    assert!(found.text.contains("RSA-1024") && !found.text.contains("Bad"), "{found:?}");
    let rc4 = negotiated(WireVersion::TLS10, 0x0005);
    let found = on(&[refused, (Hello::Old, Answer::Chose(rc4))]);
    assert!(found.text.contains("RC4"), "{found:?}");
    let long = Negotiated { chain_bytes: 98_304, ..negotiated(WireVersion::TLS13, 0x1301) };
    let found = on(&[
        (Hello::Browser, Answer::LongMessage),
        (Hello::Everything, Answer::Completed(Some(long))),
    ]);
    assert!(found.text.contains("98304 bytes"), "{found:?}");
    let tls12 = Hello::Measured(Version::Tls12);
    let found = on(&[(Hello::Browser, usual()), (tls12, usual()), (tls12, ended(End::Closed))]);
    assert_eq!(found.kind, Kind::Limited);
    assert!(found.text.contains("2 connections"), "{found:?}");
}

#[test]
fn a_port_says_which_starttls() {
    let answers = tried(&[(Hello::Browser, ended(End::Closed))]);
    let found = verdict(&answers, &About { port: 5432, ..about() }).unwrap();
    assert!(found.remedy.contains("--starttls postgres"), "{found:?}");
}
