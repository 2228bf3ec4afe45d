//! What ran on one device, and beside what.

use super::idle::Causes;
use super::{Copies, Device, Engine, Stream, length, points};
use crate::profile::{Kind, Memory, Operation};
use crate::spans::{Span, Spans, shared};
use std::collections::BTreeMap;

pub(super) fn device(
    number: i64,
    name: Option<String>,
    operations: &[&Operation],
    window: Span,
    causes: &mut Causes<'_>,
) -> Device {
    let mut by_engine: BTreeMap<Engine, Vec<Span>> = BTreeMap::new();
    let mut by_stream: BTreeMap<i64, Vec<&Operation>> = BTreeMap::new();
    for operation in operations {
        if let Some(engine) = engine(operation.kind) {
            by_engine.entry(engine).or_default().push(operation.span);
        }
        by_stream.entry(operation.stream).or_default().push(operation);
    }
    let busy = points(operations.iter().map(|one| one.span), window);
    let engines: BTreeMap<Engine, Spans> =
        by_engine.into_iter().map(|(engine, spans)| (engine, points(spans, window))).collect();
    let none = Spans::default();
    let of = |engine| engines.get(&engine).unwrap_or(&none);
    let copying = of(Engine::Up).or(of(Engine::Down));
    let sets: Vec<Spans> =
        by_stream.values().map(|list| points(list.iter().map(|one| one.span), window)).collect();
    Device {
        number,
        name,
        busy: busy.length(),
        copying: copying.length(),
        copying_beside_compute: copying.and(of(Engine::Compute)).length(),
        both_ways: of(Engine::Up).and(of(Engine::Down)).length(),
        together: shared(&sets).length(),
        idle: causes.idle(operations, &Spans::of([window]).without(&busy)),
        streams: by_stream
            .into_iter()
            .zip(&sets)
            .map(|((number, list), set)| stream(number, &list, set, window))
            .filter(|stream| stream.busy > 0)
            .collect(),
        engines: engines
            .iter()
            .map(|(&engine, spans)| (engine, spans.length()))
            .filter(|one| one.1 > 0)
            .collect(),
    }
}

/// What an operation keeps busy.
pub(super) fn engine(kind: Kind) -> Option<Engine> {
    match kind {
        Kind::Kernel | Kind::Memset | Kind::Within => Some(Engine::Compute),
        Kind::Collective => Some(Engine::Collectives),
        Kind::Up(_) => Some(Engine::Up),
        Kind::Down(_) => Some(Engine::Down),
        Kind::Between => Some(Engine::Between),
        Kind::Host => None,
    }
}

fn stream(number: i64, operations: &[&Operation], set: &Spans, window: Span) -> Stream {
    let mut kernels = 0;
    let mut computing = Vec::new();
    let mut copies: BTreeMap<Kind, Copies> = BTreeMap::new();
    for operation in operations.iter().filter(|one| one.span.1 > window.0 && one.span.0 < window.1) {
        let Some((direction, memory)) = words(operation.kind) else {
            kernels += 1;
            computing.push(operation.span);
            continue;
        };
        let empty = Copies { direction, memory, count: 0, bytes: 0, time: 0 };
        let sum = copies.entry(operation.kind).or_insert(empty);
        sum.count += 1;
        sum.bytes = sum.bytes.saturating_add(operation.bytes);
        sum.time = sum.time.saturating_add(length(operation.span));
    }
    Stream {
        number,
        busy: set.length(),
        kernels,
        computing: points(computing, window).length(),
        copies: copies.into_values().collect(),
    }
}

fn words(kind: Kind) -> Option<(&'static str, Option<&'static str>)> {
    let memory = |memory| {
        Some(match memory {
            Memory::Pinned => "pinned",
            Memory::Pageable => "pageable",
            Memory::Other => "other",
        })
    };
    match kind {
        Kind::Kernel | Kind::Collective | Kind::Memset => None,
        Kind::Up(from) => Some(("up", memory(from))),
        Kind::Down(to) => Some(("down", memory(to))),
        Kind::Within => Some(("within", None)),
        Kind::Between => Some(("between", None)),
        Kind::Host => Some(("host", None)),
    }
}
