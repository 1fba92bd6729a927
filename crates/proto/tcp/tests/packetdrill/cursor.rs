//! A place in a text, for the reader of scripts.

pub struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a str) -> Self {
        Cursor { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// The line of the next character, from 1.
    pub fn line(&self) -> usize {
        self.text.get(..self.at).unwrap_or("").matches('\n').count() + 1
    }

    pub fn is_at_end(&self) -> bool {
        self.rest().is_empty()
    }

    /// Passes blanks, line ends and comments.
    pub fn skip_blank(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start().len();
            self.at += blank;
            let rest = self.rest();
            let comment = if rest.starts_with("//") || rest.starts_with('#') {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |end| end + 2)
            } else {
                0
            };
            self.at += comment;
            if comment == 0 {
                return;
            }
        }
    }

    /// Passes blanks and comments up to the line's end.
    pub fn skip_on_line(&mut self) {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
            let rest = self.rest();
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            }
            if !rest.starts_with("/*") {
                return;
            }
            self.at += rest.find("*/").map_or(rest.len(), |end| end + 2);
        }
    }

    pub fn is_at_line_end(&self) -> bool {
        self.rest().is_empty() || self.rest().starts_with('\n')
    }

    pub fn starts_with(&self, text: &str) -> bool {
        self.rest().starts_with(text)
    }

    /// Whether a number begins here.
    pub fn starts_with_digit(&self) -> bool {
        let mut chars = self.rest().chars();
        match chars.next() {
            Some('.') => chars.next().is_some_and(|c| c.is_ascii_digit()),
            other => other.is_some_and(|c| c.is_ascii_digit()),
        }
    }

    pub fn eat(&mut self, text: &str) -> bool {
        let eaten = self.starts_with(text);
        if eaten {
            self.at += text.len();
        }
        eaten
    }

    fn take_while(&mut self, part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !part(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or("")
    }

    /// Digits with a decimal point; three points are not part of it.
    pub fn take_number(&mut self) -> &'a str {
        let rest = self.rest();
        let mut end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        if let Some(dots) = rest.get(..end).and_then(|number| number.find("...")) {
            end = dots;
        }
        self.at += end;
        rest.get(..end).unwrap_or("")
    }

    /// Letters, digits and underscores.
    pub fn take_word(&mut self) -> &'a str {
        self.take_while(|c| c.is_ascii_alphanumeric() || c == '_')
    }

    pub fn peek_word(&self) -> &'a str {
        Cursor { text: self.text, at: self.at }.take_word()
    }

    /// All up to the next blank.
    pub fn take_token(&mut self) -> &'a str {
        self.take_while(|c| !c.is_whitespace())
    }

    pub fn rest_of_line(&mut self) -> &'a str {
        self.take_while(|c| c != '\n')
    }

    /// All before `end`, which is passed.
    pub fn until(&mut self, end: &str) -> Result<&'a str, String> {
        let rest = self.rest();
        let at = rest.find(end).ok_or_else(|| format!("`{end}` is missing"))?;
        self.at += at + end.len();
        Ok(rest.get(..at).unwrap_or(""))
    }

    /// All between `begin`, which is here, and `end`.
    pub fn between(&mut self, begin: &str, end: &str) -> Result<&'a str, String> {
        self.eat(begin);
        self.until(end)
    }

    /// All between a parenthesis, which is here, and its end.
    pub fn balanced(&mut self) -> Result<&'a str, String> {
        self.eat("(");
        let rest = self.rest();
        let mut depth = 1;
        for (at, c) in rest.char_indices() {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.at += at + 1;
                return Ok(rest.get(..at).unwrap_or(""));
            }
        }
        Err("`)` is missing".into())
    }
}
