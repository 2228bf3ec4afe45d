//! The timeline: its data for the script, and a drawing for where there is none.

use super::page::Part;
use crate::graph::lanes::HOST;
use crate::graph::timeline::{Item, Stretch};
use crate::labels::{free_mark, second_mark};
use crate::numbers::{counted, grouped};
use crate::places::locate;
use crate::svg::escape::{escape, visible};
use crate::svg::lane_name;
use crate::svg::timeline::draw;
use serde::Serialize;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use streamsan_check::Finding;
use streamsan_trace::{EventKind, OpNumber};

/// How many lanes have a row; the others share one.
const LANES: usize = 40;
/// How many findings are pinned.
const PINS: usize = 200;
/// How many different texts are kept.
const TEXTS: usize = 4000;

/// Keys are short: they are written once for each stretch.
#[derive(Serialize)]
struct Data {
    total: u64,
    complete: bool,
    rows: Vec<Row>,
    labels: Vec<String>,
    places: Vec<String>,
    stretches: Vec<Columns>,
    /// How many events a bin holds, the number of the first event of each, operations by row and bin.
    width: u64,
    starts: Vec<u64>,
    bins: Vec<Vec<u32>>,
    pins: Vec<Pin>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    operations: u64,
}

/// Events as columns: numbers as differences, row and kind in one, labels and places as indexes.
#[derive(Default, Serialize)]
struct Columns {
    start: u64,
    number: Vec<u64>,
    what: Vec<usize>,
    label: Vec<usize>,
    place: Vec<usize>,
    /// How many events ago the awaited event was recorded; 0: not here.
    link: Vec<u64>,
}

