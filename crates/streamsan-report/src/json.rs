//! JSON: one document, described by docs/schema/report-1.json.

use crate::{Checked, Options, document};

pub(crate) fn render(checked: &[Checked<'_>], options: &Options<'_>) -> String {
    let mut whole = document::frame_of(checked, options);
    document::each(checked, |finding, _| whole.findings.push(finding));
    let mut text = serde_json::to_string_pretty(&whole).expect("strings and numbers can always be written");
    text.push('\n');
    text
}
