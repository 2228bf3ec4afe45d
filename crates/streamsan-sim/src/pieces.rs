//! Pieces of a line of the program language: names, sizes, ranges.

use crate::bytes::{Bytes, Runs};

/// What one line leads to.
pub(crate) type Parsed<T> = Result<T, String>;

/// Names that lines begin with or targets have.
const RESERVED: [&str; 2] = ["host", "device"];

/// A first word and what follows it.
pub(crate) fn word(text: &str) -> (&str, &str) {
    let text = text.trim();
    text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim()))
}

/// Checks that a name is a word of letters, digits and `_`.
pub(crate) fn name(text: &str) -> Parsed<&str> {
    let text = text.trim();
    let good = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    if !good {
        return Err(format!("`{text}` is no name: use letters, digits and `_`"));
    }
    if RESERVED.contains(&text) {
        return Err(format!("`{text}` has a meaning of its own: use another name"));
    }
    Ok(text)
}

/// A number of bytes: `64`, `64B`, `4KiB`, `4MiB`, `1GiB`.
pub(crate) fn size(text: &str) -> Parsed<u64> {
    let text = text.trim();
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let factor: u64 = match text[digits..].trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        unit => return Err(format!("`{unit}` is no unit: use B, KiB, MiB or GiB")),
    };
    text[..digits]
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(factor))
        // Room above, so that sums of offsets cannot overflow.
        .filter(|bytes| *bytes <= 1 << 48)
        .ok_or_else(|| format!("`{text}` is no size: write bytes or a size such as 4MiB, at most 2^48 bytes"))
}

/// A name and the text of the range behind it.
pub(crate) fn operand(text: &str) -> Parsed<(&str, Option<&str>)> {
    match text.split_once('[') {
        None => Ok((text, None)),
        Some((buffer, range)) => {
            let range = range.strip_suffix(']').ok_or_else(|| format!("`{text}` has no closing `]`"))?;
            Ok((buffer.trim(), Some(range)))
        }
    }
}

/// Reads `lo..hi` or `lo..hi step N run R`.
pub(crate) fn bytes(text: &str) -> Parsed<Bytes> {
    let wrong = || format!("`[{text}]` is no range: write `[lo..hi]` or `[lo..hi step 16 run 4]`");
    let (low, rest) = text.split_once("..").ok_or_else(wrong)?;
    let (high, rest) = word(rest);
    let (low, high) = (size(low)?, size(high)?);
    if low >= high {
        return Err(format!("`[{text}]` holds no byte: the end must be after the start"));
    }
    if rest.is_empty() {
        return Ok(Bytes::interval(low, high));
    }
    let words: Vec<&str> = rest.split_whitespace().collect();
    let ["step", step, "run", run] = words[..] else { return Err(wrong()) };
    let runs = Runs { step: size(step)?, run: size(run)? };
    if runs.run == 0 || runs.run >= runs.step {
        return Err(format!("`[{text}]`: a run must be shorter than the step and at least one byte"));
    }
    let bytes = Bytes { low, high, runs: Some(runs) };
    if bytes.end() > high {
        return Err(format!("`[{text}]`: the last run ends at {}, after {high}", bytes.end()));
    }
    Ok(bytes)
}
