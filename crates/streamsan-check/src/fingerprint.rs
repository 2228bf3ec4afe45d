//! Fingerprints: a finding's identity across runs and small edits.

use crate::finding::Place;
use crate::rules::Rule;
use streamsan_trace::Tables;

/// A hash (FNV-1a, 64 bits) of the rule and, for each place, the file's name, the function and the label of
/// the operation. Line numbers are left out: they change with every edit above.
pub(crate) fn fingerprint(rule: Rule, first: Option<&Place>, second: &Place, tables: &Tables) -> u64 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    hash.text(rule.code());
    for place in first.into_iter().chain([second]) {
        if let Some((_, frame)) = tables.user_frame(place.site) {
            let file = tables.string(frame.file);
            hash.text(file.rsplit('/').next().unwrap_or(file));
            hash.text(tables.string(frame.function));
        }
        hash.text(tables.string(place.label));
    }
    hash.0
}

struct Fnv(u64);

impl Fnv {
    fn text(&mut self, text: &str) {
        for byte in text.bytes().chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
