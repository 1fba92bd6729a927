//! The style sheet's colours meet WCAG 2.2 AA in both themes: 4.5:1 for text (§1.4.3), 3:1 for
//! what is drawn (§1.4.11).

use report::{Report, render};
use std::collections::BTreeMap;

/// The colours of each theme, by name; dark ones override light ones.
fn themes() -> [BTreeMap<String, [f64; 3]>; 2] {
    let html = render(&Report::new("t"));
    let (light, rest) = html.split_once("@media (prefers-color-scheme: dark)").expect("themes");
    let (dark, _) = rest.split_once("\n* {").expect("the end of the themes");
    let mut colours = BTreeMap::new();
    read(light, &mut colours);
    let light = colours.clone();
    read(dark, &mut colours);
    [light, colours]
}

fn read(css: &str, colours: &mut BTreeMap<String, [f64; 3]>) {
    for declaration in css.split([';', '{']) {
        let Some((name, value)) = declaration.trim().split_once(": #") else { continue };
        // A comment may stand before the name.
        let name = name.split_whitespace().last().unwrap_or_default();
        if name.starts_with("--") && value.len() == 6 {
            let channel = |at: usize| {
                let c = u8::from_str_radix(&value[at..at + 2], 16).expect("hexadecimal");
                let c = f64::from(c) / 255.0;
                if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
            };
            colours.insert(name.to_owned(), [channel(0), channel(2), channel(4)]);
        }
    }
}

fn contrast(a: [f64; 3], b: [f64; 3]) -> f64 {
    let luminance = |[r, g, b]: [f64; 3]| 0.2126 * r + 0.7152 * g + 0.0722 * b;
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[test]
fn colours_can_be_told_from_their_ground() {
    for (theme, colours) in ["light", "dark"].iter().zip(themes()) {
        let check = |front: &str, ground: &str, least: f64| {
            let ratio = contrast(colours[front], colours[ground]);
            assert!(ratio >= least, "{theme}: {front} on {ground} is {ratio:.2}:1, not {least}:1");
        };
        for front in ["--ink", "--muted", "--accent", "--good", "--bad"] {
            check(front, "--bg", 4.5);
            check(front, "--surface", 4.5);
        }
        check("--warn-ink", "--warn-bg", 4.5);
        check("--ink", "--warn-bg", 4.5);
        for slot in 1..=7 {
            check(&format!("--s{slot}"), "--bg", 3.0);
        }
        check("--s-muted", "--bg", 3.0);
        check("--axis", "--bg", 3.0);
    }
}
