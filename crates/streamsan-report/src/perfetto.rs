//! Trace events for the Perfetto UI (ui.perfetto.dev) and Chrome: a track for each stream and each host thread, a slice for
//! each call, arrows for the order that is and for the order that is missing.
//!
//! The time axis is the order in which the host made its calls, one microsecond for each. No durations are known:
//! a slice is as long as every other. This is the JSON form of the format, which says so in `otherData`.

use crate::document;
use crate::names::Names;
use crate::places::locate;
use crate::{Checked, Options, printable};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use streamsan_check::Actor;
use streamsan_trace::{
    Event, EventId, EventKind, Log, OpKind, OpNumber, SiteId, StreamId, ThreadId, WaitTarget,
};

/// One trace event. `ts` and `dur` are in microseconds by definition of the format.
#[derive(Serialize)]
struct Entry<'a> {
    ph: &'a str,
    pid: usize,
    tid: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<u64>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'a str>,
    /// Joins the ends of an arrow.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    /// The arrow ends at the slice that it meets, not at the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<&'a str>,
    args: Args<'a>,
}

/// What a viewer shows of a slice, or what a track is called.
#[derive(Default, Serialize)]
struct Args<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sort_index: Option<u64>,
    /// The number of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<&'a str>,
}

pub(crate) fn render(checked: &[Checked<'_>], options: &Options<'_>) -> String {
    let mut writer =
        Writer { text: b"{\"traceEvents\":[\n".to_vec(), first: true, arrows: 0, places: HashMap::new() };
    for (index, one) in checked.iter().enumerate() {
        writer.trace(index + 1, one);
    }
    let about = "issue order: one microsecond for each call of the host; durations are not known";
    let other = serde_json::json!({ "tool": options.tool, "time": about });
    let mut text = String::from_utf8(writer.text).expect("JSON is UTF-8");
    let _ = write!(text, "\n],\"displayTimeUnit\":\"ns\",\"otherData\":{other}}}\n");
    text
}

struct Writer {
    text: Vec<u8>,
    first: bool,
    /// How many arrows there are.
    arrows: u64,
    /// The line of each site.
    places: HashMap<SiteId, Option<String>>,
}

/// Host threads have even tracks, streams odd ones.
fn track_of(actor: Actor, thread: ThreadId) -> u64 {
    match actor {
        Actor::Host => 2 * u64::from(thread.0) + 2,
        Actor::Stream(stream) => 2 * u64::from(stream.0) + 1,
    }
}

impl Writer {
    fn write(&mut self, entry: &Entry<'_>) {
        if !std::mem::take(&mut self.first) {
            self.text.extend_from_slice(b",\n");
        }
        serde_json::to_writer(&mut self.text, entry).expect("a vector takes all that is written");
    }

    fn meta(&mut self, pid: usize, tid: u64, name: &str, args: Args<'_>) {
        let (ts, dur, cat, id, bp) = (None, None, None, None, None);
        self.write(&Entry { ph: "M", pid, tid, ts, dur, name, cat, id, bp, args });
    }

    fn trace(&mut self, pid: usize, checked: &Checked<'_>) {
        self.places.clear();
        let log = checked.log;
        let names = Names::new(log, checked.report);
        self.meta(pid, 0, "process_name", Args { name: Some(&printable(checked.file)), ..Args::default() });
        let mut tracks: BTreeMap<u64, String> = BTreeMap::new();
        // The last record of each event, for the arrows of the order that is.
        let mut records: BTreeMap<EventId, (u64, OpNumber)> = BTreeMap::new();
        log.read(&mut |event, _| {
            let Some((actor, name, category)) = slice(event, log) else { return };
            let track = track_of(actor, event.thread);
            tracks.entry(track).or_insert_with(|| match actor {
                Actor::Stream(stream) => format!("stream {}", names.stream_plain(stream)),
                Actor::Host => format!("host thread {}", event.thread.0),
            });
            self.slice(pid, track, event, &name, category, log);
            match event.kind {
                EventKind::EventRecord { event: recorded, .. } => {
                    records.insert(recorded, (track, event.number));
                }
                EventKind::EventWait { event: awaited, .. }
                | EventKind::HostWait { target: WaitTarget::Event(awaited), .. } => {
                    if let Some(&from) = records.get(&awaited).filter(|(from, _)| *from != track) {
                        self.arrow(pid, from, (track, event.number), "order", "order");
                    }
                }
                _ => {}
            }
        });
        self.hazards(pid, checked);
        for (track, name) in tracks {
            self.meta(pid, track, "thread_name", Args { name: Some(&printable(&name)), ..Args::default() });
            // Streams first, then the host.
            let sort = if track % 2 == 1 { track } else { 1_000_000 + track };
            self.meta(pid, track, "thread_sort_index", Args { sort_index: Some(sort), ..Args::default() });
        }
    }

    fn slice(&mut self, pid: usize, tid: u64, event: &Event, name: &str, category: &str, log: &dyn Log) {
        let at = self.places.entry(event.site).or_insert_with(|| {
            let place = locate(log, event.site).filter(|_| event.site != SiteId(0));
            place.map(|place| printable(&place.line()))
        });
        let at = at.clone();
        let args = Args { call: Some(event.number.0), at: at.as_deref(), ..Args::default() };
        let (ts, dur, cat) = (Some(event.number.0), Some(1), Some(category));
        self.write(&Entry { ph: "X", pid, tid, ts, dur, name, cat, id: None, bp: None, args });
    }

    /// An arrow between two slices.
    fn arrow(&mut self, pid: usize, from: (u64, OpNumber), to: (u64, OpNumber), name: &str, category: &str) {
        self.arrows += 1;
        for (ph, (tid, number), bp) in [("s", from, None), ("f", to, Some("e"))] {
            let (ts, cat, id) = (Some(number.0), Some(category), Some(self.arrows));
            self.write(&Entry { ph, pid, tid, ts, dur: None, name, cat, id, bp, args: Args::default() });
        }
    }

    /// The missing order of each finding, at its first occurrence.
    fn hazards(&mut self, pid: usize, checked: &Checked<'_>) {
        for finding in &checked.report.findings {
            let (Some(first), second) = (finding.first, finding.second) else { continue };
            let end = |place: streamsan_check::Place| (track_of(place.actor, place.thread), place.number);
            let name = format!("{} missing order", finding.rule.code());
            self.arrow(pid, end(first), end(second), &name, document::level_of(finding));
        }
    }
}

/// Whose track an event is on, what it is called there, and its category; `None` if it is not drawn.
fn slice<'a>(event: &Event, log: &'a dyn Log) -> Option<(Actor, String, &'a str)> {
    let on =
        |stream: StreamId, name: &str, category| Some((Actor::Stream(stream), printable(name), category));
    let text = |label| log.tables().string(label);
    match event.kind {
        EventKind::Op { stream, label, kind, .. } => {
            let category = match kind {
                OpKind::Kernel => "kernel",
                OpKind::CopyHostToDevice
                | OpKind::CopyDeviceToHost
                | OpKind::CopyDeviceToDevice
                | OpKind::CopyHostToHost => "copy",
                OpKind::Memset => "memset",
                OpKind::HostFunction => "host function",
                OpKind::Collective => "collective",
                OpKind::GraphLaunch => "graph",
            };
            let name = text(label);
            on(stream, if name.is_empty() { category } else { name }, category)
        }
        EventKind::GraphLaunch { stream, label, .. } => on(stream, text(label), "graph"),
        EventKind::EventRecord { stream, .. } => on(stream, "record event", "event"),
        EventKind::EventWait { stream, .. } => on(stream, "wait for event", "event"),
        EventKind::HostWait { .. } => Some((Actor::Host, "wait".to_owned(), "host wait")),
        EventKind::HostAccess { label, .. } => Some((Actor::Host, printable(text(label)), "host access")),
        EventKind::FreeRequest { .. } => Some((Actor::Host, "free".to_owned(), "memory")),
        EventKind::Alloc { .. } => Some((Actor::Host, "allocate".to_owned(), "memory")),
        _ => None,
    }
}
