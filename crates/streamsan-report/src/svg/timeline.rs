//! The timeline where scripts are off: how much each lane has to do, and where the findings are.

use super::escape::escape;
use super::{inline, lane_name, shorten};
use crate::graph::Survey;
use crate::names::Names;
use std::fmt::Write as _;

const COLUMNS: usize = 256;
const WIDE: f64 = 768.0;
const ROW: f64 = 30.0;
const LEFT: f64 = 170.0;

/// As an element of a page. `rows`: the lanes to show; `pins`: what to mark, and after how many events.
pub(crate) fn draw(survey: &Survey, rows: &[usize], pins: &[(String, u64)], names: &Names<'_>) -> String {
    let timeline = &survey.timeline;
    let total = timeline.total.max(1);
    let height = 30.0 + ROW * rows.len() as f64;
    let mut body = String::new();
    for (row, &lane) in rows.iter().enumerate() {
        let bottom = 24.0 + ROW * row as f64 + ROW - 6.0;
        let name = lane_name(&survey.lanes, lane, names);
        let _ = write!(
            body,
            "<text class=\"name\" x=\"8\" y=\"{:.0}\">{}</text><line class=\"lane\" x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{bottom}\" y2=\"{bottom}\"/>",
            bottom - 5.0,
            escape(&shorten(&name, 20)),
            LEFT + WIDE
        );
        let counts = columns(timeline.bins.get(lane).map_or(&[][..], Vec::as_slice), timeline.width, total);
        let most = counts.iter().copied().max().unwrap_or(0).max(1);
        let mut path = String::new();
        for (column, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let high = (ROW - 8.0) * (count as f64 / most as f64).sqrt();
            let x = LEFT + WIDE * column as f64 / COLUMNS as f64;
            let _ = write!(path, "M{x:.0} {bottom:.0}v-{:.0}h3v{:.0}z", high.max(2.0), high.max(2.0));
        }
        let _ = write!(body, "<path class=\"density\" d=\"{path}\"/>");
    }
    for (pin, rank) in pins {
        let x = LEFT + WIDE * *rank as f64 / total as f64;
        let _ = write!(
            body,
            "<path class=\"pin\" d=\"M{x:.0} 20l-5 -8h10z\"/><text class=\"missing-text halo\" text-anchor=\"middle\" x=\"{x:.0}\" y=\"10\">{}</text>",
            escape(pin)
        );
    }
    inline(
        LEFT + WIDE + 20.0,
        height,
        "how many operations each stream has, from first to last issued",
        &body,
    )
}

/// Counts of operations for each column.
fn columns(bins: &[u32], width: u64, total: u64) -> Vec<u64> {
    let mut counts = vec![0_u64; COLUMNS];
    for (bin, &count) in bins.iter().enumerate() {
        let column = u128::from(bin as u64 * width) * COLUMNS as u128 / u128::from(total);
        counts[(column as usize).min(COLUMNS - 1)] += u64::from(count);
    }
    counts
}
