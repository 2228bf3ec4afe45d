//! An analysis for people: what bounds the program first, then where the time went.

use crate::analysis::{Analysis, Copies, Device, Engine, Idle, Meanwhile, Pageable, Stream, Wait};
use crate::place::{Function, Place};
use crate::words::{bytes, counted, grouped, percent, rate, time};
use std::fmt::Write as _;

/// How many streams of a device have lines of their own.
const STREAMS: usize = 4;
/// How many devices have a line beside the one that is shown in full.
const DEVICES: usize = 7;
/// How many places of waits, and how many of pageable copies.
const PLACES: usize = 4;
/// How many lines the streams of a device have at most, if it has more than one.
const LINES: usize = 8;
/// A share of the time below which nothing is worth changing, and one below which it is not worth a line.
const LITTLE: f64 = 0.05;
const NOTHING: f64 = 0.005;

/// The analysis as text, 80 columns wide.
pub fn text(file: &str, analysis: &Analysis) -> String {
    let mut text = String::new();
    head(file, analysis, &mut text);
    bound(analysis, &mut text);
    devices(analysis, &mut text);
    meanwhile(analysis, &mut text);
    waits(analysis, &mut text);
    pageable(analysis, &mut text);
    notes(analysis, &mut text);
    text
}

fn head(file: &str, analysis: &Analysis, text: &mut String) {
    let devices = counted(analysis.devices.len() as u64, "GPU", "GPUs");
    let steps = match analysis.steps as u64 {
        0 => String::new(),
        1 => ", 1 step".to_owned(),
        steps => format!(", {} steps of {}", grouped(steps), time(analysis.took / steps)),
    };
    let _ = writeln!(text, "{file}: {} on {devices}{steps}", time(analysis.took));
}

fn bound(analysis: &Analysis, text: &mut String) {
    let took = analysis.took;
    let most = analysis.bound;
    let many = analysis.devices.len() > 1;
    let on = |device: Option<i64>| match device {
        Some(device) if many => format!(", device {device}"),
        _ => String::new(),
    };
    let _ = writeln!(
        text,
        "\nBound by {}{}: busy for {} of {} ({}).",
        subject(most.engine),
        on(most.device),
        time(most.busy),
        time(took),
        percent(most.busy, took)
    );
    let unexplained = analysis.host.unexplained;
    let mut rows = vec![(Engine::Host, None, analysis.host.busy)];
    for device in &analysis.devices {
        rows.extend(device.engines.iter().map(|&(engine, busy)| (engine, Some(device.number), busy)));
    }
    rows.sort_by(|one, other| other.2.cmp(&one.2).then_with(|| one.cmp(other)));
    for &(engine, device, busy) in rows.iter().take(if is_much(unexplained, took) { 5 } else { 6 }) {
        let name = format!("{}{}", label(engine), on(device));
        let _ = writeln!(text, "  {name:<32}{:>9}  {:>7}", time(busy), percent(busy, took));
    }
    if is_much(unexplained, took) {
        let (spent, share) = (time(unexplained), percent(unexplained, took));
        let _ = writeln!(text, "  {:<32}{spent:>9}  {share:>7}", "host, not explained");
    }
    if most.engine == Engine::Host {
        calls(analysis, text);
    }
    let _ = writeln!(
        text,
        "With perfect overlap {} at least: overlap can gain {} ({}) at most.",
        time(most.busy),
        time(analysis.gain()),
        percent(analysis.gain(), took)
    );
    if is_much(analysis.gain(), took) && is_much(unexplained, took) {
        unknown(analysis, text);
    } else {
        let _ = writeln!(text, "{}", advice(analysis));
    }
}

/// What nothing can be said about.
fn unknown(analysis: &Analysis, text: &mut String) {
    let _ = writeln!(
        text,
        "{} of the host the profile does not explain: Python, sleeping, polling.",
        time(analysis.host.unexplained)
    );
    text.push_str(if analysis.has_stacks {
        "What devices wait for of it, no stream makes shorter.\n"
    } else {
        "What devices wait for of it, no stream makes shorter; with_stack=True shows it.\n"
    });
}

