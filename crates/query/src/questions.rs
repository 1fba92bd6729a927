//! The standard questions.

use crate::error::Error;

/// A standard question: a file under `queries/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// The file's name without `.sql`.
    pub name: &'static str,
    /// What it holds.
    pub sql: &'static str,
}

impl Question {
    /// What it asks: the comment on top, without its dashes, on one line.
    #[must_use]
    pub fn about(&self) -> String {
        let comments = self.sql.lines().map_while(|line| line.strip_prefix("-- "));
        comments.collect::<Vec<_>>().join(" ")
    }
}

macro_rules! questions {
    ($($name:literal)*) => {
        [$(Question {
            name: $name,
            sql: include_str!(concat!("../../../queries/", $name, ".sql")),
        }),*]
    };
}

/// All standard questions.
pub const QUESTIONS: [Question; 13] = questions![
    "distribution" "hello_to_data" "quantiles" "difference" "classes" "versions_offered" "suites"
    "names" "networks" "hours" "alerts" "endings" "uncertain"
];

/// The SQL of a standard question, or the text itself if it is more than one word.
pub(crate) fn sql(text: &str) -> Result<&str, Error> {
    let text = text.trim();
    match QUESTIONS.iter().find(|question| question.name == text) {
        Some(question) => Ok(question.sql),
        None if text.contains(char::is_whitespace) => Ok(text),
        None => Err(Error::NoQuestion(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fault::Explain;

    #[test]
    fn every_file_is_a_question_and_says_what_it_asks() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../queries");
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let mut names: Vec<_> = QUESTIONS.map(|question| format!("{}.sql", question.name)).into();
        files.sort();
        names.sort();
        assert_eq!(names, files);
        for question in QUESTIONS {
            assert!(question.about().contains('?'), "{}: {}", question.name, question.about());
        }
    }

    #[test]
    fn a_word_is_a_question_and_more_than_one_is_sql() {
        assert_eq!(sql(" classes\n").unwrap(), QUESTIONS[4].sql);
        assert_eq!(sql("SELECT 1").unwrap(), "SELECT 1");
        let error = sql("clases").unwrap_err();
        assert_eq!(error.to_string(), "there is no question `clases`");
        let remedy = error.remedy().unwrap();
        assert!(remedy.contains("classes"), "{remedy}");
    }
}
