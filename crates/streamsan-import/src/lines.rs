//! In which lines of a function something is called, as the source says that lies on this machine.
//!
//! A profile has the first line of a function only. What it misses: calls under another name (`sync = torch.cuda.synchronize`), and
//! a source that was changed without moving the function.

use crate::place::Place;

/// More lines than these say nothing.
const MOST: usize = 3;

/// Fills in the lines of a place. `source`: the text of a file by the path that the profile has.
pub(crate) fn find(place: &mut Place, source: &dyn Fn(&str) -> Option<String>) {
    let (Some(function), Some(callee)) = (&place.function, &place.callee) else { return };
    let name = callee.rsplit('.').next().unwrap_or(callee);
    let Some(text) = source(&function.file) else { return };
    let Ok(first) = usize::try_from(function.line) else { return };
    let lines = calls(&text, first, &function.name, name);
    if lines.len() <= MOST {
        place.lines = lines;
    }
}

/// The lines (from 1) of the function that starts at `first` in which `name` is called.
fn calls(text: &str, first: usize, function: &str, name: &str) -> Vec<u64> {
    let lines: Vec<&str> = text.lines().collect();
    // A function starts at its decorators.
    let starts = first.max(1) - 1;
    let decorated = lines.get(starts).is_some_and(|line| line.trim_start().starts_with('@'));
    let within = if decorated { 20 } else { 1 };
    let Some(start) = (starts..lines.len()).take(within).find(|&at| is_definition(lines[at], function))
    else {
        return Vec::new();
    };
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own = indent(lines[start]);
    let Some(colon) = (start..lines.len()).find(|&at| code(lines[at]).trim_end().ends_with(':')) else {
        return Vec::new();
    };
    let body = lines
        .iter()
        .enumerate()
        .skip(colon + 1)
        .take_while(|(_, line)| code(line).trim().is_empty() || indent(line) > own);
    body.filter(|(_, line)| is_called(code(line), name)).map(|(at, _)| at as u64 + 1).collect()
}

fn is_definition(line: &str, function: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("async ").unwrap_or(line);
    line.strip_prefix("def ")
        .and_then(|rest| rest.strip_prefix(function))
        .is_some_and(|rest| rest.starts_with(['(', '[']))
}

fn is_called(code: &str, name: &str) -> bool {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    code.match_indices(name)
        .any(|(at, _)| code[at + name.len()..].starts_with('(') && !code[..at].ends_with(is_word))
}

/// Without a comment. A `#` in a string ends it too early.
fn code(line: &str) -> &str {
    line.split('#').next().unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::calls;

    const TEXT: &str = "import torch


@torch.no_grad()
def step(
    x,
):
    # x.item() is not called here
    my_item(x)
    if x:

        print(x.item(), item (x))
    return x.item()


def other(x): return x.item()


class C:
    async def step(self):
        self.item()
    y = item(3)
";

    #[test]
    fn calls_of_one_function() {
        assert_eq!(calls(TEXT, 4, "step", "item"), [12, 13]);
        assert_eq!(calls(TEXT, 20, "step", "item"), [21]);
        // The source is not that of the profile, or nothing is called like that.
        for (line, function, name) in [
            (5, "stop", "item"),
            (9, "step", "item"),
            (4, "step", "cuda"),
            (99, "step", "item"),
            (0, "ste", "item"),
        ] {
            assert_eq!(calls(TEXT, line, function, name), [0u64; 0], "{line} {function} {name}");
        }
        assert_eq!(calls("def f(", 1, "f", "item"), [0u64; 0]);
        assert_eq!(calls("", 1, "f", "item"), [0u64; 0]);
    }
}
