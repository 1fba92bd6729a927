//! Text of a line with code and emphasis in it.

use fault::one_line;

use crate::clean;

/// A piece of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Span {
    /// Text, shown as it is.
    Text(String),
    /// Something that a program reads: a setting, a command, a field.
    Code(String),
    /// What the reader should not miss.
    Strong(String),
}

/// A line of text: spans in their order. No text is read as markup unless by [`Inline::marked`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inline(pub Vec<Span>);

impl Inline {
    /// An empty line.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends plain text.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.0.push(Span::Text(text.into()));
        self
    }

    /// Appends something that a program reads.
    #[must_use]
    pub fn code(mut self, text: impl Into<String>) -> Self {
        self.0.push(Span::Code(text.into()));
        self
    }

    /// Appends emphasised text.
    #[must_use]
    pub fn strong(mut self, text: impl Into<String>) -> Self {
        self.0.push(Span::Strong(text.into()));
        self
    }

    /// Reads `` `code` `` and `**strong**` in the author's own text. A mark without its partner
    /// stays as it is. For text from outside use [`Inline::text`].
    #[must_use]
    pub fn marked(text: &str) -> Self {
        let mut line = Self::new();
        let mut rest = text;
        let mut plain = String::new();
        while let Some(at) = rest.find(['`', '*']) {
            let (before, tail) = rest.split_at(at);
            plain.push_str(before);
            let mark = if tail.starts_with('`') { "`" } else { "**" };
            let body = tail.strip_prefix(mark);
            match body.and_then(|body| body.split_once(mark)) {
                Some((inside, after)) if !inside.is_empty() => {
                    if !plain.is_empty() {
                        line.0.push(Span::Text(std::mem::take(&mut plain)));
                    }
                    line.0.push(match mark {
                        "`" => Span::Code(inside.to_owned()),
                        _ => Span::Strong(inside.to_owned()),
                    });
                    rest = after;
                }
                // Not a pair: the character stands for itself.
                _ => {
                    let (first, after) = tail.split_at(1);
                    plain.push_str(first);
                    rest = after;
                }
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            line.0.push(Span::Text(plain));
        }
        line
    }

    /// The text without its marks, on one line, fit for a terminal.
    #[must_use]
    pub fn to_plain(&self) -> String {
        let joined: String = self
            .0
            .iter()
            .map(|span| match span {
                Span::Text(text) | Span::Code(text) | Span::Strong(text) => text.as_str(),
            })
            .collect();
        one_line(&joined).into_owned()
    }

    pub(crate) fn to_html(&self) -> String {
        self.0
            .iter()
            .map(|span| match span {
                Span::Text(text) => clean::html(text),
                Span::Code(text) => format!("<code>{}</code>", clean::html(text)),
                Span::Strong(text) => format!("<strong>{}</strong>", clean::html(text)),
            })
            .collect()
    }
}

impl From<&str> for Inline {
    /// Plain text; nothing in it is read as markup.
    fn from(text: &str) -> Self {
        Self::new().text(text)
    }
}

impl From<String> for Inline {
    /// Plain text; nothing in it is read as markup.
    fn from(text: String) -> Self {
        Self::new().text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn marks_pair_or_stay() {
        assert_eq!(
            Inline::marked("set `a_b` to **on** now").0,
            [
                Span::Text("set ".into()),
                Span::Code("a_b".into()),
                Span::Text(" to ".into()),
                Span::Strong("on".into()),
                Span::Text(" now".into()),
            ]
        );
        assert_eq!(Inline::marked("2 * 3 ` **").0, [Span::Text("2 * 3 ` **".into())]);
    }

    #[test]
    fn plain_text_is_never_markup() {
        assert_eq!(Inline::from("`a` **b** <i>").to_html(), "`a` **b** &lt;i&gt;");
    }

    proptest! {
        #[test]
        fn marking_ends_and_keeps_letters(text in "[a-c`* ]{0,40}") {
            let letters = |s: &str| s.chars().filter(char::is_ascii_alphabetic).collect::<String>();
            prop_assert_eq!(letters(&Inline::marked(&text).to_plain()), letters(&text));
        }
    }
}
