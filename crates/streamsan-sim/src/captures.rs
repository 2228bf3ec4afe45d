//! Captures of graphs: which steps become nodes, and which nodes each comes after.
//!
//! As CUDA does it ("Creating a graph using stream capture", CUDA programming guide): a capturing stream has a set
//! of nodes that its next one comes after; a record keeps that set, a wait adds the record's set to it, and a
//! stream joins the capture by such a wait. At the end everything has to be joined to the stream in which the
//! capture began. Nothing is combined further: an edge is an edge.

use crate::program::{Action, Program, StreamKind, Target};

/// A node of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// The step that captured it.
    pub(crate) step: usize,
    /// The nodes of the graph that it comes right after.
    pub(crate) after: Vec<usize>,
}

/// The captures of a program, step by step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Captures {
    /// By graph, its nodes in the order of their capture.
    pub(crate) nodes: Vec<Vec<Node>>,
    /// By graph, the stream in which it is captured, and whether that has ended.
    origins: Vec<Option<(usize, bool)>>,
    /// By stream, the graph that it captures and the nodes that its next one comes after.
    capturing: Vec<Option<(usize, Vec<usize>)>>,
    /// By event, what its last record stands for, if that was captured.
    records: Vec<Option<(usize, Vec<usize>)>>,
    /// Steps that belong to a capture: they put nothing into a queue.
    pub(crate) inside: Vec<bool>,
}

impl Captures {
    /// The captures of a whole program. `None` if it has none.
    pub(crate) fn of(program: &Program) -> Option<Self> {
        if program.graphs.is_empty() {
            return None;
        }
        let mut captures = Self::default();
        for step in &program.steps {
            // The parser has checked it; what is wrong in a program made by hand is no part of a graph.
            let _ = captures.step(program, &step.action);
        }
        Some(captures)
    }

    /// Whether a step of the program is inside a capture.
    pub(crate) fn is_inside(captures: Option<&Self>, step: usize) -> bool {
        captures.is_some_and(|captures| captures.inside.get(step).copied().unwrap_or(false))
    }

    /// Takes the next step of the program, or says why CUDA would refuse it.
    pub(crate) fn step(&mut self, program: &Program, action: &Action) -> Result<(), String> {
        self.nodes.resize_with(program.graphs.len(), Vec::new);
        self.origins.resize(program.graphs.len(), None);
        self.capturing.resize_with(program.streams.len(), || None);
        self.records.resize_with(program.events.len(), || None);
        let step = self.inside.len();
        let inside = self.take(program, action, step);
        self.inside.push(matches!(inside, Ok(true)));
        inside.map(drop)
    }

