//! What is not to be reported: places where the program says that a hazard is none.
//!
//! Three forms. A comment on a line, and a configuration for a file, come with the [`Config`](crate::Config): this
//! crate reads no files. A range of the program comes with the log: `RangeBegin` and `RangeEnd` of kind `Ignore`, whose
//! label has the rules, separated by commas, a space, and the reason.
//!
//! A hazard is left out if one of its operations is at such a place. What was left out is counted; a place that ran
//! and left out nothing is SS903, unless it ignores SS903 too.

use crate::edges::Line;
use crate::finding::{Actor, Finding, Note, Occurrences};
use crate::fingerprint::fingerprint;
use crate::group::{Key, key, place};
use crate::hazard::{Hazard, Origin};
use crate::rules::Rule;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use streamsan_trace::{Event, EventKind, OpNumber, RangeKind, SiteId, StringId, Tables, ThreadId};

/// Ignores that stand outside the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ignores {
    /// Comments in source files.
    pub comments: Vec<IgnoreComment>,
    /// Configured for files.
    pub files: Vec<IgnoreFiles>,
}

/// `# streamsan: ignore[SS101] reason`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoreComment {
    /// The file, as the log names it.
    pub file: String,
    /// The line of code that it is for, from 1.
    pub line: u32,
    /// The rules.
    pub rules: Vec<Rule>,
    /// Why.
    pub reason: String,
}

/// Rules that are ignored in some files: `per-file-ignores` of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoreFiles {
    /// The pattern, for people.
    pub pattern: String,
    /// The files that it stands for, as the log names them.
    pub files: Vec<String>,
    /// The rules.
    pub rules: Vec<Rule>,
}

/// Where an ignore stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IgnoreSource {
    /// A comment for this line of this file.
    Comment {
        /// The file, as the log names it.
        file: String,
        /// The line.
        line: u32,
    },
    /// `streamsan.ignore` in the program.
    Range {
        /// Its call stack.
        site: SiteId,
    },
    /// A configuration for files.
    Files {
        /// The pattern.
        pattern: String,
    },
}

/// An ignore that was met in the log, and what it left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// Where it stands.
    pub source: IgnoreSource,
    /// The rules.
    pub rules: Vec<Rule>,
    /// Why; empty for files.
    pub reason: String,
    /// How many findings it left out, each a rule and a pair of lines.
    pub findings: u64,
    /// How many hazards these are.
    pub hazards: u64,
}

/// The ignores around an event: an index into [`IgnoreState::sets`]; 0 is the empty set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RangeSet(u32);

/// An ignore, its rules, and what it did so far.
#[derive(Debug)]
struct Entry {
    source: IgnoreSource,
    rules: Vec<Rule>,
    reason: String,
    /// The first event that it is for.
    met: Option<(OpNumber, Origin)>,
    hidden: HashMap<Key, u64>,
}

impl Entry {
    fn new(source: IgnoreSource, rules: &[Rule], reason: &str) -> Self {
        Self { source, rules: rules.to_vec(), reason: reason.to_owned(), met: None, hidden: HashMap::new() }
    }

    fn meet(&mut self, event: &Event) {
        let origin = Origin { thread: event.thread, site: event.site, ..Origin::default() };
        self.met.get_or_insert((event.number, origin));
    }
}

/// All ignores, and what they did so far.
#[derive(Debug)]
pub(crate) struct IgnoreState {
    entries: Vec<Entry>,
    by_line: HashMap<String, BTreeMap<u32, Vec<usize>>>,
    by_file: HashMap<String, Vec<usize>>,
    /// Entries of each site: those for its innermost line of user code. Filled as sites are met.
    sites: Vec<Option<Box<[usize]>>>,
    /// Ranges by what they say and the line where they begin.
    ranges: HashMap<(StringId, Line), usize>,
    /// Ranges that each thread is in.
    open: HashMap<ThreadId, Vec<usize>>,
    current: HashMap<ThreadId, RangeSet>,
    sets: Vec<Box<[usize]>>,
    set_ids: HashMap<Box<[usize]>, RangeSet>,
}

impl IgnoreState {
    pub(crate) fn new(ignores: &Ignores) -> Self {
        let mut state = Self {
            entries: Vec::new(),
            by_line: HashMap::new(),
            by_file: HashMap::new(),
            sites: Vec::new(),
            ranges: HashMap::new(),
            open: HashMap::new(),
            current: HashMap::new(),
            sets: vec![Box::default()],
            set_ids: HashMap::new(),
        };
        state.add(ignores);
        state
    }

