//! Stream graphs: named streams and which of them wait for which.
//!
//! A graph is declared before any work is enqueued. Each round runs the streams in an order in which every stream
//! comes after those it depends on, and each first waits for all of them. A cycle would make streams wait for
//! each other's next round, so it is refused, and the error names the streams on it.

mod draw;
mod streams;

use std::collections::BTreeMap;
use std::fmt;
pub use streams::GraphStreams;

/// A mistake in a declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphError {
    /// The name is taken.
    Duplicate {
        /// The name.
        name: String,
    },
    /// `after` names a stream that was not declared.
    Unknown {
        /// The stream whose declaration is wrong.
        stream: String,
        /// The name that is not known.
        after: String,
    },
    /// Streams wait for each other in a circle.
    Cycle {
        /// The streams on it, each after the next one; the first waits for the last.
        streams: Vec<String>,
    },
}

impl fmt::Display for GraphError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate { name } => {
                write!(formatter, "two streams are named `{name}`: choose another name")
            }
            Self::Unknown { stream, after } => write!(
                formatter,
                "stream `{stream}` is declared to run after `{after}`, which is not in the graph: declare it too"
            ),
            Self::Cycle { streams } => {
                let first = streams.first().map_or("", String::as_str);
                let chain =
                    streams.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" after ");
                write!(
                    formatter,
                    "streams wait for each other: {chain} after `{first}`: leave one of these out"
                )
            }
        }
    }
}

impl std::error::Error for GraphError {}

/// Streams and their dependencies, free of cycles.
///
/// ```
/// use streamsan_runtime::StreamGraph;
/// let graph = StreamGraph::new([
///     ("preprocess", vec![]),
///     ("infer", vec!["preprocess"]),
///     ("postprocess", vec!["infer"]),
///     ("copy out", vec!["postprocess"]),
/// ])?;
/// assert_eq!(graph.order().collect::<Vec<_>>(), ["preprocess", "infer", "postprocess", "copy out"]);
/// let cycle = StreamGraph::new([("a", vec!["b"]), ("b", vec!["a"])]).unwrap_err();
/// assert_eq!(cycle.to_string(), "streams wait for each other: `a` after `b` after `a`: leave one of these out");
/// # Ok::<(), streamsan_runtime::GraphError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamGraph {
    names: Vec<String>,
    /// Per stream, the streams that it waits for, in the order of their declaration.
    after: Vec<Vec<usize>>,
    order: Vec<usize>,
}

impl StreamGraph {
    /// A graph of named streams, each with the names of those it runs after, in any order.
    ///
    /// # Errors
    ///
    /// If two streams have one name, a name is not declared, or streams wait for each other.
    pub fn new<'a>(streams: impl IntoIterator<Item = (&'a str, Vec<&'a str>)>) -> Result<Self, GraphError> {
        let declared: Vec<(&str, Vec<&str>)> = streams.into_iter().collect();
        let mut index = BTreeMap::new();
        for (position, (name, _)) in declared.iter().enumerate() {
            if index.insert(*name, position).is_some() {
                return Err(GraphError::Duplicate { name: (*name).to_owned() });
            }
        }
        let mut after = Vec::with_capacity(declared.len());
        for (stream, names) in &declared {
            let mut known = Vec::with_capacity(names.len());
            for name in names {
                let unknown =
                    || GraphError::Unknown { stream: (*stream).to_owned(), after: (*name).to_owned() };
                known.push(*index.get(name).ok_or_else(unknown)?);
            }
            known.sort_unstable();
            known.dedup();
            after.push(known);
        }
        let names: Vec<String> = declared.iter().map(|(name, _)| (*name).to_owned()).collect();
        let order = order(&after).map_err(|cycle| GraphError::Cycle {
            streams: cycle.iter().map(|&at| names[at].clone()).collect(),
        })?;
        Ok(Self { names, after, order })
    }

    /// The streams, each after all that it depends on.
    pub fn order(&self) -> impl Iterator<Item = &str> {
        self.order.iter().map(|&at| self.names[at].as_str())
    }

    /// The streams that a stream waits for directly; none if it is not in the graph.
    pub fn after(&self, stream: &str) -> impl Iterator<Item = &str> {
        let at = self.names.iter().position(|name| name == stream);
        at.into_iter().flat_map(|at| &self.after[at]).map(|&at| self.names[at].as_str())
    }

    /// All dependencies: (waiting stream, stream waited for), by waiting stream in order of declaration.
    pub fn edges(&self) -> impl Iterator<Item = (&str, &str)> {
        self.after.iter().enumerate().flat_map(move |(waiter, awaited)| {
            awaited.iter().map(move |&at| (self.names[waiter].as_str(), self.names[at].as_str()))
        })
    }
}

