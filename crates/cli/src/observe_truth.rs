//! What results have of the observe study: clients of whom all is known, and how far their records agree
//! with the logs of both ends.

use observe::truth::{self, Agreement};
use observe::{Findings, Options};
use record::Sample;
use report::{Section, Table};

use crate::exit::{Exit, Failed, OrExit};

/// The study's part of results.
pub struct Truth {
    /// What the records say.
    pub findings: Findings,
    /// How far they agree with the logs.
    pub agreement: Agreement,
}

impl Truth {
    /// Of samples; `None` if there are none of this study.
    pub fn of(samples: &[Sample], seed: u64) -> Result<Option<Truth>, Failed> {
        let bucket = std::time::Duration::from_secs(1);
        let options = Options { seed, bucket, ..Options::default() };
        let found = truth::again(samples, options).or_exit(Exit::Results)?;
        Ok(found.map(|(findings, agreement)| Truth { findings, agreement }))
    }

    /// The study's tables for a terminal.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = self.findings.tables();
        tables.extend(self.agreement.section().blocks.into_iter().filter_map(
            |block| match block {
                report::Block::Table(table) => Some(table),
                _ => None,
            },
        ));
        tables
    }

    /// The study's sections of a report.
    pub fn sections(&self) -> Result<Vec<Section>, Failed> {
        let mut sections = self.findings.sections().or_exit(Exit::Results)?;
        sections.push(self.agreement.section());
        Ok(sections)
    }
}
