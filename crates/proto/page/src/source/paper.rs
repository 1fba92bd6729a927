//! Named pages: those of the SPDY paper, made with its counts, and three of our own.
//!
//! The paper (Kim, Yi and Lee, "A Research on the Performance Analysis of SPDY Protocol in Mobile
//! Networks", 2013) gives for each page objects, domains and kilobytes, and nothing of its structure;
//! the rest is made by the rule below. A kilobyte is 1000 bytes here: with two decimals of it every
//! page has a whole number of bytes. The tables do not say how many hosts the pages of its testbed
//! have: here one, as on a testbed of one server.
//!
//! # The rule
//!
//! 1. Object 0 is the document. Of the others, kinds are as in the average page of early 2013 (HTTP
//!    Archive, as I. Grigorik gives it in "High Performance Browser Networking", 2013, chapter 10,
//!    read in a digest of that chapter): of 90 requests 10 for HTML, 55 for images, 15 for scripts, 5
//!    for style sheets, 5 for others; by the method of largest remainders. The first others are a
//!    style sheet, an image and a script, so that three levels of discovery are there as soon as
//!    there are three objects.
//! 2. Sizes are log-normal around the mean of their kind in the same figures (52, 812, 216, 36, 195 KB
//!    for the kinds above, over their requests), with a shape of 1 (our choice), then scaled so that
//!    they add up to the bytes asked for, exactly; none is below 43 bytes, which a transparent GIF
//!    has, if the bytes allow.
//! 3. Hosts: the document's is the first; each other has one object at least; the rest goes to hosts
//!    by Zipf's law with exponent 1 (our choice).
//! 4. Discovery: the document tells of styles, frames, half of the scripts and 56 % of the images as it
//!    comes, of scripts and styles in its first fifth; those in its first tenth block rendering. A
//!    frame, if there is one, tells of 14 % of the images as it comes; styles tell of fonts and 15 % of
//!    the images at their end; scripts tell of the rest at their end, after a computation of 5 to
//!    25 ms. The second object is always found by the document and the third by the second. All of
//!    this is our choice.
//! 5. Caching: three objects in four are fresh for a day, as Charzinski found for the 500 most visited
//!    pages (2010; 75 % of requests and 81 % of bytes spared, as quoted by websiteoptimization.com);
//!    of the others half are found unchanged by a validator and half may not be stored (our choice).
//!    The document and frames are always asked for.
//! 6. Cookies: 400 bytes to the document's host, 100 to others (our choice; the SPDY white paper, 2009,
//!    calls 700 to 800 bytes of request head common, from memory).

use std::borrow::Cow;
use std::time::Duration;

use fault::{Explain, Fault};
use thiserror::Error;
use units::{Bytes, Delay};

use crate::error::PageError;
use crate::page::{Caching, HostId, Kind, Object, ObjectId, Page};
use crate::share::Share;
use crate::source::make::{self, Wanted};

/// The paper's tables, as copied from it: pages, the twenty sites, flow control on its testbed.
const PAGES: &str = include_str!("../../data/spdy-pages.csv");
const SITES: &str = include_str!("../../data/spdy-sites.csv");
const TESTBED: &str = include_str!("../../data/spdy-flow-control.csv");

/// A page that has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// By which it is asked for: `google-play`.
    pub name: String,
    /// What it is, in a sentence.
    pub description: String,
    /// How many objects it has, the document among them.
    pub objects: usize,
    /// How many hosts they come from.
    pub hosts: usize,
    /// The bytes of its bodies.
    pub bytes: Bytes,
}

/// No page has this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no page is called `{name}`")]
pub struct UnknownPage {
    /// The name asked for.
    pub name: String,
}

impl Explain for UnknownPage {
    fn fault(&self) -> Fault {
        Fault::Caller
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        let names: Vec<_> = named().into_iter().map(|page| page.name).collect();
        Some(format!("choose from {}", names.join(", ")).into())
    }
}

