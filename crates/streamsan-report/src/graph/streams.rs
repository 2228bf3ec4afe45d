//! The graph of the streams: who waits for whom, in an order in which most edges go down, loops marked.

use super::Survey;
use super::lanes::HOST;
use super::loops::components;
use super::waits::WaitCount;

/// How many lanes are drawn; of more, those with most waits and operations.
const LANES: usize = 40;

/// The streams of a run and their waits, ready to be drawn.
#[derive(Debug)]
pub(crate) struct StreamGraph {
    /// Lanes from top to bottom.
    pub(crate) rows: Vec<usize>,
    /// Edges between rows.
    pub(crate) edges: Vec<Edge>,
    /// Rows of streams that wait for each other, each loop with its rows.
    pub(crate) loops: Vec<Vec<usize>>,
    /// How many lanes are not drawn.
    pub(crate) left_out: usize,
}

/// One edge: `to` waits for `from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    /// Row of the lane that is waited for.
    pub(crate) from: usize,
    /// Row of the lane that waits.
    pub(crate) to: usize,
    /// How often, and when first.
    pub(crate) count: WaitCount,
    /// Whether it is part of a loop.
    pub(crate) in_loop: bool,
}

impl StreamGraph {
    pub(crate) fn new(survey: &Survey) -> Self {
        let lanes = &survey.lanes.list;
        let touches = |lane: usize| {
            survey.waits.edges.iter().filter(|((from, to), _)| *from == lane || *to == lane).count()
        };
        let mut chosen: Vec<usize> = (0..lanes.len())
            .filter(|&lane| touches(lane) > 0 || (lane != HOST && lanes[lane].operations > 0))
            .collect();
        chosen.sort_by_key(|&lane| std::cmp::Reverse((touches(lane) > 0, lanes[lane].operations)));
        let left_out = chosen.len().saturating_sub(LANES);
        chosen.truncate(LANES);
        let pairs: Vec<(usize, usize)> =
            survey.waits.edges.keys().copied().filter(|(from, to)| from != to).collect();
        let (component, sizes) = components(lanes.len(), &pairs);
        // The host waits and is not waited for: it stands below.
        chosen.sort_by_key(|&lane| (lane == HOST, component[lane], lane));
        let rows = chosen;
        let row = |lane: usize| rows.iter().position(|&other| other == lane);
        let edges: Vec<Edge> = survey
            .waits
            .edges
            .iter()
            .filter_map(|(&(from, to), &count)| {
                let in_loop = from != to && component[from] == component[to];
                Some(Edge { from: row(from)?, to: row(to)?, count, in_loop })
            })
            .collect();
        let mut loops = Vec::new();
        for (index, &size) in sizes.iter().enumerate() {
            let members: Vec<usize> = (0..rows.len()).filter(|&row| component[rows[row]] == index).collect();
            if size > 1 && members.len() > 1 {
                loops.push(members);
            }
        }
        Self { rows, edges, loops, left_out }
    }
}
