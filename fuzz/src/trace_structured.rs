//! Events as a program, or an enemy, might have made them.

use super::{exercise::exercise, structure::trace};
use arbitrary::Unstructured;
use streamsan_check::hazards;
use streamsan_trace::file::{read_bytes, write_bytes};

pub(crate) fn run(input: &[u8]) {
    let Ok(trace) = trace(&mut Unstructured::new(input)) else { return };
    exercise(&trace);
    for hazard in hazards(&trace) {
        assert!(hazard.first <= hazard.second, "a hazard runs backwards");
    }
    let file = write_bytes(&trace).expect("events by rising numbers can be written");
    let again = read_bytes(&file).expect("what was written can be read");
    assert!(again == trace, "what was written and read again is something else");
}
