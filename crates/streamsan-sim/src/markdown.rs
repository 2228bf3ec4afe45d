//! Tests in a markdown file: each `sim` block, named by the headers above it.
//!
//! Only what the tests need is understood: headers that start with `#`, and fenced blocks. Blocks of other
//! languages are skipped whole, so a `#` inside them is no header.

use crate::annotations::Annotations;
use crate::error::ProgramError;
use crate::parse;
use crate::program::Program;

/// One `sim` block of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// The headers above it, outermost first, joined by ` / `. A second block under the same header has
    /// ` (2)` appended, and so on.
    pub name: String,
    /// The file.
    pub path: String,
    /// The line of the opening fence, from 1.
    pub line: u32,
    /// The program.
    pub program: Program,
    /// Labels and expectations in its comments.
    pub annotations: Annotations,
}

/// A header and the text of a block before it is parsed.
struct Block {
    name: String,
    line: u32,
    text: String,
}

/// The tests of a markdown file, in order.
///
/// # Errors
/// If a block is not closed, stands under no header, or holds a mistake.
pub fn parse_file(path: &str, text: &str) -> Result<Vec<Test>, ProgramError> {
    blocks(path, text)?
        .into_iter()
        .map(|block| {
            let (program, annotations) = parse::parse_lines(path, &block.text, block.line + 1)?;
            Ok(Test { name: block.name, path: path.to_owned(), line: block.line, program, annotations })
        })
        .collect()
}

/// How many of `character` the line starts with.
fn leading(line: &str, character: char) -> usize {
    line.chars().take_while(|&found| found == character).count()
}

fn blocks(path: &str, text: &str) -> Result<Vec<Block>, ProgramError> {
    let error =
        |line: u32, message: &str| ProgramError { path: path.to_owned(), line, message: message.to_owned() };
    let mut headers: Vec<(usize, String)> = Vec::new();
    let mut blocks: Vec<Block> = Vec::new();
    // Length of the open fence and its line; the block if it is one of ours.
    let mut open: Option<(usize, u32, Option<Block>)> = None;
    for (line, number) in text.lines().zip(1_u32..) {
        let trimmed = line.trim();
        let ticks = leading(trimmed, '`');
        if let Some((length, _, block)) = &mut open {
            if ticks >= *length && trimmed.len() == ticks {
                blocks.extend(block.take());
                open = None;
            } else if let Some(block) = block {
                block.text.push_str(line);
                block.text.push('\n');
            }
        } else if ticks >= 3 {
            let block = if trimmed[ticks..].trim() == "sim" {
                if headers.is_empty() {
                    return Err(error(
                        number,
                        "a sim block needs a header above it: add one, it names the test",
                    ));
                }
                let path: Vec<_> = headers.iter().map(|(_, title)| title.as_str()).collect();
                Some(Block { name: path.join(" / "), line: number, text: String::new() })
            } else {
                None
            };
            open = Some((ticks, number, block));
        } else {
            let level = leading(line, '#');
            if (1..=6).contains(&level) && line[level..].starts_with(' ') {
                headers.retain(|(other, _)| *other < level);
                headers.push((level, line[level..].trim().to_owned()));
            }
        }
    }
    if let Some((_, line, _)) = open {
        return Err(error(line, "this block is not closed: add a line with ``` after it"));
    }
    let names: Vec<String> = blocks.iter().map(|block| block.name.clone()).collect();
    for (index, block) in blocks.iter_mut().enumerate() {
        let before = names[..index].iter().filter(|name| **name == block.name).count();
        if before > 0 {
            block.name = format!("{} ({})", block.name, before + 1);
        }
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::parse_file;

    const FILE: &str = "# Top\n\ntext\n\n```py\n# no header\n```\n\n## One\n\n```sim\nstreams a\nbuffer x 4\na: read x\n```\n\n```sim\nstreams b\n```\n\n### Deep\n````sim\nstreams c\n````\n## Two\n```sim\nstreams d\n```\n";

    #[test]
    fn blocks_are_named_by_the_headers_above_them() {
        let tests = parse_file("f.md", FILE).unwrap();
        let names: Vec<_> = tests.iter().map(|test| (test.name.as_str(), test.line)).collect();
        assert_eq!(
            names,
            [("Top / One", 11), ("Top / One (2)", 17), ("Top / One / Deep", 22), ("Top / Two", 26)]
        );
        assert_eq!(tests[0].program.steps[0].line, 14);
    }

    #[test]
    fn mistakes_in_the_file_have_a_line() {
        let error = |text: &str| parse_file("f.md", text).unwrap_err().to_string();
        assert!(error("# A\n```sim\nstreams a\n").starts_with("f.md:2: this block is not closed"));
        assert!(error("```sim\n```\n").starts_with("f.md:1: a sim block needs a header"));
        assert!(error("# A\n```sim\nstreams a\na: jump x\n```\n").starts_with("f.md:4: `jump` is not known"));
    }
}