/// A finding: its marks with their places in the timeline, and the two ends of what is missing.
#[derive(Serialize)]
struct Pin {
    id: String,
    marks: Vec<(&'static str, u64, usize)>,
    missing: bool,
}

pub(super) fn section(parts: &[Part<'_>], html: &mut String) {
    html.push_str("<section id=\"timeline\"><h2>Timeline</h2><p class=\"soft\">Left to right is the order in which the host issued the calls, not time.</p>");
    for part in parts {
        html.push_str(&part.heading());
        if part.survey.timeline.total == 0 {
            html.push_str("<p>No operation.</p>");
            continue;
        }
        one(part, html);
    }
    html.push_str("</section>\n");
}

fn one(part: &Part<'_>, html: &mut String) {
    let timeline = &part.survey.timeline;
    let (rows, others) = rows(part);
    let pins = pins(part, &rows);
    let said = if timeline.is_complete() {
        format!("{} events, all of them", grouped(timeline.total))
    } else {
        let shown: usize = timeline.stretches.iter().map(|stretch| stretch.items.len()).sum();
        format!(
            "{} events: {} around the findings one by one, elsewhere counted in steps of {}",
            grouped(timeline.total),
            grouped(shown as u64),
            grouped(timeline.width)
        )
    };
    let more = if others > 0 {
        format!("; {} in one row", counted(others as u64, "more stream", "more streams"))
    } else {
        String::new()
    };
    let _ = write!(
        html,
        "<div class=\"timeline script\"><div class=\"tools\"><button type=\"button\" data-do=\"all\">All</button><button type=\"button\" data-do=\"out\" aria-label=\"zoom out\">−</button><button type=\"button\" data-do=\"in\" aria-label=\"zoom in\">+</button><button type=\"button\" data-do=\"left\" aria-label=\"move left\">←</button><button type=\"button\" data-do=\"right\" aria-label=\"move right\">→</button><span class=\"soft\">{said}{more}</span><span class=\"key\"><i class=\"kernel\"></i>kernel <i class=\"copy\"></i>copy, memset <i class=\"host\"></i>host <i class=\"ring\"></i>record, wait</span></div><canvas tabindex=\"0\" role=\"img\" aria-label=\"timeline of {} events\"></canvas><p class=\"detail\" aria-live=\"polite\">Hold the pointer over an operation. Drag to move, Ctrl and wheel to zoom.</p><script type=\"application/json\">",
        grouped(timeline.total)
    );
    // Within a string of JSON this is the same character; in a page it cannot end the element.
    let json =
        serde_json::to_string(&data(part, &rows, pins)).expect("strings and numbers can always be written");
    html.push_str(&json.chars().map(visible).collect::<String>().replace('<', "\\u003c"));
    html.push_str("</script></div>");
    let drawn: Vec<usize> = rows.iter().copied().take(LANES).collect();
    let marks: Vec<(String, u64)> = part
        .checked
        .report
        .findings
        .iter()
        .enumerate()
        .take(40)
        .filter_map(|(index, finding)| Some((part.id(index), *timeline.pins.get(&finding.second.number)?)))
        .collect();
    let _ = write!(
        html,
        "<noscript><div class=\"scroll\">{}</div><p class=\"soft\">{}{}</p></noscript>",
        draw(&part.survey, &drawn, &marks, &part.names),
        escape(&said),
        escape(&more)
    );
}

/// Lanes with a row, in their order: those of the findings, then the busiest. And how many have none.
fn rows(part: &Part<'_>) -> (Vec<usize>, usize) {
    let lanes = &part.survey.lanes.list;
    let of_findings: BTreeSet<usize> =
        part.survey.slices.iter().flat_map(|slice| slice.nodes.iter().map(|node| node.point.lane)).collect();
    let waits = |lane: usize| part.survey.waits.edges.keys().any(|&(from, to)| from == lane || to == lane);
    let used = |lane: &usize| lanes[*lane].operations > 0 || of_findings.contains(lane) || waits(*lane);
    let mut rows: Vec<usize> = (0..lanes.len()).filter(used).collect();
    rows.sort_by_key(|lane| {
        (std::cmp::Reverse((of_findings.contains(lane), *lane == HOST, lanes[*lane].operations)), *lane)
    });
    let others = rows.len().saturating_sub(LANES);
    rows.truncate(LANES);
    rows.sort_unstable();
    (rows, others)
}

fn pins(part: &Part<'_>, rows: &[usize]) -> Vec<Pin> {
    let row = |lane: usize| rows.binary_search(&lane).unwrap_or(rows.len());
    let lane_of = |finding: &Finding, number: OpNumber| {
        let place = [finding.first, Some(finding.second)]
            .into_iter()
            .flatten()
            .find(|place| place.number == number)?;
        match place.actor {
            streamsan_check::Actor::Host => Some(HOST),
            streamsan_check::Actor::Stream(stream) => part.survey.lanes.of(stream),
        }
    };
    let mut pins = Vec::new();
    for (index, finding) in part.checked.report.findings.iter().enumerate().take(PINS) {
        let mut marks = Vec::new();
        let mut add = |number: OpNumber, mark: &'static str| {
            if let (Some(&rank), Some(lane)) =
                (part.survey.timeline.pins.get(&number), lane_of(finding, number))
            {
                marks.push((mark, rank, row(lane)));
            }
        };
        if let Some(first) = &finding.first {
            add(first.number, "(1)");
        }
        let _ = free_mark(finding);
        add(finding.second.number, second_mark(finding).unwrap_or(""));
        if !marks.is_empty() {
            let missing = marks.len() == 2;
            pins.push(Pin { id: part.id(index), marks, missing });
        }
    }
    pins
}

/// Gives texts indexes; those beyond the limit are the empty one.
struct Texts {
    index: HashMap<String, usize>,
    list: Vec<String>,
}

impl Texts {
    fn new() -> Self {
        Self { index: HashMap::from([(String::new(), 0)]), list: vec![String::new()] }
    }

