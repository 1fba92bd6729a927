//! Real bodies: each is as long as the page says, and every object is told of once, by what the page says.

use page::content::{Content, ContentError, LEAST_DOCUMENT, Origin, for_browser};
use page::{Caching, HostId, Kind, Object, ObjectId, Page, Share, paper};
use proptest::prelude::*;
use units::{Bytes, Delay};

use crate::properties::pages;

const ORIGIN: Origin = Origin { secure: true, port: 12_345 };

fn text(content: &Content, id: ObjectId) -> String {
    String::from_utf8(content.bodies[id.index()].start.clone()).unwrap()
}

/// What may stand behind a reference in a text.
const ENDS: [char; 6] = ['>', ')', '"', '\'', ',', ' '];

/// How often a text refers to an object: by its URL, whole or without what it shares with the text's own.
fn references(page: &Page, content: &Content, text: &str, id: ObjectId, by: ObjectId) -> usize {
    let url = &content.urls[id.index()];
    let authority = url.find("//").unwrap();
    let path = url[authority + 2..].find('/').unwrap() + authority + 2;
    // A script's URLs are read from the document that runs it.
    let mut base = &page.objects()[by.index()];
    if base.kind == Kind::Script {
        while base.kind != Kind::Document {
            base = &page.objects()[base.found.unwrap().by.index()];
        }
    }
    let same_host = page.objects()[id.index()].host == base.host;
    let count = |reference: &str, may_follow: &[char]| {
        text.match_indices(reference)
            .filter(|(at, _)| {
                let follows = text[at + reference.len()..].chars().next();
                let precedes = text[..*at].chars().next_back();
                follows.is_none_or(|next| ENDS.contains(&next))
                    && precedes.is_some_and(|before| may_follow.contains(&before))
            })
            .count()
    };
    let whole = count(&url[authority..], &['=', '(', '"', ':']);
    if same_host { whole + count(&url[path..], &['=', '(', '"']) } else { whole }
}

