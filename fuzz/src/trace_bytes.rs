//! Bytes as a trace file. What can be read of them is checked and reported.

use super::{exercise::exercise, packed::expand};
use streamsan_trace::file::{read_bytes, write_bytes};

pub(crate) fn run(input: &[u8]) {
    let file = expand(input);
    match read_bytes(&file) {
        Ok(trace) => {
            exercise(&trace);
            // What was read is sound, so it can be written and read again. Gaps at the end of a log that is not
            // whole may have numbers that are too great for a file.
            if trace.events.last().is_some_and(|event| event.number.0 > u64::MAX / 4) {
                return;
            }
            let again = write_bytes(&trace).expect("a trace that was read can be written");
            let mut again = read_bytes(&again).expect("a trace that was written can be read");
            if !trace.header.closed {
                assert!(again.events.pop().is_some(), "nothing says that the trace is not closed");
                again.tables.strings.truncate(trace.tables.strings.len());
            }
            assert!(again == trace, "what was read, written and read again is something else");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
