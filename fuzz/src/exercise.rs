//! Everything that is done with a trace once it is read, and what must hold of it.

use streamsan_check::{Config, IgnoreComment, IgnoreFiles, Ignores, LiveCheck, Region, Report, Rule, check};
use streamsan_report::{Checked, Format, Options, Sources, render};
use streamsan_trace::{Log, Trace};

/// Source texts of all sorts, chosen by the path.
struct Texts;

impl Sources for Texts {
    fn text(&self, path: &str) -> Option<String> {
        Some(match path.len() % 6 {
            0 => return None,
            1 => String::new(),
            2 => "a = 1\nb = a.to(\"cuda\", non_blocking=True)\n\n\tc = b * 2  # \u{1b}[31m\n".repeat(40),
            3 => "x = \"\u{e9}\u{4e2d}\u{6587}\u{1f600}\u{301}\"; y = x\r\n".repeat(9),
            4 => "no end of line".to_owned(),
            _ => "\u{feff}\0\u{202e}\n\u{b}\n</script><!--\n".repeat(3) + &"z".repeat(5000),
        })
    }
}

/// Every form of a report.
const FORMATS: [Format; 9] = [
    Format::Full,
    Format::Concise,
    Format::Json,
    Format::JsonLines,
    Format::Sarif,
    Format::Github,
    Format::Junit,
    Format::Html,
    Format::Perfetto,
];

/// Traces with at most this many events are gone through more than once.
const SHORT: usize = 200;

/// Checks a trace and writes its report in every form.
pub(crate) fn exercise(trace: &Trace) -> Report {
    let report = check(trace, &Config::default());
    if trace.events.len() < SHORT {
        assert_eq!(report, check(trace, &Config::default()), "the same trace gives another report");
        live(trace, &report);
        settings(trace, &report);
    }
    let one = Checked { file: "run.sstrace", log: trace, report: &report };
    let options = Options { color: false, tool: "streamsan 0", limit: None, width: None };
    for format in FORMATS {
        look_at(format, &render(format, &[one], &Texts, &options));
    }
    render(Format::Full, &[one], &Texts, &Options { color: true, limit: Some(1), ..options });
    for format in [Format::Full, Format::Json, Format::Html] {
        look_at(format, &render(format, &[one, one], &Texts, &Options { limit: Some(2), ..options }));
    }
    report
}

/// What must hold of a report in any case.
fn look_at(format: Format, text: &str) {
    assert!(text.is_empty() || text.ends_with('\n'), "the report does not end with a line feed");
    let parses = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok();
    match format {
        Format::Json | Format::Sarif | Format::Perfetto => assert!(parses(text), "the report is no JSON"),
        Format::JsonLines => assert!(text.lines().all(parses), "a line of the report is no JSON"),
        Format::Full | Format::Concise | Format::Github => {
            let control = text.chars().find(|&found| found.is_control() && found != '\n');
            assert_eq!(control, None, "the report carries a control character: {text:?}");
        }
        Format::Junit => {
            let control = text.chars().find(|&found| found.is_control() && !"\n\r\t".contains(found));
            assert_eq!(control, None, "XML does not hold this character");
        }
        _ => {}
    }
}

/// Gives the events one by one, and compares.
fn live(trace: &Trace, report: &Report) {
    let mut live = LiveCheck::new(Config::default());
    let mut fresh = Vec::new();
    Log::read(trace, &mut |event, accesses| {
        live.event(event, accesses, &trace.tables);
        fresh.extend(live.new_findings());
    });
    let last = live.report(&trace.tables);
    assert_eq!(last.coverage, report.coverage, "a live check has seen something else");
    let prints = |report: &Report| {
        let mut prints: Vec<u64> = report.findings.iter().map(|finding| finding.fingerprint).collect();
        prints.sort_unstable();
        prints
    };
    assert_eq!(prints(&last), prints(report), "a live check finds something else");
    for finding in &report.findings {
        let found = fresh.iter().any(|early| early.fingerprint == finding.fingerprint);
        assert!(found || finding.first.is_none(), "a finding was not given while it happened");
    }
}

/// Checks with settings that leave out what was found first.
fn settings(trace: &Trace, report: &Report) {
    let Some(finding) = report.findings.first() else { return };
    let Some((_, frame)) = trace.tables.user_frame(finding.second.site) else { return };
    let (file, rules) = (trace.tables.string(frame.file).to_owned(), Rule::all().collect::<Vec<_>>());
    let line =
        IgnoreComment { file: file.clone(), line: frame.line, rules: rules.clone(), reason: "r".to_owned() };
    let files = IgnoreFiles { pattern: "*".to_owned(), files: vec![file], rules: rules.clone() };
    let region = Region { first: finding.second.number, last: finding.second.number };
    for config in [
        Config { ignore: rules, ..Config::default() },
        Config { ignores: Ignores { comments: vec![line], files: vec![] }, ..Config::default() },
        Config { ignores: Ignores { comments: vec![], files: vec![files] }, ..Config::default() },
        Config { region: Some(region), ..Config::default() },
    ] {
        let less = check(trace, &config);
        assert!(config.ignore.is_empty() || less.findings.is_empty(), "a rule that is ignored is reported");
        let one = Checked { file: "run.sstrace", log: trace, report: &less };
        look_at(
            Format::Full,
            &render(
                Format::Full,
                &[one],
                &Texts,
                &Options { color: false, tool: "streamsan 0", limit: None, width: None },
            ),
        );
    }
}