/// Where an object is told of: in the text of an object, or in the script.
fn check(page: &Page) -> Result<(), TestCaseError> {
    let content = Content::of(page, ORIGIN).unwrap();
    prop_assert_eq!(&content, &Content::of(page, ORIGIN).unwrap());
    for (id, object) in page.ids().zip(page.objects()) {
        let body = &content.bodies[id.index()];
        prop_assert_eq!(body.length, object.body.count());
        let is_text = matches!(object.kind, Kind::Document | Kind::Style | Kind::Script);
        prop_assert!(body.start.len() as u64 <= body.length);
        prop_assert!(!is_text || body.start.len() as u64 == body.length, "{object:?}");
    }
    let texts: Vec<(ObjectId, String)> = page
        .ids()
        .filter(|id| {
            let kind = page.objects()[id.index()].kind;
            matches!(kind, Kind::Document | Kind::Style | Kind::Script)
        })
        .map(|id| (id, text(&content, id)))
        .collect();
    for (id, object) in page.ids().zip(page.objects()) {
        let told_by: Vec<ObjectId> = texts
            .iter()
            .filter(|(by, text)| *by != id && references(page, &content, text, id, *by) > 0)
            .map(|(by, _)| *by)
            .collect();
        let quoted = serde_json::to_string(&content.urls[id.index()]).unwrap();
        let in_script = content.script.contains(&format!(",{quoted},"));
        match object.found {
            None => prop_assert!(told_by.is_empty() && !in_script),
            Some(_) if in_script => prop_assert!(told_by.is_empty(), "{id:?} twice"),
            Some(found) => prop_assert_eq!(told_by, vec![found.by], "{:?}", id),
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn every_body_is_as_long_as_the_page_says_and_tells_of_what_the_page_says(page in pages()) {
        let root = page.objects()[page.root().index()].kind;
        if root == Kind::Document {
            check(&page)?;
        } else {
            let refused = Content::of(&page, ORIGIN);
            prop_assert_eq!(refused, Err(ContentError::NoDocument { kind: root }));
        }
    }
}

#[test]
fn the_papers_pages_are_told_of_as_their_graphs_say() {
    for name in ["google-play", "domestic-4mb", "site-tech-crunch", "testbed-1", "small-objects"] {
        let page = paper::page(name, 1).unwrap();
        check(&page).unwrap();
        // Nearly all of it stands in the bodies.
        let content = Content::of(&page, ORIGIN).unwrap();
        let urls = content.urls.iter();
        let in_script = urls.filter(|url| content.script.contains(&format!("\"{url}\"")));
        println!("{name}: {} of {} by the script", in_script.count(), page.objects().len());
    }
}

/// A document whose parts are known.
fn small() -> Page {
    let hosts = vec!["www.page.test".to_owned(), "img.page.test".to_owned()];
    let object = |path: &str, kind, bytes| Object::new(HostId(0), path, kind, Bytes(bytes));
    let by = |object: Object, by: u32, share: f64, ms: u64| {
        let delay = Delay::from(std::time::Duration::from_millis(ms));
        object.found_by(ObjectId(by), Share::new(share).unwrap(), delay)
    };
    let mut style = by(object("/a.css", Kind::Style, 400), 0, 0.05, 0);
    style.blocking = true;
    style.caching = Caching::Never;
    let mut far = by(object("/b.png?x=1&y=2", Kind::Image, 50), 0, 0.5, 0);
    far.host = HostId(1);
    Page::new(
        "small",
        hosts,
        vec![
            object("/", Kind::Document, 1000),
            style,
            by(object("/c.js", Kind::Script, 100), 0, 0.2, 0),
            far,
            by(object("/d.gif", Kind::Image, 43), 1, 1.0, 0),
            by(object("/e.woff", Kind::Font, 20), 1, 1.0, 0),
            by(object("/f.json", Kind::Fetch, 30), 2, 1.0, 7),
            by(object("/g.gif", Kind::Image, 44), 3, 1.0, 9),
        ],
    )
    .unwrap()
}

#[test]
fn texts_refer_as_browsers_read_them() {
    let page = small();
    let content = Content::of(&page, ORIGIN).unwrap();
    let html = text(&content, ObjectId(0));
    let place = |part: &str| html.find(part).unwrap_or_else(|| panic!("no {part} in {html}"));
    // A reference has been read where the graph says so.
    assert_eq!(place("<body>"), place("<link rel=stylesheet href=/a.css>") + 33);
    assert_eq!(place("<script async src=/c.js></script>") + 33, 200);
    let image = "<img src=\"//img.page.test:12345/b.png?x=1&amp;y=2\">";
    assert_eq!(place(image) + image.len(), 500);
    assert!(html.contains("<i id=f5>x</i>") && html.contains("<i id=s1>x</i>"), "{html}");
    let css = text(&content, ObjectId(1));
    let font = "@font-face{font-family:f5;src:url(/e.woff)}#f5{font-family:f5}";
    assert!(css.starts_with(&format!("#s1{{background:url(/d.gif)}}{font}/*x")), "{css}");
    assert!(text(&content, ObjectId(2)).starts_with("a(\"x\",\"/f.json\",7);/*x"));
    assert!(
        content.bodies[4].start.starts_with(b"GIF89a") && content.bodies[4].start.ends_with(b";")
    );
    // Nothing can be read in an image: the document adds what it tells of.
    let after = r#""after":{"https://img.page.test:12345/b.png?x=1&y=2":[["i","https://www.page.test:12345/g.gif",9,0]]}"#;
    assert!(content.script.contains(after), "{}", content.script);
}

#[test]
fn what_has_no_url_of_its_own_is_refused() {
    let page = |paths: [&str; 2]| {
        let [first, second] = paths;
        let second = Object::new(HostId(0), second, Kind::Image, Bytes(9));
        let objects = vec![
            Object::new(HostId(0), first, Kind::Document, Bytes(9)),
            second.found_by(ObjectId(0), Share::ALL, Delay::ZERO),
        ];
        Page::new("x", vec!["page.test".to_owned()], objects).unwrap()
    };
    let refused = Content::of(&page(["/", "/a/.."]), ORIGIN);
    assert_eq!(refused, Err(ContentError::Url { object: 1 }));
    assert!(Content::of(&page(["/", "/a/../b"]), ORIGIN).is_ok());
    let clear = Content::of(&page(["/", "/b"]), Origin { secure: false, port: 80 }).unwrap();
    assert_eq!(clear.urls, ["http://page.test/", "http://page.test/b"]);
}

/// A page that begins with a redirect, as a HAR file has it: the document behind it is a frame in what is no
/// document without bytes.
#[test]
fn a_browser_gets_no_document_of_no_bytes_that_tells_of_something() {
    let document = |path: &str, bytes| Object::new(HostId(0), path, Kind::Document, Bytes(bytes));
    let by = |object: Object, by| object.found_by(ObjectId(by), Share::ALL, Delay::ZERO);
    let objects = vec![
        document("/", 0),
        by(document("/home", 500), 0),
        by(document("/empty", 0), 1),
        by(Object::new(HostId(0), "/empty.gif", Kind::Image, Bytes(0)), 1),
    ];
    let page = Page::new("x", vec!["page.test".to_owned()], objects).unwrap();
    let given = for_browser(&page);
    let sizes: Vec<_> = given.objects().iter().map(|object| object.body).collect();
    assert_eq!(sizes, [LEAST_DOCUMENT, Bytes(500), Bytes(0), Bytes(0)]);
    let content = Content::of(&given, ORIGIN).unwrap();
    let root = text(&content, ObjectId(0));
    assert_eq!(root.len(), 200);
    assert!(root.contains("/home"), "{root}");
    assert_eq!(for_browser(&given), given);
}
