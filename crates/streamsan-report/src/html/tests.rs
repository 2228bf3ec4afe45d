//! The structure of a page, what is escaped, and how large it gets.

use crate::graph::sample::{DEFAULT, Long, SIDE, Sample};
use crate::{Checked, Format, NoSources, Options, Sources, render};
use streamsan_check::{Config, Report, check};
use streamsan_trace::{AccessMode, Log};

const OPTIONS: Options<'static> = Options { color: false, tool: "streamsan 0.1.0", limit: None, width: None };

struct Fixed(&'static str);

impl Sources for Fixed {
    fn text(&self, _path: &str) -> Option<String> {
        Some(self.0.to_owned())
    }
}

fn page(log: &dyn Log, report: &Report, sources: &dyn Sources) -> String {
    render(Format::Html, &[Checked { file: "run.sstrace", log, report }], sources, &OPTIONS)
}

/// One unordered read, at lines 2 and 4.
fn unordered(name: &'static str, label: &str) -> Sample {
    let mut sample = Sample::new();
    let x = sample.alloc(1, name);
    sample.op(2, DEFAULT, "fill", AccessMode::Write, x);
    sample.op(4, SIDE, label, AccessMode::Read, x);
    sample
}

#[test]
fn a_page_has_its_sections_and_one_anchor_for_each_finding() {
    let mut sample = unordered("x", "mul");
    let y = sample.alloc(5, "y");
    sample.op(6, SIDE, "fill", AccessMode::Write, y);
    sample.op(7, DEFAULT, "mul", AccessMode::Read, y);
    let report = sample.check();
    assert_eq!(report.findings.len(), 2);
    let html = page(&sample.trace, &report, &Fixed("a\nb\nc\n    d(x)\ne\nf\ng\nh\n"));
    for id in ["verdict", "findings", "timeline", "memory", "waits", "not-seen", "guide", "F1", "F2"] {
        assert_eq!(html.matches(&format!(" id=\"{id}\"")).count(), 1, "{id}");
    }
    assert!(html.contains("<h1>2 errors</h1>"));
    assert!(html.contains("data-n=\"4\">    <mark>d(x)</mark>"), "the line with its own underlined");
    assert_eq!(html.matches("class=\"missing\"").count(), 2, "one missing edge for each finding");
    assert!(html.contains("<details class=\"finding\" id=\"F1\"") && html.contains("data-count=\"1\" open>"));
    assert!(html.ends_with("</html>\n"));
}

#[test]
fn nothing_in_a_trace_or_a_source_becomes_markup() {
    let evil = "</script><script>alert(1)</script>\"'\u{202e}\u{1b}";
    let mut sample = unordered("</title><img src=x onerror=alert(1)>", evil);
    sample.trace.header.command = evil.to_owned();
    sample.trace.header.versions = "<b>torch</b>".to_owned();
    for text in &mut sample.trace.tables.strings {
        if text.contains("train.py") {
            text.push_str("<svg onload=alert(1)>'\"");
        }
    }
    let report = sample.check();
    let long = Box::leak(
        format!("a\n{}<script>alert(2)</script>{}\nb\nx\u{202e}y\n", "z".repeat(9000), "z".repeat(9000))
            .into_boxed_str(),
    );
    let html = page(&sample.trace, &report, &Fixed(long));
    for text in ["<script>alert", "<img", "<b>torch", "<svg onload", "\u{202e}", "\u{1b}"] {
        assert!(!html.contains(text), "{text:?}");
    }
    assert!(html.contains("&lt;script&gt;alert(1)"));
    assert!(html.lines().all(|line| line.len() < 60_000) && html.len() < 120_000, "long lines are cut");
    let scripts = html.matches("<script").count();
    assert_eq!((scripts, html.matches("</script>").count()), (4, 4), "ours: theme, data, timeline, page");
}

#[test]
fn the_same_trace_gives_the_same_bytes_and_fetches_nothing() {
    let sample = unordered("x", "mul");
    let report = sample.check();
    let html = page(&sample.trace, &report, &NoSources);
    assert_eq!(html, page(&sample.trace, &report, &NoSources));
    for text in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!html.contains(text), "{text}");
    }
    assert!(html.contains("default-src 'none'"));
    assert!(html.contains("source not at hand"));
}