    /// Takes more of them. Those for lines that were met already have an effect from now on.
    pub(crate) fn add(&mut self, ignores: &Ignores) {
        for comment in &ignores.comments {
            let source = IgnoreSource::Comment { file: comment.file.clone(), line: comment.line };
            let index = self.entries.len();
            self.entries.push(Entry::new(source, &comment.rules, &comment.reason));
            let lines = self.by_line.entry(comment.file.clone()).or_default();
            lines.entry(comment.line).or_default().push(index);
        }
        // A live check is told of a pattern again when more files are known: each is one ignore.
        let mut taken = vec![false; self.entries.len()];
        for files in &ignores.files {
            let source = IgnoreSource::Files { pattern: files.pattern.clone() };
            let same = |(index, entry): &(usize, &Entry)| {
                !taken.get(*index).is_none_or(|taken| *taken)
                    && entry.source == source
                    && entry.rules == files.rules
            };
            let known = self.entries.iter().enumerate().find(same).map(|(index, _)| index);
            let index = known.unwrap_or(self.entries.len());
            match taken.get_mut(index) {
                Some(taken) => *taken = true,
                None => self.entries.push(Entry::new(source, &files.rules, "")),
            }
            for file in &files.files {
                let indices = self.by_file.entry(file.clone()).or_default();
                if !indices.contains(&index) {
                    indices.push(index);
                }
            }
        }
        self.sites.clear();
    }

    /// Takes the next event of the log.
    #[inline]
    pub(crate) fn event(&mut self, event: &Event, tables: &Tables) {
        let range = matches!(event.kind, EventKind::RangeBegin { .. } | EventKind::RangeEnd { .. });
        if range || !self.by_line.is_empty() || !self.by_file.is_empty() {
            self.take(event, tables);
        }
    }

    #[cold]
    fn take(&mut self, event: &Event, tables: &Tables) {
        match event.kind {
            EventKind::RangeBegin { kind: RangeKind::Ignore, label } => {
                let index = self.range(label, event.site, tables);
                self.entries[index].meet(event);
                self.open.entry(event.thread).or_default().push(index);
                self.update(event.thread);
            }
            EventKind::RangeEnd { kind: RangeKind::Ignore } => {
                if let Some(open) = self.open.get_mut(&event.thread) {
                    open.pop();
                    self.update(event.thread);
                }
            }
            _ if self.by_line.is_empty() && self.by_file.is_empty() => {}
            _ => self.meet(event, tables),
        }
    }

    /// The ranges that the thread is in.
    pub(crate) fn ranges_of(&self, thread: ThreadId) -> RangeSet {
        if self.ranges.is_empty() {
            return RangeSet::default();
        }
        self.current.get(&thread).copied().unwrap_or_default()
    }

    /// Whether the hazard is to be left out. Then it is counted.
    pub(crate) fn hides(&mut self, hazard: &Hazard, tables: &Tables) -> bool {
        if self.entries.is_empty() {
            return false;
        }
        let key = key(hazard, tables);
        let origins =
            [Some(hazard.first_origin), Some(hazard.second_origin), hazard.freed.map(|freed| freed.1)];
        // Both operations may be at one place: that is one hazard.
        let mut indices: Vec<usize> = Vec::new();
        for origin in origins.into_iter().flatten() {
            indices.append(&mut self.of_origin(origin, tables));
        }
        indices.sort_unstable();
        indices.dedup();
        let mut hidden = false;
        for index in indices {
            let entry = &mut self.entries[index];
            if entry.rules.contains(&hazard.rule) {
                *entry.hidden.entry(key).or_default() += 1;
                hidden = true;
            }
        }
        hidden
    }

    /// Whether it is not to be looked at that this call had the property of a rule. Then it is counted.
    pub(crate) fn hides_call(&mut self, rule: Rule, event: &Event, tables: &Tables) -> bool {
        if self.entries.is_empty() {
            return false;
        }
        self.hides_at(rule, Origin::of(event, self.ranges_of(event.thread)), 1, tables)
    }

    /// Whether what stands at one place is not wanted there, such as advice. Then all of its occurrences are counted.
    pub(crate) fn hides_at(&mut self, rule: Rule, origin: Origin, count: u64, tables: &Tables) -> bool {
        if self.entries.is_empty() {
            return false;
        }
        let line = Line::of(origin.site, tables);
        let mut hidden = false;
        for index in self.of_origin(origin, tables) {
            let entry = &mut self.entries[index];
            if entry.rules.contains(&rule) {
                *entry.hidden.entry((rule, line, line)).or_default() += count;
                hidden = true;
            }
        }
        hidden
    }

