//! What was counted of a trace, for programs that read reports.

use crate::Checked;
use crate::names::Names;
use serde::Serialize;
use std::collections::BTreeSet;

#[derive(Serialize)]
pub(crate) struct Measured<'a> {
    trace: &'a str,
    streams: Vec<OfStream>,
    operations: u64,
    /// Operations in the longest chain of which each has to wait for the one before.
    longest_chain: u64,
    copies: Copies,
    host_waits: HostWaits,
    memory: Memory,
}

#[derive(Serialize)]
struct OfStream {
    stream: String,
    operations: u64,
    uploaded: u64,
    uploaded_pageable: u64,
    downloaded: u64,
    downloaded_pageable: u64,
    waits: u64,
    redundant_waits: u64,
}

#[derive(Serialize)]
struct Copies {
    count: u64,
    bytes: u64,
    /// Those that may run beside work of another stream.
    beside: u64,
    beside_bytes: u64,
}

#[derive(Serialize)]
struct HostWaits {
    count: u64,
    /// Operations that were waited for.
    operations: u64,
    /// Waits after which no stream had work.
    drained: u64,
}

#[derive(Serialize)]
struct Memory {
    /// Most bytes in use at one time.
    in_use: u64,
    /// Most bytes that were freed and held by `record_stream`, if only waits of the host count.
    held: u64,
}

/// The values of one trace, if there are any.
pub(super) fn of<'a>(checked: &Checked<'a>) -> Option<Measured<'a>> {
    let measures = checked.report.measures.as_ref()?;
    let names = Names::of_blocks(checked.log, &BTreeSet::new());
    let streams = measures.streams.iter().map(|one| OfStream {
        stream: names.stream_plain(one.stream),
        operations: one.operations,
        uploaded: one.uploaded,
        uploaded_pageable: one.uploaded_pageable,
        downloaded: one.downloaded,
        downloaded_pageable: one.downloaded_pageable,
        waits: one.waits,
        redundant_waits: one.redundant,
    });
    Some(Measured {
        trace: checked.file,
        streams: streams.collect(),
        operations: measures.operations,
        longest_chain: measures.longest,
        copies: Copies {
            count: measures.copies,
            bytes: measures.copied,
            beside: measures.beside,
            beside_bytes: measures.beside_bytes,
        },
        host_waits: HostWaits {
            count: measures.host_waits,
            operations: measures.waited_for,
            drained: measures.drained,
        },
        memory: Memory { in_use: measures.memory, held: measures.held },
    })
}