/// The call of CUDA in which the host was longest, if that is much of its time.
fn calls(analysis: &Analysis, text: &mut String) {
    if let Some((name, count, total)) = analysis.host.calls.first()
        && is_much(*total / 2, analysis.host.busy)
    {
        let _ = writeln!(text, "  the host in {} {name}: {}", times(*count), time(*total));
    }
}

fn is_much(part: u64, whole: u64) -> bool {
    part as f64 >= LITTLE * whole as f64
}

fn is_something(part: u64, whole: u64) -> bool {
    part as f64 >= NOTHING * whole as f64
}

/// What the bound means for the program.
fn advice(analysis: &Analysis) -> &'static str {
    let pays = is_much(analysis.gain(), analysis.took);
    match (analysis.bound.engine, pays) {
        (Engine::Host, false) => {
            "More streams gain nothing: the devices wait for the host. Larger operations,\nCUDA graphs or torch.compile make that faster."
        }
        (Engine::Host, true) => {
            "The devices wait for the host, and the host for the devices: take out waits\nfirst, then issue less (larger operations, CUDA graphs, torch.compile)."
        }
        (Engine::Compute, false) => "More streams gain nothing: only faster kernels help.",
        (Engine::Compute, true) => "Beyond that, only faster kernels help.",
        (Engine::Up | Engine::Down, false) => {
            "More streams gain nothing: only fewer bytes help, or pinned memory instead of\npageable."
        }
        (Engine::Up | Engine::Down, true) => {
            "Beyond that, only fewer bytes help, or pinned memory instead of pageable."
        }
        (Engine::Between | Engine::Collectives, false) => {
            "More streams gain nothing: only less communication helps."
        }
        (Engine::Between | Engine::Collectives, true) => "Beyond that, only less communication helps.",
    }
}

/// The busiest device in full, the others with a line each.
fn devices(analysis: &Analysis, text: &mut String) {
    let mut devices: Vec<&Device> = analysis.devices.iter().collect();
    devices.sort_by_key(|device| (std::cmp::Reverse(device.busy), device.number));
    let Some((busiest, others)) = devices.split_first() else { return };
    text.push('\n');
    headline(busiest, analysis, text);
    one_device(busiest, text);
    for device in others.iter().take(DEVICES) {
        headline(device, analysis, text);
    }
    if others.len() > DEVICES {
        let more = counted((others.len() - DEVICES) as u64, "more device", "more devices");
        let _ = writeln!(text, "{more} in --output-format json");
    }
}

fn headline(device: &Device, analysis: &Analysis, text: &mut String) {
    let name = device.name.as_ref().map_or_else(String::new, |name| format!(", {name}"));
    let _ = writeln!(
        text,
        "Device {}{name}: busy for {} ({}), idle for {}",
        device.number,
        time(device.busy),
        percent(device.busy, analysis.took),
        time(device.idle.total())
    );
}

fn one_device(device: &Device, text: &mut String) {
    for (length, why) in reasons(&device.idle) {
        let _ = writeln!(text, "  idle {:>9}  {why}", time(length));
    }
    let mut streams: Vec<&Stream> = device.streams.iter().collect();
    streams.sort_by_key(|stream| (std::cmp::Reverse(stream.busy), stream.number));
    let mut lines = LINES;
    let mut shown = 0;
    for stream in streams.iter().take(STREAMS) {
        let wanted = stream.copies.len() + usize::from(stream.kernels > 0);
        if shown > 0 && wanted > lines {
            break;
        }
        one_stream(stream, text);
        lines = lines.saturating_sub(wanted);
        shown += 1;
    }
    let others = &streams[shown..];
    if !others.is_empty() {
        let rest: u64 = others.iter().map(|stream| stream.busy).fold(0, u64::saturating_add);
        let more = counted(others.len() as u64, "more stream", "more streams");
        let _ = writeln!(text, "  {more}, busy for {} in sum", time(rest));
    }
    if device.copying > 0 {
        let exposed = device.copying - device.copying_beside_compute;
        let _ = writeln!(
            text,
            "  copies: {} of {} beside compute, {} exposed",
            time(device.copying_beside_compute),
            time(device.copying),
            time(exposed)
        );
    }
    if device.streams.len() > 1 {
        let said = if device.together == 0 {
            "no two streams ran anything at the same time".to_owned()
        } else {
            format!(
                "two or more streams ran at the same time for {} ({} of busy)",
                time(device.together),
                percent(device.together, device.busy)
            )
        };
        let _ = writeln!(text, "  {said}");
    }
}

