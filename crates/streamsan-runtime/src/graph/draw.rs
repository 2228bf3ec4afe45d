//! A stream graph as DOT and as SVG.

use super::StreamGraph;
use std::fmt::Write as _;

/// Size of a box and the space between boxes, in pixels.
const BOX: (usize, usize) = (168, 36);
const GAP: (usize, usize) = (72, 24);

impl StreamGraph {
    /// The graph in the DOT language; an arrow goes from a stream to one that waits for it.
    pub fn to_dot(&self) -> String {
        let mut text = "digraph streams {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
        for name in &self.names {
            let _ = writeln!(text, "  {};", quoted(name));
        }
        for (waiter, awaited) in self.edges() {
            let _ = writeln!(text, "  {} -> {};", quoted(awaited), quoted(waiter));
        }
        text.push_str("}\n");
        text
    }

    /// The graph as a picture: columns from left to right in the order of the waits.
    pub fn to_svg(&self) -> String {
        let columns = self.columns();
        let mut rows = vec![0; self.names.len()];
        let mut filled = vec![0_usize; self.names.len() + 1];
        for &at in &self.order {
            rows[at] = filled[columns[at]];
            filled[columns[at]] += 1;
        }
        let place = |at: usize| (24 + columns[at] * (BOX.0 + GAP.0), 24 + rows[at] * (BOX.1 + GAP.1));
        let width =
            48 + (columns.iter().max().map_or(0, |last| last + 1) * (BOX.0 + GAP.0)).saturating_sub(GAP.0);
        let height = 48 + (filled.iter().max().copied().unwrap_or(0) * (BOX.1 + GAP.1)).saturating_sub(GAP.1);
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"13\">\n<title>{} streams and which of them wait for which</title>\n<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0 8 4 0 8z\" fill=\"#6b7280\"/></marker></defs>\n",
            self.names.len()
        );
        for (waiter, awaited) in self.after.iter().enumerate() {
            for &from in awaited {
                let ((x1, y1), (x2, y2)) = (place(from), place(waiter));
                let (x1, y1, y2) = (x1 + BOX.0, y1 + BOX.1 / 2, y2 + BOX.1 / 2);
                let middle = usize::midpoint(x1, x2);
                let _ = writeln!(
                    text,
                    "<path d=\"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}\" fill=\"none\" stroke=\"#6b7280\" stroke-width=\"2\" marker-end=\"url(#arrow)\"><title>{} waits for {}</title></path>",
                    escaped(&self.names[waiter]),
                    escaped(&self.names[from])
                );
            }
        }
        for (at, name) in self.names.iter().enumerate() {
            let (x, y) = place(at);
            let _ = writeln!(
                text,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"#0072B2\"/><text x=\"{}\" y=\"{}\" fill=\"#ffffff\" text-anchor=\"middle\">{}</text>",
                BOX.0,
                BOX.1,
                x + BOX.0 / 2,
                y + BOX.1 / 2 + 5,
                escaped(&shortened(name))
            );
        }
        text.push_str("</svg>\n");
        text
    }

    /// Per stream, the length of the longest chain of waits before it.
    fn columns(&self) -> Vec<usize> {
        let mut columns = vec![0; self.names.len()];
        for &at in &self.order {
            columns[at] = self.after[at].iter().map(|&before| columns[before] + 1).max().unwrap_or(0);
        }
        columns
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// At most what a box has room for.
fn shortened(name: &str) -> String {
    if name.chars().count() <= 22 {
        return name.to_owned();
    }
    name.chars().take(21).chain(['\u{2026}']).collect()
}

#[cfg(test)]
mod tests {
    use crate::StreamGraph;

    #[test]
    fn pictures_name_every_stream_and_every_wait() {
        let graph =
            StreamGraph::new([("up", vec![]), ("a<b", vec!["up"]), ("down", vec!["up", "a<b"])]).unwrap();
        let dot = graph.to_dot();
        assert!(dot.contains("\"up\" -> \"a<b\";") && dot.contains("\"a<b\" -> \"down\";"), "{dot}");
        let svg = graph.to_svg();
        assert_eq!(svg.matches("<path d=\"M").count(), 4, "{svg}");
        assert!(svg.contains("down waits for a&lt;b") && !svg.contains("a<b"), "{svg}");
    }
}
