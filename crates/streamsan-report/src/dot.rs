//! Graphs in the language of Graphviz.

pub(crate) mod operations;
pub(crate) mod slice;
pub(crate) mod streams;

/// A quoted string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            _ if character.is_control() => quoted.push('\u{fffd}'),
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// The first lines of each graph.
fn head(title: &str) -> String {
    format!(
        "digraph streamsan {{\n  label={};\n  labelloc=t;\n  rankdir=LR;\n  fontname=monospace;\n  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=monospace, fontsize=11];\n  edge [fontname=monospace, fontsize=10, color=\"#6b7280\"];\n",
        quoted(title)
    )
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn nothing_ends_the_string() {
        assert_eq!(quoted("a\"b\\\nc\u{1b}"), "\"a\\\"b\\\\\\nc\u{fffd}\"");
    }
}