fn reasons(idle: &Idle) -> Vec<(u64, &'static str)> {
    let mut all = vec![
        (idle.issuing, "next operation not issued yet, the host had not waited"),
        (idle.after_wait, "next operation not issued yet, after a wait of the host"),
        (idle.waiting, "the host was in a wait"),
        (idle.starting, "next operation issued, and not started yet"),
        (idle.nothing, "nothing more was issued"),
    ];
    all.retain(|(length, _)| *length > 0);
    all.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
    all
}

fn one_stream(stream: &Stream, text: &mut String) {
    let mut name = format!("stream {}", stream.number);
    if stream.kernels > 0 {
        let kernels = counted(stream.kernels, "kernel", "kernels");
        let _ = writeln!(text, "  {name:<12}{kernels:<26}{:>9}", time(stream.computing));
        name.clear();
    }
    for copies in &stream.copies {
        let _ = writeln!(
            text,
            "  {name:<12}{:<26}{:>9}  {}, {:.1} GB/s",
            sort_of(copies),
            time(copies.time),
            bytes(copies.bytes),
            rate(copies.bytes, copies.time)
        );
        name.clear();
    }
}

fn sort_of(copies: &Copies) -> String {
    let count = counted(copies.count, "copy", "copies");
    let where_to = match copies.direction {
        "up" => " up",
        "down" => " down",
        "within" => " on the device",
        "between" => " between devices",
        _ => " on the host",
    };
    match copies.memory {
        Some(memory @ ("pinned" | "pageable")) => format!("{count}{where_to}, {memory}"),
        _ => format!("{count}{where_to}"),
    }
}

fn meanwhile(analysis: &Analysis, text: &mut String) {
    let all: u64 = analysis.meanwhile.iter().map(|one| one.time).fold(0, u64::saturating_add);
    if !is_much(all, analysis.took) {
        return;
    }
    text.push_str("\nWhere the host was while a device had nothing to do and waited for it:\n");
    for Meanwhile { place, time: spent } in analysis.meanwhile.iter().take(3) {
        let what = match (&place.function, &place.operator) {
            (Some(function), _) => in_function(place, function),
            (None, Some(operator)) => operator.clone(),
            (None, None) if analysis.has_stacks => "outside the functions of the profile".to_owned(),
            (None, None) => "outside the operators of torch".to_owned(),
        };
        let _ = writeln!(text, "  {:>9}  {what}", time(*spent));
    }
}

fn waits(analysis: &Analysis, text: &mut String) {
    let costly = |wait: &&Wait| is_something(wait.cost, analysis.took);
    let listed: Vec<&Wait> = analysis.waits.iter().filter(costly).take(PLACES).collect();
    let rest = &analysis.waits[listed.len()..];
    let cost: u64 = rest.iter().map(|wait| wait.cost).fold(0, u64::saturating_add);
    let places = counted(rest.len() as u64, "place", "places");
    if listed.is_empty() {
        match cost {
            _ if rest.is_empty() => {}
            0 => text.push_str("\nThe host waited, and no device was idle because of it.\n"),
            _ => {
                let _ = writeln!(text, "\nWaits of the host cost {} of idle time, in {places}.", time(cost));
            }
        }
        return;
    }
    text.push_str("\nWaits of the host, by the idle time of devices that they cost:\n");
    for wait in &listed {
        let _ = writeln!(
            text,
            "  {:>9}  {} {}, {} in it{}",
            time(wait.cost),
            times(wait.count),
            wait.call,
            time(wait.waited),
            in_place(&wait.place)
        );
    }
    if cost > 0 {
        let _ = writeln!(text, "  {:>9}  elsewhere, in {places}", time(cost));
    }
}

