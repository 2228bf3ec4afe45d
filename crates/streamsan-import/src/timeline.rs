//! The timeline of a profile: a lane for each stream, and one for the waits of the host.
//!
//! What would be narrower than a step of the picture is drawn together with its neighbours.

use crate::analysis::{Analysis, waits};
use crate::profile::{Kind, Profile};
use crate::spans::Span;
use crate::words::{grouped, time};
use std::collections::BTreeMap;

/// The width of the picture, in its own units.
pub(crate) const WIDTH: f64 = 10_000.0;
/// How many steps it has.
const STEPS: u64 = 4000;
/// How many lanes are drawn.
const LANES: usize = 40;
/// Characters of a name.
const NAME: usize = 60;

/// One lane.
pub(crate) struct Lane {
    pub(crate) name: String,
    pub(crate) bars: Vec<Bar>,
}

/// A thing of a lane, or several that lie close together.
pub(crate) struct Bar {
    /// `kernel`, `up`, `down`, `copy`, `collective`, `wait`.
    pub(crate) sort: &'static str,
    /// From, width, in units of the picture.
    pub(crate) from: f64,
    pub(crate) width: f64,
    /// What it is, when, and how long.
    pub(crate) said: String,
}

/// The lanes, and how many more there are.
pub(crate) fn lanes(profile: &Profile, analysis: &Analysis) -> (Vec<Lane>, usize) {
    let picture = Picture { window: analysis.window };
    let many = analysis.devices.len() > 1;
    let mut by_stream: BTreeMap<(i64, i64), Vec<Thing<'_>>> = BTreeMap::new();
    for one in &profile.operations {
        let thing = Thing { span: one.span, sort: sort(one.kind), name: profile.name(one.name) };
        by_stream.entry((one.device, one.stream)).or_default().push(thing);
    }
    let waits = profile.calls.iter().filter(|call| waits(profile.name(call.name)));
    let waits = waits.map(|call| Thing { span: call.span, sort: "wait", name: profile.name(call.name) });
    let mut lanes = vec![Lane { name: "host, waits".to_owned(), bars: picture.bars(waits) }];
    for ((device, stream), things) in by_stream {
        let of = if many { format!("device {device}, ") } else { String::new() };
        let lane = Lane { name: format!("{of}stream {stream}"), bars: picture.bars(things) };
        if !lane.bars.is_empty() {
            lanes.push(lane);
        }
    }
    let more = lanes.len().saturating_sub(LANES);
    lanes.truncate(LANES);
    (lanes, more)
}

/// What stands in a lane.
struct Thing<'a> {
    span: Span,
    sort: &'static str,
    name: &'a str,
}

struct Picture {
    window: Span,
}

impl Picture {
    /// The things of one lane, ordered by their start, as bars.
    fn bars<'a>(&self, things: impl IntoIterator<Item = Thing<'a>>) -> Vec<Bar> {
        let took = self.window.0.abs_diff(self.window.1).max(1);
        let step = took.div_ceil(STEPS);
        let mut bars: Vec<Bar> = Vec::new();
        let mut open: Option<(Span, &'static str, u64, &'a str)> = None;
        let inside = |thing: &Thing<'_>| thing.span.1 > self.window.0 && thing.span.0 < self.window.1;
        for thing in things.into_iter().filter(inside) {
            open = match open {
                Some((span, sort, count, name))
                    if sort == thing.sort
                        && span.0.abs_diff(thing.span.1.max(span.1)) < 2 * step
                        && thing.span.0 < span.1.saturating_add_unsigned(step) =>
                {
                    Some(((span.0, span.1.max(thing.span.1)), sort, count + 1, name))
                }
                other => {
                    bars.extend(other.map(|one| self.bar(one, took)));
                    Some((thing.span, thing.sort, 1, thing.name))
                }
            };
        }
        bars.extend(open.map(|one| self.bar(one, took)));
        bars
    }

    fn bar(&self, (span, sort, count, name): (Span, &'static str, u64, &str), took: u64) -> Bar {
        let (from, to) = (span.0.max(self.window.0), span.1.min(self.window.1));
        let unit = WIDTH / took as f64;
        let start = self.window.0.abs_diff(from);
        let mut what: String = name.chars().take(NAME).collect();
        if what.len() < name.len() {
            what.push('…');
        }
        let more = if count > 1 { format!(" and {} more", grouped(count - 1)) } else { String::new() };
        Bar {
            sort,
            from: start as f64 * unit,
            width: from.abs_diff(to) as f64 * unit,
            said: format!("{what}{more}: {} at {}", time(span.0.abs_diff(span.1)), time(start)),
        }
    }
}

fn sort(kind: Kind) -> &'static str {
    match kind {
        Kind::Kernel | Kind::Memset => "kernel",
        Kind::Collective => "collective",
        Kind::Up(_) => "up",
        Kind::Down(_) => "down",
        Kind::Within | Kind::Between | Kind::Host => "copy",
    }
}