    fn add(&mut self, text: String) -> usize {
        if let Some(&known) = self.index.get(&text) {
            return known;
        }
        if self.list.len() >= TEXTS {
            return 0;
        }
        self.list.push(text.clone());
        self.index.insert(text, self.list.len() - 1);
        self.list.len() - 1
    }
}

fn data(part: &Part<'_>, rows: &[usize], pins: Vec<Pin>) -> Data {
    let timeline = &part.survey.timeline;
    let mut labels = Texts::new();
    let mut places = Texts::new();
    let stretches = timeline
        .stretches
        .iter()
        .map(|stretch| columns(part, stretch, rows, &mut labels, &mut places))
        .collect();
    let mut bins: Vec<Vec<u32>> = Vec::new();
    let mut starts = Vec::new();
    if !timeline.is_complete() {
        let of = |lane: usize| timeline.bins.get(lane).map_or(&[][..], Vec::as_slice);
        bins.extend(rows.iter().map(|&lane| of(lane).to_vec()));
        let mut rest: Vec<u32> = Vec::new();
        for lane in (0..timeline.bins.len()).filter(|lane| rows.binary_search(lane).is_err()) {
            rest.resize(rest.len().max(of(lane).len()), 0);
            for (sum, count) in rest.iter_mut().zip(of(lane)) {
                *sum += count;
            }
        }
        bins.push(rest);
        starts.clone_from(&timeline.starts);
    }
    let mut named: Vec<Row> = rows
        .iter()
        .map(|&lane| Row {
            name: lane_name(&part.survey.lanes, lane, &part.names),
            operations: part.survey.lanes.list[lane].operations,
        })
        .collect();
    let total: u64 = part.survey.lanes.list.iter().map(|lane| lane.operations).sum();
    let rest = total - named.iter().map(|row| row.operations).sum::<u64>();
    if rest > 0 {
        named.push(Row { name: "other streams".to_owned(), operations: rest });
    }
    Data {
        total: timeline.total,
        complete: timeline.is_complete(),
        rows: named,
        labels: labels.list,
        places: places.list,
        stretches,
        width: timeline.width,
        starts,
        bins,
        pins,
    }
}

fn columns(
    part: &Part<'_>,
    stretch: &Stretch,
    rows: &[usize],
    labels: &mut Texts,
    places: &mut Texts,
) -> Columns {
    let log = part.checked.log;
    let mut columns = Columns { start: stretch.start, ..Columns::default() };
    let mut records = HashMap::new();
    let mut previous = 0;
    let mut sites = HashMap::new();
    for (index, item) in stretch.items.iter().enumerate() {
        let number = item.point.number;
        columns.number.push(number.0 - previous);
        previous = number.0;
        let row = rows.binary_search(&item.point.lane).unwrap_or(rows.len());
        columns.what.push(row * 8 + item.kind as usize);
        columns.label.push(labels.add(label(part, item)));
        let place = *sites.entry(item.point.site).or_insert_with(|| {
            places.add(locate(log, item.point.site).map_or_else(String::new, |place| place.line()))
        });
        columns.place.push(place);
        if matches!(item.point.what, EventKind::EventRecord { .. }) {
            records.insert(number, index as u64);
        }
        let ago = item.record.and_then(|record| records.get(&record)).map_or(0, |at| index as u64 - at);
        columns.link.push(ago);
    }
    columns
}

fn label(part: &Part<'_>, item: &Item) -> String {
    match item.point.what {
        EventKind::Op { label, .. }
        | EventKind::HostAccess { label, .. }
        | EventKind::GraphLaunch { label, .. } => {
            let mut text = part.checked.log.tables().string(label).to_owned();
            if text.chars().count() > 120 {
                text = text.chars().take(119).chain(['…']).collect();
            }
            text
        }
        EventKind::EventRecord { .. } => "event record".to_owned(),
        EventKind::EventWait { .. } => "wait".to_owned(),
        EventKind::HostWait { .. } => "host waits".to_owned(),
        _ => String::new(),
    }
}