fn pageable(analysis: &Analysis, text: &mut String) {
    let long = |one: &&Pageable| is_something(one.time.max(one.calling), analysis.took);
    let listed: Vec<&Pageable> = analysis.pageable.iter().filter(long).take(PLACES).collect();
    let rest = &analysis.pageable[listed.len()..];
    let count: u64 = rest.iter().map(|one| one.count).fold(0, u64::saturating_add);
    let size: u64 = rest.iter().map(|one| one.bytes).fold(0, u64::saturating_add);
    let rest = format!("{} of {}", counted(count, "copy", "copies"), bytes(size));
    if listed.is_empty() {
        if count > 0 {
            let _ = writeln!(text, "\nCopies of pageable memory: {rest}, in next to no time.");
        }
        return;
    }
    text.push_str("\nCopies of pageable memory (pin it: faster, and the host need not wait):\n");
    for one in &listed {
        let Pageable { direction, place, count, bytes: size, time: took, calling } = one;
        let _ = writeln!(
            text,
            "  {:>9}  {} {direction}, {}, {} in the calls{}",
            time(*took),
            times(*count),
            bytes(*size),
            time(*calling),
            in_place(place)
        );
    }
    if count > 0 {
        let _ = writeln!(text, "  and {rest} elsewhere");
    }
}

/// `4x`.
fn times(count: u64) -> String {
    format!("{}x", grouped(count))
}

/// The place on a line of its own, if there is a file in it.
fn in_place(place: &Place) -> String {
    let what = place.callee.as_ref().or(place.operator.as_ref());
    match &place.function {
        Some(function) => format!("\n      {}", in_function(place, function)),
        None => what.map_or_else(String::new, |what| format!(" in {what}")),
    }
}

/// `Tensor.item in step, train.py:12`.
fn in_function(place: &Place, function: &Function) -> String {
    let what = place.callee.as_ref().or(place.operator.as_ref());
    let what = what.map_or_else(String::new, |what| format!("{what} in "));
    let name = if function.name == "<module>" { "the module" } else { &function.name };
    let file = &function.file;
    match &place.lines[..] {
        [] if function.line == 0 => format!("{what}{name}, {file}"),
        [] => format!("{what}{name}, {file}:{}", function.line),
        lines => {
            let lines: Vec<String> = lines.iter().map(u64::to_string).collect();
            format!("{what}{name}, {file}:{}", lines.join(", "))
        }
    }
}

fn notes(analysis: &Analysis, text: &mut String) {
    text.push('\n');
    if analysis.has_stacks {
        text.push_str("note: a line is that of the call if the source is here, else of the function;\n      recording stacks slows the host down\n");
    } else if !analysis.waits.is_empty() || !analysis.pageable.is_empty() {
        text.push_str("note: no Python lines in this profile: record with with_stack=True\n");
    }
    let unread: Vec<String> =
        analysis.unread.iter().map(|(name, count)| format!("{name} ({})", grouped(*count))).take(5).collect();
    if !unread.is_empty() {
        let _ = writeln!(text, "note: events that were not read: {}", unread.join(", "));
    }
    if analysis.timeless > 0 {
        let _ = writeln!(text, "note: {} without a time", counted(analysis.timeless, "event", "events"));
    }
    text.push_str("note: a profile has no addresses, so it cannot show a race; `streamsan run` can\n");
}

fn label(engine: Engine) -> &'static str {
    match engine {
        Engine::Up => "copies up",
        Engine::Down => "copies down",
        Engine::Between => "copies between devices",
        Engine::Collectives => "collectives",
        Engine::Compute => "compute",
        Engine::Host => "host",
    }
}

fn subject(engine: Engine) -> &'static str {
    match engine {
        Engine::Host => "the host",
        other => label(other),
    }
}