#[test]
fn a_clean_run_and_an_empty_one_say_so() {
    let mut sample = Sample::new();
    let x = sample.alloc(1, "x");
    let empty = Sample::new();
    assert!(page(&empty.trace, &empty.check(), &NoSources).contains("<h1>Nothing was recorded</h1>"));
    sample.op(2, DEFAULT, "fill", AccessMode::Write, x);
    let html = page(&sample.trace, &sample.check(), &NoSources);
    assert!(html.contains("<h1>No hazards in what was seen</h1>"));
    assert!(html.contains("<p class=\"soft\">None.</p>"));
}

#[test]
fn findings_of_several_traces_are_numbered_through() {
    let (one, two) = (unordered("x", "mul"), unordered("y", "add"));
    let reports = [one.check(), two.check()];
    let checked = [
        Checked { file: "r0.sstrace", log: &one.trace, report: &reports[0] },
        Checked { file: "r1.sstrace", log: &two.trace, report: &reports[1] },
    ];
    let html = render(Format::Html, &checked, &NoSources, &OPTIONS);
    assert!(html.contains(" id=\"F1\"") && html.contains(" id=\"F2\""));
    assert_eq!(html.matches("<canvas").count(), 2);
    assert!(html.contains("<h3 class=\"trace\">r1.sstrace</h3>"));
}

#[test]
fn a_page_stays_small_with_100_000_hazards_and_a_long_run() {
    // Each turn has one hazard; the lines of 20,000 turns differ.
    for (lines, findings) in [(3, 3), (20_000, 20_000)] {
        let log = Long::new(100_000, 1, lines);
        let report = check(&log, &Config::default());
        assert!(report.findings.len() >= findings, "{}", report.findings.len());
        let hazards: u64 = report.findings.iter().map(|finding| finding.count).sum();
        assert!(hazards >= 100_000, "{hazards}");
        let html = page(&log, &report, &NoSources);
        println!("{lines} lines: {} bytes", html.len());
        assert!(html.len() < 2_000_000, "{lines} lines: {} bytes", html.len());
        let shown = html.matches("class=\"finding").count();
        assert!(shown >= report.findings.len().min(1000), "{shown} findings are on the page");
        assert_eq!(html.contains("not on this page"), shown < report.findings.len());
    }
}

#[test]
fn when_a_finding_occurred_is_drawn() {
    let log = Long::new(1_000, 1, 3);
    let report = check(&log, &Config::default());
    let html = page(&log, &report, &NoSources);
    let repeated = report.findings.iter().filter(|finding| finding.occurrences.total > 1);
    assert_eq!(html.matches("<figure class=\"strip\">").count(), repeated.clone().count());
    let finding = repeated.into_iter().next().expect("a line that is met again and again");
    let wanted = format!("Occurred {} times, ", crate::numbers::grouped(finding.count));
    assert!(html.contains(&wanted), "{wanted}");
    assert!(finding.occurrences.numbers.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn three_hundred_streams_are_still_a_page() {
    let mut sample = unordered("x", "mul");
    let y = sample.alloc(5, "y");
    for stream in (100..400).map(streamsan_trace::StreamId) {
        sample.wait(6, stream, DEFAULT);
        sample.op(7, stream, "relu", AccessMode::Read, y);
    }
    let report = sample.check();
    let html = page(&sample.trace, &report, &NoSources);
    assert!(html.len() < 300_000, "{}", html.len());
    assert!(html.contains("262 more streams in one row"), "40 have their own");
    assert!(html.contains("more streams, not drawn"));
    assert!(html.contains(r#"{"name":"other streams","operations":262}"#));
}