/// All pages that have a name: the paper's three, its twenty sites (`site-…`), the four of its testbed
/// (`testbed-1` to `testbed-4`), `cablelabs-large`, `small-objects` and `upload`.
#[must_use]
pub fn named() -> Vec<Named> {
    let mut all = Vec::new();
    for line in lines(PAGES) {
        let [page, objects, hosts, kilobytes] = line.as_slice() else { continue };
        let about = format!("{page}, a page of the SPDY paper");
        all.extend(row(&slug(page), about, objects, hosts, kilobytes));
    }
    for line in lines(SITES) {
        let [site, objects, hosts, kilobytes] = line.as_slice() else { continue };
        let about = format!("{site}, a site of the SPDY paper's first visits");
        all.extend(row(&format!("site-{}", slug(site)), about, objects, hosts, kilobytes));
    }
    for line in lines(TESTBED) {
        let [_, _, site, objects, kilobytes, _, _] = line.as_slice() else { continue };
        let name = format!("testbed-{site}");
        if !all.iter().any(|page: &Named| page.name == name) {
            let about = format!("page {site} of the SPDY paper's testbed");
            all.extend(row(&name, about, objects, "1", kilobytes));
        }
    }
    all.extend([large(), small(), upload()]);
    all
}

/// The page with this name. The same seed makes the same page.
///
/// # Errors
/// There is none with this name.
pub fn page(name: &str, seed: u64) -> Result<Page, UnknownPage> {
    let unknown = || UnknownPage { name: crate::check::short(name) };
    let named = named().into_iter().find(|page| page.name == name).ok_or_else(unknown)?;
    let made = match name {
        LARGE => flat(&named, 5_000),
        SMALL => flat(&named, 20_000),
        UPLOAD => uploading(&named),
        _ => {
            let Named { objects, hosts, bytes, .. } = named;
            let bytes = bytes.count();
            // Pages made with the same seed have nothing in common but it.
            let seed = name.bytes().fold(seed, |seed, byte| {
                (seed ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
            });
            make::page(&Wanted { name, objects, hosts, bytes }, seed)
        }
    };
    // The counts are those above: a test makes every page.
    made.map_err(|_: PageError| unknown())
}

const LARGE: &str = "cablelabs-large";
const SMALL: &str = "small-objects";
const UPLOAD: &str = "upload";
/// Bytes of its document, and of what it sends when that is there.
const UPLOAD_DOCUMENT: u64 = 5_000;
const UPLOADED: u64 = 1_000_000;
/// Bytes of the answer.
const UPLOAD_ANSWER: u64 = 100;

/// CableLabs found in 2012 that SPDY loses where a page has few large images, as is said of the SPDY
/// paper. The counts are our choice.
fn large() -> Named {
    let description = "a document and eight images of 500 kB on one host".to_owned();
    let bytes = Bytes(5_000 + 8 * 500_000);
    Named { name: LARGE.to_owned(), description, objects: 9, hosts: 1, bytes }
}

/// What multiplexing is best at. The counts are our choice.
fn small() -> Named {
    let description = "a document and 200 images of 1 kB on one host".to_owned();
    let bytes = Bytes(20_000 + 200 * 1_000);
    Named { name: SMALL.to_owned(), description, objects: 201, hosts: 1, bytes }
}

/// What the SPDY paper's Figures 4 and 6 are about, windows for what a browser sends. The counts are our choice.
fn upload() -> Named {
    let description = "a document, and a POST of 1 MB when it is there".to_owned();
    let bytes = Bytes(UPLOAD_DOCUMENT + UPLOAD_ANSWER);
    Named { name: UPLOAD.to_owned(), description, objects: 2, hosts: 1, bytes }
}

fn uploading(named: &Named) -> Result<Page, PageError> {
    let document = Object::new(HostId(0), "/", Kind::Document, Bytes(UPLOAD_DOCUMENT));
    let mut post = Object::new(HostId(0), "/post", Kind::Fetch, Bytes(UPLOAD_ANSWER));
    post.upload = Some(Bytes(UPLOADED));
    let objects = vec![document, post.found_by(ObjectId(0), Share::ALL, Delay::ZERO)];
    Page::new(&*named.name, vec![format!("www.{}.example", named.name)], objects)
}

/// A document of so many bytes and images of equal size that it tells of evenly.
fn flat(named: &Named, document: u64) -> Result<Page, PageError> {
    let images = named.objects.saturating_sub(1).max(1) as u64;
    let size = named.bytes.count().saturating_sub(document) / images;
    let mut objects = vec![Object::new(HostId(0), "/", Kind::Document, Bytes(document))];
    for number in 1..=images {
        let path = format!("/{number}.png");
        let mut image = Object::new(HostId(0), path, Kind::Image, Bytes(size));
        let day = Duration::from_secs(24 * 3600).into();
        image.caching = Caching::Stored { fresh_for: day, validator: true };
        let after = Share::new(number as f64 / images as f64).unwrap_or(Share::ALL);
        objects.push(image.found_by(ObjectId(0), after, Delay::ZERO));
    }
    Page::new(&*named.name, vec![format!("www.{}.example", named.name)], objects)
}

/// The lines of a table without its head and comments, split at commas.
fn lines(table: &str) -> impl Iterator<Item = Vec<&str>> {
    table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .skip(1)
        .map(|line| line.split(',').collect())
}

fn row(
    name: &str,
    description: String,
    objects: &str,
    hosts: &str,
    kilobytes: &str,
) -> Option<Named> {
    // Exact: `units` reads decimals without a detour by binary fractions.
    let bytes = format!("{kilobytes}kB").parse().ok()?;
    let (objects, hosts) = (objects.parse().ok()?, hosts.parse().ok()?);
    Some(Named { name: name.to_owned(), description, objects, hosts, bytes })
}

/// A name for the command line: small letters, digits and hyphens.
fn slug(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_has_exactly_the_counts_of_its_table() {
        let all = named();
        assert_eq!(all.len(), 3 + 20 + 4 + 3);
        for named in &all {
            let page = page(&named.name, 1).unwrap();
            assert_eq!(page.objects().len(), named.objects, "{}", named.name);
            assert_eq!(page.hosts().len(), named.hosts, "{}", named.name);
            assert_eq!(page.bytes(), named.bytes, "{}", named.name);
            let flat = [LARGE, SMALL, UPLOAD].contains(&&*named.name);
            let levels = if flat { 2 } else { named.objects.min(3) };
            assert!(page.depth() >= levels, "{} has {} levels", named.name, page.depth());
        }
    }

    #[test]
    fn the_tables_are_read_as_they_stand() {
        let by_name = |name: &str| named().into_iter().find(|page| page.name == name).unwrap();
        let play = by_name("google-play");
        assert_eq!((play.objects, play.hosts, play.bytes), (52, 17, Bytes(1_592_430)));
        let crunch = by_name("site-tech-crunch");
        assert_eq!((crunch.objects, crunch.hosts, crunch.bytes), (174, 55, Bytes(1_880_330)));
        let four = by_name("testbed-4");
        assert_eq!((four.objects, four.hosts, four.bytes), (3, 1, Bytes(42_891_830)));
        assert_eq!(by_name("domestic-4mb").objects, 86);
        assert_eq!(by_name("site-is-the-spdy-protocol").objects, 31);
    }

    #[test]
    fn the_page_that_uploads_sends_a_megabyte_once() {
        let page = page(UPLOAD, 1).unwrap();
        let uploads: Vec<_> = page.objects().iter().map(|object| object.upload).collect();
        assert_eq!(uploads, [None, Some(Bytes(1_000_000))]);
    }

    #[test]
    fn the_same_seed_makes_the_same_page_and_another_another() {
        let made = |seed| page("google-play", seed).unwrap();
        assert_eq!(made(1), made(1));
        assert_ne!(made(1), made(2));
    }

    #[test]
    fn objects_are_spread_over_hosts_and_kinds_unevenly() {
        let page = page("site-tech-crunch", 1).unwrap();
        let on = |host: u32| page.objects().iter().filter(|object| object.host.0 == host).count();
        let most = (0..55).map(on).max().unwrap();
        assert!(on(0) == most && most >= 20, "{most} on one host");
        let of = |kind| page.objects().iter().filter(|object| object.kind == kind).count();
        // 173 others in the proportions of the average page.
        assert_eq!([of(Kind::Image), of(Kind::Script), of(Kind::Style)], [106, 29, 10]);
        assert!(page.objects().iter().any(|object| object.blocking));
    }

    #[test]
    fn a_style_sheet_tells_of_what_browsers_find_in_one() {
        for named in named() {
            let page = page(&named.name, 1).unwrap();
            for object in page.objects() {
                let by = object.found.and_then(|found| page.object(found.by));
                let by_style = by.is_some_and(|by| by.kind == Kind::Style);
                let can_be = matches!(object.kind, Kind::Image | Kind::Font | Kind::Style);
                assert!(can_be || !by_style, "{}: {:?}", named.name, object.path);
            }
        }
    }

    #[test]
    fn an_unknown_name_lists_those_that_there_are() {
        let error = page("google", 1).unwrap_err();
        assert_eq!(error.to_string(), "no page is called `google`");
        assert!(error.remedy().unwrap().contains("google-play, domestic-2mb"));
    }
}
