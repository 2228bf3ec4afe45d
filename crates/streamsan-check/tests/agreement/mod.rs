//! When the checker agrees with the judge: see `random.rs` for the definition.

use streamsan_check::{Rule, hazards};
use streamsan_sim::{Found, Kind, Pair, Program, lower};

/// The checker's pairs as steps of the program, sorted as the judge's are.
pub fn checker_pairs(program: &Program) -> Vec<Found> {
    let lowered = lower(program, "random.md", "");
    let mut pairs: Vec<Found> = hazards(&lowered.trace)
        .iter()
        .map(|hazard| {
            let step = |number| lowered.step(number).expect("a hazard is between steps of the program");
            let pair = Pair { first: step(hazard.first), second: step(hazard.second) };
            Found { pair, kind: kind(hazard.rule) }
        })
        .collect();
    pairs.sort_by_key(|found| (found.pair.second, found.pair.first, found.kind));
    pairs.dedup();
    pairs
}

pub fn kind(rule: Rule) -> Kind {
    match rule {
        Rule::Ss101 | Rule::Ss102 | Rule::Ss103 | Rule::Ss501 | Rule::Ss502 | Rule::Ss601 | Rule::Ss602 => {
            Kind::Order
        }
        Rule::Ss201 => Kind::UseBeforeAllocation,
        Rule::Ss202 => Kind::ReuseWhileInUse,
        Rule::Ss203 => Kind::FreedWhileInUse,
        Rule::Ss204 => Kind::UseAfterFree,
        Rule::Ss301 | Rule::Ss302 => Kind::Host,
        Rule::Ss303 => Kind::HostFree,
        other => panic!("{} is not about a pair", other.code()),
    }
}

/// How the two differ, if they do: the pair to look at and what is wrong with it.
pub fn disagreement(judged: &[Found], checked: &[Found]) -> Option<(Found, &'static str)> {
    if let Some(found) = checked.iter().find(|found| !judged.contains(found)) {
        return Some((*found, "the checker gives this pair, the judge does not"));
    }
    let unordered = |found: &&Found| found.kind.is_unordered();
    if let Some(earliest) = judged.iter().find(unordered)
        && !checked.iter().filter(unordered).any(|found| found.pair.second == earliest.pair.second)
    {
        return Some((*earliest, "this pair can swap, but the checker gives none with this later operation"));
    }
    let of = |kind: Kind| move |found: &&Found| found.kind == kind;
    if let Some(found) = judged.iter().filter(of(Kind::UseAfterFree)).find(|found| !checked.contains(found)) {
        return Some((*found, "this is a use after a free, but the checker does not give it"));
    }
    let mut seen = Vec::new();
    for found in judged.iter().filter(of(Kind::FreedWhileInUse)) {
        let second = found.pair.second;
        let first_of_use = !seen.contains(&found.pair.first);
        seen.push(found.pair.first);
        let endangered = |user: usize| {
            let pair = Pair { first: user, second };
            judged.contains(&Found { pair, kind: Kind::FreedWhileInUse })
        };
        let mut given = checked.iter().filter(of(Kind::FreedWhileInUse));
        let given = given.any(|other| other.pair.second <= second && endangered(other.pair.first));
        if first_of_use && !given {
            return Some((*found, "this block was freed in use, but the checker does not give it"));
        }
    }
    None
}