    fn take(&mut self, program: &Program, action: &Action, step: usize) -> Result<bool, String> {
        let event_name = |event: usize| &program.events[event];
        match *action {
            Action::Capture { stream, graph } => self.begin(program, stream, graph),
            Action::EndCapture { stream, graph } => self.end(program, stream, graph),
            Action::Replay { stream, graph } => {
                self.outside(program, stream)?;
                let name = &program.graphs[graph];
                match self.origins[graph] {
                    Some((_, true)) => Ok(false),
                    Some((_, false)) => Err(format!("the capture of `{name}` has not ended")),
                    None => Err(format!("graph `{name}` was not captured: add `S: capture {name}` above")),
                }
            }
            Action::Operation { stream, .. } => match &mut self.capturing[stream] {
                Some((graph, after)) => {
                    let nodes = &mut self.nodes[*graph];
                    let after = std::mem::replace(after, vec![nodes.len()]);
                    nodes.push(Node { step, after });
                    Ok(true)
                }
                None => self.default_stream(program, stream),
            },
            Action::Record { stream, event } => {
                self.records[event] = self.capturing[stream].clone();
                if self.records[event].is_some() { Ok(true) } else { self.default_stream(program, stream) }
            }
            Action::Wait { stream, event } => {
                let name = event_name(event);
                match (self.records[event].clone(), &mut self.capturing[stream]) {
                    (None, None) => self.default_stream(program, stream),
                    (None, Some(_)) => Err(format!(
                        "`{name}` is not recorded in the capture: CUDA refuses to let a graph wait for it"
                    )),
                    (Some((graph, _)), _) if self.origins[graph].is_none_or(|(_, ended)| ended) => {
                        Err(format!("`{name}` was recorded in a capture, which has ended: record it again"))
                    }
                    (Some((graph, after)), Some((own, known))) if *own == graph => {
                        known.extend(after);
                        known.sort_unstable();
                        known.dedup();
                        Ok(true)
                    }
                    (Some(_), Some(_)) => Err(format!("`{name}` was recorded in another capture")),
                    (Some(_), None) if program.streams[stream].kind == StreamKind::LegacyDefault => {
                        Err("the legacy default stream cannot be captured".to_owned())
                    }
                    (Some(record), joining @ None) => {
                        *joining = Some(record);
                        Ok(true)
                    }
                }
            }
            Action::Allocate { buffer } => {
                let owner = program.buffers[buffer].owner().unwrap_or(0);
                if self.capturing[owner].is_some() {
                    return Err("allocations in a capture are not in the language".to_owned());
                }
                Ok(false)
            }
            Action::Synchronize { target } | Action::Query { target, .. } => {
                let captured = match target {
                    Target::Stream(stream) => self.capturing[stream].is_some(),
                    Target::Event(event) => self.records[event].is_some(),
                    Target::Device => self.capturing.iter().any(Option::is_some),
                };
                if captured { Err("CUDA refuses this call while it captures".to_owned()) } else { Ok(false) }
            }
            Action::Free { .. } | Action::RecordStream { .. } | Action::HostAccess { .. } => Ok(false),
        }
    }

    fn begin(&mut self, program: &Program, stream: usize, graph: usize) -> Result<bool, String> {
        let name = &program.graphs[graph];
        self.outside(program, stream)?;
        if self.origins[graph].is_some() {
            return Err(format!("graph `{name}` was captured before: use another name"));
        }
        if program.streams[stream].kind == StreamKind::LegacyDefault {
            return Err("the legacy default stream cannot be captured".to_owned());
        }
        self.origins[graph] = Some((stream, false));
        self.capturing[stream] = Some((graph, Vec::new()));
        Ok(true)
    }

    fn end(&mut self, program: &Program, stream: usize, graph: usize) -> Result<bool, String> {
        let name = &program.graphs[graph];
        if self.origins[graph] != Some((stream, false)) {
            return Err(format!("stream `{}` does not capture `{name}`", program.streams[stream].name));
        }
        let mut open = self.capturing[stream].take().map(|(_, after)| after).unwrap_or_default();
        for capturing in &mut self.capturing {
            capturing.take_if(|(other, _)| *other == graph);
        }
        self.origins[graph] = Some((stream, true));
        let nodes = &self.nodes[graph];
        let mut joined = vec![false; nodes.len()];
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut joined[node], true) {
                open.extend(&nodes[node].after);
            }
        }
        match joined.iter().position(|joined| !joined) {
            None => Ok(true),
            Some(node) => Err(format!(
                "line {} is not joined: `{}` has to wait for it before the capture ends",
                program.steps[nodes[node].step].line, program.streams[stream].name
            )),
        }
    }

    fn outside(&self, program: &Program, stream: usize) -> Result<(), String> {
        match &self.capturing[stream] {
            Some((graph, _)) => Err(format!(
                "stream `{}` captures `{}`: end that first",
                program.streams[stream].name, program.graphs[*graph]
            )),
            None => Ok(()),
        }
    }

    /// Work outside a capture; the legacy default stream would have to wait for blocking streams that capture.
    fn default_stream(&self, program: &Program, stream: usize) -> Result<bool, String> {
        let blocking = |(other, capturing): (usize, &Option<_>)| {
            capturing.is_some() && program.streams[other].kind == StreamKind::Blocking
        };
        if program.streams[stream].kind == StreamKind::LegacyDefault
            && self.capturing.iter().enumerate().any(blocking)
        {
            return Err("CUDA refuses the legacy default stream while a blocking stream captures".to_owned());
        }
        Ok(false)
    }
}