/// A topological order, or the streams of a cycle, each after the next one.
fn order(after: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let mut done = vec![false; after.len()];
    let mut order = Vec::with_capacity(after.len());
    while order.len() < after.len() {
        let ready = |&at: &usize| !done[at] && after[at].iter().all(|&other| done[other]);
        let Some(next) = (0..after.len()).find(ready) else { return Err(cycle(after, &done)) };
        done[next] = true;
        order.push(next);
    }
    Ok(order)
}

/// Some cycle among streams that are not done, each of which waits for another such one.
fn cycle(after: &[Vec<usize>], done: &[bool]) -> Vec<usize> {
    let mut path = Vec::new();
    let mut at = done.iter().position(|done| !done).expect("a stream is left");
    while !path.contains(&at) {
        path.push(at);
        at = *after[at].iter().find(|&&other| !done[other]).expect("it waits for one that is left");
    }
    let start = path.iter().position(|&seen| seen == at).expect("the loop ended at it");
    path.split_off(start)
}

#[cfg(test)]
mod tests {
    use super::{GraphError, StreamGraph};
    use proptest::prelude::*;

    fn graph(edges: &[(usize, usize)], count: usize) -> Result<StreamGraph, GraphError> {
        let names: Vec<String> = (0..count).map(|at| format!("s{at}")).collect();
        let after = |at: usize| {
            edges.iter().filter(|edge| edge.0 == at).map(|edge| names[edge.1].as_str()).collect::<Vec<_>>()
        };
        StreamGraph::new(names.iter().enumerate().map(|(at, name)| (name.as_str(), after(at))))
    }

    proptest! {
        #[test]
        fn an_order_or_a_real_cycle(
            count in 1_usize..12, edges in prop::collection::vec((0_usize..12, 0_usize..12), 0..30),
        ) {
            let edges: Vec<_> = edges.into_iter().map(|(a, b)| (a % count, b % count)).collect();
            match graph(&edges, count) {
                Ok(graph) => {
                    let order: Vec<&str> = graph.order().collect();
                    let place = |name: &str| order.iter().position(|known| *known == name).unwrap();
                    prop_assert_eq!(order.len(), count);
                    for (waiter, awaited) in graph.edges() {
                        prop_assert!(place(awaited) < place(waiter));
                    }
                }
                Err(GraphError::Cycle { streams }) => {
                    let at = |name: &String| name[1..].parse::<usize>().unwrap();
                    for (position, stream) in streams.iter().enumerate() {
                        let next = &streams[(position + 1) % streams.len()];
                        prop_assert!(edges.contains(&(at(stream), at(next))), "{:?}", streams);
                    }
                }
                Err(other) => prop_assert!(false, "{}", other),
            }
        }
    }

    #[test]
    fn mistakes_are_named() {
        let unknown = StreamGraph::new([("infer", vec!["preproces"])]).unwrap_err();
        assert!(unknown.to_string().contains("`preproces`, which is not in the graph"));
        let twice = StreamGraph::new([("a", vec![]), ("a", vec![])]).unwrap_err();
        assert!(twice.to_string().starts_with("two streams are named `a`"));
        let own = StreamGraph::new([("a", vec!["a"])]).unwrap_err();
        assert_eq!(own.to_string(), "streams wait for each other: `a` after `a`: leave one of these out");
    }
}
