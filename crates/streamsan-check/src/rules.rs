//! The catalogue of rules: code, name, level, family, page.

pub(crate) mod events;
pub(crate) mod lifetime;

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A stream reads what another wrote, unordered.
    Ss101,
    /// A stream overwrites what another reads, unordered.
    Ss102,
    /// Two streams write the same bytes, unordered.
    Ss103,
    /// Memory used by its new owner before the order of its owner stream reaches it.
    Ss201,
    /// Memory handed to a new owner while the old one may still use it.
    Ss202,
    /// Memory freed while in use; it was not handed out again in this run, but might have been.
    Ss203,
    /// An access to memory that has been freed.
    Ss204,
    /// The host reads what a copy may not have written yet.
    Ss301,
    /// The host writes what a copy may still read or write.
    Ss302,
    /// The host frees page-locked memory that a copy may still use.
    Ss303,
    /// A stream waits on an event that was never recorded.
    Ss401,
    /// A wait on an event of a third stream stands where the hazard's streams are unordered.
    Ss402,
    /// A stream waits on an event recorded in that same stream.
    Ss403,
    /// A wait was issued before the operation that it was meant for.
    Ss404,
    /// Two stream objects in use stand for one stream.
    Ss405,
    /// `record_stream` without effect.
    Ss406,
    /// An operation ran on the default stream of a thread that did not inherit the current stream.
    Ss407,
    /// What a graph reads is written by an operation outside, unordered.
    Ss501,
    /// What a graph writes is touched by an operation outside, unordered.
    Ss502,
    /// Bytes of a collective are touched, unordered.
    Ss601,
    /// The same, though another stream waits for the collective.
    Ss602,
    /// Copies from or to memory that is not page-locked, in a loop.
    Ss701,
    /// The host waits in each turn of a loop, and no stream has work after that.
    Ss702,
    /// A stream or the host waits for what is ordered already.
    Ss703,
    /// A wait for a whole stream where an event in it is enough.
    Ss704,
    /// Memory is page-locked in a loop.
    Ss705,
    /// Memory that was freed and is of no use yet, or any more.
    Ss706,
    /// `record_stream` that order makes needless.
    Ss707,
    /// The trace does not hold everything that happened.
    Ss901,
    /// Operations whose accesses are not known.
    Ss902,
    /// An ignore that left out nothing.
    Ss903,
}

/// How serious a finding of a rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// A result may be wrong.
    Error,
    /// No wrong result is proved; the code does not do what it says.
    Warning,
    /// Said for information.
    Note,
}

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Order between streams.
    Order,
    /// Lifetimes of memory.
    Lifetime,
    /// The host against copies.
    Host,
    /// Streams and events.
    Events,
    /// Graphs.
    Graphs,
    /// Collectives.
    Collectives,
    /// What a program that may be right does more of than it needs.
    Advice,
    /// The tool itself.
    Tool,
}

struct Row {
    rule: Rule,
    code: &'static str,
    name: &'static str,
    level: Level,
    family: Family,
    page: &'static str,
}

macro_rules! rows {
    ($($rule:ident $code:literal $name:literal $level:ident $family:ident;)*) => {
        &[$(Row {
            rule: Rule::$rule,
            code: $code,
            name: $name,
            level: Level::$level,
            family: Family::$family,
            page: include_str!(concat!("../rule_docs/", $code, ".md")),
        }),*]
    };
}

const ROWS: &[Row] = rows! {
    Ss101 "SS101" "unordered-read-after-write"  Error   Order;
    Ss102 "SS102" "unordered-write-after-read"  Error   Order;
    Ss103 "SS103" "unordered-write-after-write" Error   Order;
    Ss201 "SS201" "use-before-allocation"       Error   Lifetime;
    Ss202 "SS202" "reuse-while-in-use"          Error   Lifetime;
    Ss203 "SS203" "freed-while-in-use"          Warning Lifetime;
    Ss204 "SS204" "use-after-free"              Error   Lifetime;
    Ss301 "SS301" "host-read-before-copy-done"  Error   Host;
    Ss302 "SS302" "host-write-during-copy"      Error   Host;
    Ss303 "SS303" "host-free-during-copy"       Error   Host;
    Ss401 "SS401" "wait-on-unrecorded-event"    Warning Events;
    Ss402 "SS402" "event-on-other-stream"       Note    Events;
    Ss403 "SS403" "self-wait"                   Warning Events;
    Ss404 "SS404" "early-wait"                  Note    Events;
    Ss405 "SS405" "aliased-streams"             Warning Events;
    Ss406 "SS406" "record-stream-no-effect"     Warning Events;
    Ss407 "SS407" "lost-stream-context"         Note    Events;
    Ss501 "SS501" "graph-input-overwritten"     Error   Graphs;
    Ss502 "SS502" "graph-output-overwritten"    Error   Graphs;
    Ss601 "SS601" "collective-buffer-touched"   Error   Collectives;
    Ss602 "SS602" "wait-on-other-stream"        Error   Collectives;
    Ss701 "SS701" "pageable-copy"               Note    Advice;
    Ss702 "SS702" "host-sync-in-loop"           Note    Advice;
    Ss703 "SS703" "redundant-wait"              Note    Advice;
    Ss704 "SS704" "serialising-wait"            Note    Advice;
    Ss705 "SS705" "pin-in-loop"                 Note    Advice;
    Ss706 "SS706" "memory-held"                 Note    Advice;
    Ss707 "SS707" "oversized-record"            Note    Advice;
    Ss901 "SS901" "incomplete-trace"            Note    Tool;
    Ss902 "SS902" "unknown-access"              Note    Tool;
    Ss903 "SS903" "unused-ignore"               Warning Tool;
};

impl Rule {
    /// All rules, by code.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.rule)
    }

    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Its code, such as `SS101`.
    pub fn code(self) -> &'static str {
        self.row().code
    }

    /// Its name, which reads well after "allow".
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// How serious it is.
    pub fn level(self) -> Level {
        self.row().level
    }

    /// Whether it is advice, which is given only where it is asked for.
    pub fn is_advice(self) -> bool {
        self.family() == Family::Advice
    }

    /// What it is about.
    pub fn family(self) -> Family {
        self.row().family
    }

    /// Its page, in markdown.
    pub fn page(self) -> &'static str {
        self.row().page
    }

    /// The first sentence of the page.
    pub fn summary(self) -> &'static str {
        let after = self.page().split_once("## What it finds\n").map_or("", |(_, rest)| rest);
        after.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("")
    }

    /// The rule with this code or name, in either case.
    pub fn parse(text: &str) -> Option<Self> {
        ROWS.iter()
            .find(|row| row.code.eq_ignore_ascii_case(text) || row.name.eq_ignore_ascii_case(text))
            .map(|row| row.rule)
    }
}

#[cfg(test)]
mod tests {
    use super::Rule;

    #[test]
    fn rows_stand_in_the_order_of_the_enum() {
        for (index, rule) in Rule::all().enumerate() {
            assert_eq!(rule as usize, index, "{}", rule.code());
            assert_eq!(Rule::parse(rule.code()), Some(rule));
            assert_eq!(Rule::parse(rule.name()), Some(rule));
            assert!(!rule.summary().is_empty(), "{} has no summary", rule.code());
        }
    }
}
