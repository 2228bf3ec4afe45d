//! What was probably meant by a word that is not known.

/// The candidate that is at most two changes away, and at most one for three of its letters, the nearest first.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (changes(&word, &candidate.to_lowercase()), candidate))
        .filter(|&(count, candidate)| count <= 2 && 3 * count <= candidate.chars().count())
        .min_by_key(|&(count, _)| count)
        .map(|(_, candidate)| candidate)
}

/// How many letters have to be put in, taken out, replaced or swapped with their neighbour.
fn changes(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![(0..=to.len()).collect::<Vec<usize>>()];
    for (row, letter) in from.iter().enumerate() {
        let mut next = vec![row + 1];
        for (column, other) in to.iter().enumerate() {
            let replaced = rows[row][column] + usize::from(letter != other);
            let mut best = replaced.min(rows[row][column + 1] + 1).min(next[column] + 1);
            if row > 0 && column > 0 && from[row - 1] == *other && to[column - 1] == *letter {
                best = best.min(rows[row - 1][column - 1] + 1);
            }
            next.push(best);
        }
        rows.push(next);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn small_slips_only() {
        let words = ["run", "check", "explain", "limits", "SS101"];
        for (word, expected) in [
            ("chekc", Some("check")),
            ("limit", Some("limits")),
            ("rnu", Some("run")),
            ("explian", Some("explain")),
            ("ss1o1", Some("SS101")),
            ("record", None),
            ("it", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, words), expected, "{word}");
        }
    }
}
