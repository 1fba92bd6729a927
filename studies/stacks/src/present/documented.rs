//! Functions that no handshake here shows, as the libraries' documentation says them.

use report::{Cell, Column, Row, Table};

use super::Findings;

const DOCUMENTED: &str = include_str!("../../functions.csv");

/// The lines that are no comments, the heads first, each in its fields.
fn lines() -> impl Iterator<Item = Vec<&'static str>> {
    let lines = DOCUMENTED.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split(';').collect())
}

/// The family of a driver, and a runtime's.
fn family(name: &str) -> &str {
    name.split('-').next().unwrap_or(name)
}

/// A row for each library of the run.
pub(super) fn table(findings: &Findings) -> Option<Table> {
    let mut lines = lines();
    let heads = lines.next()?;
    let families: Vec<Vec<&str>> = lines.collect();
    let mut columns = vec![Column::new("Library")];
    columns.extend(heads.into_iter().skip(1).map(Column::new));
    let caption = "By function, as documented and not tried here: stapled OCSP answers, revocation lists, server \
                   name, protocol negotiation, certificate transparency, finite-field key agreement, AES-CCM \
                   suites, servers' session caches (in the library and how large, or the program's), what cryptography can be plugged in, Debian's package";
    let mut table = Table::new(caption, columns);
    for about in &findings.summary.libraries {
        if about.name == crate::NULL || about.absent.is_some() {
            continue;
        }
        let own = families.iter().find(|line| line.first() == Some(&family(&about.name)));
        let Some(own) = own else { continue };
        let mut cells = vec![Cell::text(about.title.clone())];
        cells.extend(own.iter().skip(1).map(|text| Cell::text(*text)));
        table.push(Row::new(cells));
    }
    (!table.rows.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_of_drivers_has_a_line_with_every_field() {
        let all: Vec<_> = lines().collect();
        assert!(all.iter().all(|line| line.len() == 13 && line.iter().all(|one| !one.is_empty())));
        let drivers = concat!(env!("CARGO_MANIFEST_DIR"), "/../../drivers");
        let entries = std::fs::read_dir(drivers).unwrap().flatten();
        let packages = entries.filter(|entry| entry.path().join("driver.toml").is_file());
        let names: Vec<String> =
            packages.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        assert!(names.len() > 20);
        for name in names.iter().map(String::as_str).chain(["go", "java"]) {
            let known = all.iter().any(|line| line[0] == family(name));
            assert!(known, "{name} has no line");
        }
    }
}
