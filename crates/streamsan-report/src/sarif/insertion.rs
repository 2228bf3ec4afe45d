//! Where a line of code can be pasted into a Python file: before a statement that starts a line.

/// For each line, how many bytes it is indented, if a statement starts there and another may go before it.
///
/// `None` within brackets, strings and continued lines, before `else` and its like, after a decorator, and
/// where the line is empty: the fix is then said in words only.
pub(crate) fn indentations(text: &str) -> Vec<Option<usize>> {
    let mut scanner = Scanner::default();
    let mut previous = "";
    text.lines()
        .map(|content| {
            let statement = content.trim_start();
            let word = statement.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or("");
            let begins = statement.starts_with(|c: char| c.is_alphabetic() || c == '_');
            let continues = ["elif", "else", "except", "finally", "case"].contains(&word);
            let free = scanner.at_statement() && begins && !continues && !previous.starts_with('@');
            scanner.line(content);
            if !statement.is_empty() {
                previous = statement;
            }
            free.then_some(content.len() - statement.len())
        })
        .collect()
}

/// What is open at the end of a line.
#[derive(Default)]
struct Scanner {
    brackets: usize,
    /// The quote of an open triple-quoted string.
    string: Option<u8>,
    /// The line ended with a backslash.
    continued: bool,
}

impl Scanner {
    fn at_statement(&self) -> bool {
        self.brackets == 0 && self.string.is_none() && !self.continued
    }

    fn line(&mut self, text: &str) {
        let bytes = text.as_bytes();
        self.continued = false;
        // The quote of an open string of one line.
        let mut short = None;
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            let triple = bytes[at..].starts_with(&[byte; 3]);
            match (self.string, short) {
                (Some(_), _) | (_, Some(_)) if byte == b'\\' => {
                    self.continued = at + 1 == bytes.len();
                    at += 1;
                }
                (Some(quote), _) => {
                    if byte == quote && triple {
                        self.string = None;
                        at += 2;
                    }
                }
                (None, Some(quote)) => {
                    if byte == quote {
                        short = None;
                    }
                }
                (None, None) => match byte {
                    b'\'' | b'"' if triple => {
                        self.string = Some(byte);
                        at += 2;
                    }
                    b'\'' | b'"' => short = Some(byte),
                    b'#' => return,
                    b'(' | b'[' | b'{' => self.brackets += 1,
                    b')' | b']' | b'}' => self.brackets = self.brackets.saturating_sub(1),
                    b'\\' => self.continued = at + 1 == bytes.len(),
                    _ => {}
                },
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::indentations;

    #[test]
    fn only_where_a_statement_starts() {
        let text = "\
import torch
def step(x):
    y = f(
        x.mul(2),
    )
    if y:  # (
        z = \"(\" + '\\'(' + '''a
    text
'''
    elif x \\
        + 1:
        pass

    @decorated
    def g(): ...
    r = \"\"\"(\"\"\"; s = [1,
    2]
\tlast = 1
";
        let expected = [
            (1, Some("")),
            (2, Some("")),
            (3, Some("    ")),
            (4, None),
            (5, None),
            (6, Some("    ")),
            (7, Some("        ")),
            (8, None),
            (9, None),
            (10, None),
            (11, None),
            (12, Some("        ")),
            (13, None),
            (14, None),
            (15, None),
            (16, Some("    ")),
            (17, None),
            (18, Some("\t")),
            (19, None),
        ];
        let found = indentations(text);
        for (line, indent) in expected {
            let found = found.get(line - 1).copied().flatten();
            assert_eq!(found, indent.map(str::len), "line {line}");
        }
    }
}
