//! Text from a trace within markup.

/// Text that can stand in an element or in a quoted attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + text.len() / 8);
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(visible(character)),
        }
    }
    escaped
}

/// The character itself, or U+FFFD in place of one that must not be in a page.
///
/// Those are control characters, which XML does not allow, and the characters that turn the direction of what
/// follows, which make code read differently from what runs.
pub(crate) fn visible(character: char) -> char {
    const TURNING: [char; 3] = ['\u{200e}', '\u{200f}', '\u{061c}'];
    let turns = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || TURNING.contains(&character);
    let control = character.is_control() && !matches!(character, '\n' | '\t');
    if turns || control || matches!(character, '\u{fffe}' | '\u{ffff}') { '\u{fffd}' } else { character }
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn nothing_from_a_trace_is_markup() {
        assert_eq!(
            escape("<script>\"'&\u{1b}[2J\u{202e}\0x"),
            "&lt;script&gt;&quot;&#39;&amp;\u{fffd}[2J\u{fffd}\u{fffd}x"
        );
    }
}
