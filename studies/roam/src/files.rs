//! Scenarios that files describe, beside those that have names.

use std::path::Path;

use fault::{Fault, Problem, WhileDoing};
use handoff::Scenario;
use serde::{Deserialize, Serialize};
use study::{Options, Sweep};

use crate::point::{Name, UnknownScenario};

/// A scenario, and the file that it came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OfFile {
    /// The file as the user named it.
    pub file: String,
    /// What is in it.
    pub scenario: Scenario,
}

/// The scenarios of a plan that came from files; a manifest keeps them, so that the files are not needed again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Files(Vec<OfFile>);

impl Files {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The scenario of a name: a built-in one, or a file's.
    ///
    /// # Errors
    /// There is none.
    pub fn scenario(&self, name: &Name) -> Result<Scenario, UnknownScenario> {
        let of_file = || self.of_name(name).map(|own| own.scenario.clone());
        let unknown = || UnknownScenario(name.0.clone());
        Scenario::named(&name.0).or_else(of_file).ok_or_else(unknown)
    }

    /// How a command names the scenario: by the file where it came from one.
    #[must_use]
    pub fn word<'a>(&'a self, name: &'a Name) -> &'a str {
        self.of_name(name).map_or(&name.0, |own| &own.file)
    }

    fn of_name(&self, name: &Name) -> Option<&OfFile> {
        self.0.iter().find(|own| own.scenario.name == name.0)
    }

    /// Reads the files that a sweep names, and puts the scenarios' names in their place.
    ///
    /// # Errors
    /// A file cannot be read, is no scenario, or its scenario has the name of another.
    pub fn take_from(&mut self, sweep: &mut Sweep, options: &Options<'_>) -> Result<(), Problem> {
        for word in sweep.lists.get_mut("scenario").into_iter().flatten() {
            if is_file(word) {
                *word = self.take(word, options)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, file: &str, options: &Options<'_>) -> Result<String, Problem> {
        if let Some(own) = self.0.iter().find(|own| own.file == file) {
            return Ok(own.scenario.name.clone());
        }
        let text = options.text_of(Path::new(file), "scenario")?;
        let scenario = Scenario::parse(&text).while_doing(|| file)?;
        let name = scenario.name.clone();
        let is_taken =
            Scenario::named(&name).is_some() || self.of_name(&Name(name.clone())).is_some();
        if is_taken {
            let what = format!("{file}: there is a scenario `{name}` already");
            return Err(Problem::new(Fault::Caller, what).with_remedy("give it another name"));
        }
        self.0.push(OfFile { file: file.to_owned(), scenario });
        Ok(name)
    }

    /// Whether all of them can be: a manifest may have been changed.
    ///
    /// # Errors
    /// One contradicts itself, or has a built-in one's name.
    pub fn check(&self) -> Result<(), Problem> {
        for own in &self.0 {
            own.scenario.check().while_doing(|| format!("the scenario {}", own.scenario.name))?;
            if Scenario::named(&own.scenario.name).is_some() {
                let what = format!("two scenarios are called `{}`", own.scenario.name);
                return Err(Problem::new(Fault::Caller, what));
            }
        }
        Ok(())
    }
}

/// Whether a word names a file and not a scenario.
fn is_file(word: &str) -> bool {
    word.contains('/') || Path::new(word).extension().is_some_and(|ending| ending == "toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(word: &str) -> Sweep {
        let lists = [("scenario".to_owned(), vec![word.to_owned()])].into();
        Sweep { name: "x".to_owned(), lists, ..Sweep::default() }
    }

    fn written(folder: &Path, name: &str, text: &str) -> String {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    const CASE: &str =
        "attachments = [{ ssid = \"a\", channel = 1 }, { ssid = \"b\", channel = 11 }]";

    #[test]
    fn a_file_is_taken_by_its_name_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = written(folder.path(), "case.toml", &format!("name = \"my-case\"\n{CASE}\n"));
        let mut files = Files::default();
        for _ in 0..2 {
            let mut sweep = sweep(&file);
            files.take_from(&mut sweep, &Options::none()).unwrap();
            assert_eq!(sweep.lists["scenario"], ["my-case"]);
        }
        let name = Name("my-case".to_owned());
        assert_eq!(files.scenario(&name).unwrap().attachments[1].ssid, "b");
        assert_eq!(files.word(&name), file);
        assert_eq!(files.word(&Name("mobike-host".to_owned())), "mobike-host");
        assert!(files.scenario(&Name("another".to_owned())).is_err());
        files.check().unwrap();
        let again = written(folder.path(), "again.toml", &format!("name = \"my-case\"\n{CASE}\n"));
        assert!(files.take_from(&mut sweep(&again), &Options::none()).is_err());
    }

    #[test]
    fn what_is_wrong_with_a_file_is_the_callers_and_the_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        for (text, says) in [
            (format!("name = \"mobike-host\"\n{CASE}\n"), "there is a scenario `mobike-host`"),
            ("name = 3".to_owned(), "not a scenario"),
            (format!("name = \"x\"\ntunnel = \"ipsec\"\n{CASE}\n"), "each site has a subnet"),
        ] {
            let file = written(folder.path(), "case.toml", &text);
            let problem = Files::default().take_from(&mut sweep(&file), &Options::none());
            let problem = problem.unwrap_err();
            assert_eq!(problem.fault(), Fault::Caller);
            assert!(problem.to_string().contains(says), "{problem}");
            assert!(problem.to_string().contains("case.toml"), "{problem}");
        }
        let problem = Files::default().take_from(&mut sweep("none.toml"), &Options::none());
        assert!(problem.unwrap_err().to_string().contains("none.toml"));
    }
}