    /// Those that were met, in a fixed order.
    pub(crate) fn ignored(&self) -> Vec<Ignored> {
        let met = self.entries.iter().filter(|entry| entry.met.is_some());
        let mut ignored: Vec<Ignored> = met
            .map(|entry| Ignored {
                source: entry.source.clone(),
                rules: entry.rules.clone(),
                reason: entry.reason.clone(),
                findings: entry.hidden.len() as u64,
                hazards: entry.hidden.values().sum(),
            })
            .collect();
        ignored.sort_by(|a, b| a.source.cmp(&b.source).then_with(|| a.reason.cmp(&b.reason)));
        ignored
    }

    /// SS903: those that were met and left out nothing. Where no advice was looked for (`advised`), nothing can be said of
    /// those that are for advice.
    pub(crate) fn unused(&self, advised: bool, tables: &Tables) -> Vec<Finding> {
        let judged = |entry: &Entry| advised || entry.rules.iter().all(|rule| !rule.is_advice());
        let idle =
            |entry: &&Entry| entry.hidden.is_empty() && !entry.rules.contains(&Rule::Ss903) && judged(entry);
        self.entries
            .iter()
            .filter(idle)
            .filter_map(|entry| {
                let (number, origin) = entry.met?;
                Some(unused(entry, number, origin, tables))
            })
            .collect()
    }

    fn range(&mut self, label: StringId, site: SiteId, tables: &Tables) -> usize {
        let key = (label, Line::of(site, tables));
        if let Some(&index) = self.ranges.get(&key) {
            return index;
        }
        let (rules, reason) = parse_label(tables.string(label));
        let index = self.entries.len();
        self.entries.push(Entry::new(IgnoreSource::Range { site }, &rules, reason));
        self.ranges.insert(key, index);
        index
    }

    fn update(&mut self, thread: ThreadId) {
        let mut set: Vec<usize> = self.open.get(&thread).cloned().unwrap_or_default();
        set.sort_unstable();
        set.dedup();
        let set: Box<[usize]> = set.into();
        let id = if set.is_empty() {
            RangeSet::default()
        } else if let Some(&id) = self.set_ids.get(&set) {
            id
        } else {
            let id = RangeSet(self.sets.len() as u32);
            self.sets.push(set.clone());
            self.set_ids.insert(set, id);
            id
        };
        self.current.insert(thread, id);
    }

    /// Notes which places ran.
    fn meet(&mut self, event: &Event, tables: &Tables) {
        if event.site == SiteId(0) {
            return;
        }
        let index = event.site.0 as usize;
        if self.sites.get(index).is_some_and(|known| known.as_ref().is_some_and(|known| known.is_empty())) {
            return;
        }
        for entry in self.of_site(event.site, tables) {
            self.entries[entry].meet(event);
        }
    }

    fn of_origin(&mut self, origin: Origin, tables: &Tables) -> Vec<usize> {
        let mut indices = self.of_site(origin.site, tables);
        indices.extend_from_slice(&self.sets[origin.ranges.0 as usize]);
        indices
    }

    fn of_site(&mut self, site: SiteId, tables: &Tables) -> Vec<usize> {
        let index = site.0 as usize;
        if let Some(Some(known)) = self.sites.get(index) {
            return known.to_vec();
        }
        let mut found = Vec::new();
        if let Some((_, frame)) = tables.user_frame(site) {
            let file = tables.string(frame.file);
            if let Some(lines) = self.by_line.get(file) {
                let last = frame.end_line.max(frame.line);
                found.extend(lines.range(frame.line..=last).flat_map(|(_, entries)| entries.iter().copied()));
            }
            if let Some(entries) = self.by_file.get(file) {
                found.extend_from_slice(entries);
            }
        }
        if self.sites.len() <= index {
            self.sites.resize_with(index + 1, || None);
        }
        self.sites[index] = Some(found.clone().into());
        found
    }
}

fn unused(entry: &Entry, number: OpNumber, origin: Origin, tables: &Tables) -> Finding {
    let second = place(number, Actor::Host, origin, None);
    let configured = matches!(entry.source, IgnoreSource::Files { .. });
    let notes = configured.then_some(Note::ConfiguredIgnore).into_iter().collect();
    Finding {
        rule: Rule::Ss903,
        first: None,
        second,
        free: None,
        memory: None,
        old_memory: None,
        ordered_up_to: None,
        count: 1,
        occurrences: Occurrences::default(),
        fix: None,
        removed_by: None,
        removes: 0,
        notes,
        advice: None,
        fingerprint: fingerprint(Rule::Ss903, None, &second, tables),
        set_level: None,
    }
}

/// The rules and the reason of a range's label. A word that is no rule is none: the program was told.
fn parse_label(label: &str) -> (Vec<Rule>, &str) {
    let (rules, reason) = label.split_once(' ').unwrap_or((label, ""));
    let rules: BTreeSet<Rule> = rules.split(',').filter_map(Rule::parse).collect();
    (rules.into_iter().collect(), reason)
}
