//! The streams of a graph on a device.

use super::StreamGraph;
use crate::device::Device;
use crate::error::Error;
use crate::stream::Stream;
use std::panic::Location;

/// A stream for each name of a [`StreamGraph`].
///
/// Buffers wait for each other without a graph. A graph adds the order of what is in no buffer: files, counters, the
/// state of a library.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use streamsan_runtime::{CpuOptions, Device, StreamGraph};
/// let graph = StreamGraph::new([("save", vec!["infer"]), ("infer", vec!["load"]), ("load", vec![])])?;
/// let device = Device::cpu(&CpuOptions::default());
/// let mut streams = graph.start(&device)?;
/// let log = Arc::new(Mutex::new(Vec::new()));
/// streams.round(|name, stream| {
///     let (log, name) = (Arc::clone(&log), name.to_owned());
///     stream.operation("note").run(move |_| log.lock().unwrap().push(name))
/// })?;
/// device.synchronize()?;
/// assert_eq!(*log.lock().unwrap(), ["load", "infer", "save"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct GraphStreams {
    device: Device,
    graph: StreamGraph,
    /// In the order of declaration.
    streams: Vec<Stream>,
}

impl StreamGraph {
    /// Makes the streams on a device.
    ///
    /// # Errors
    ///
    /// If the device cannot make one.
    #[track_caller]
    pub fn start(&self, device: &Device) -> Result<GraphStreams, Error> {
        let streams = self.names.iter().map(|name| device.stream(name)).collect::<Result<_, _>>()?;
        Ok(GraphStreams { device: device.clone(), graph: self.clone(), streams })
    }
}

impl GraphStreams {
    /// The stream of a name, if there is one.
    pub fn stream(&self, name: &str) -> Option<&Stream> {
        let at = self.graph.names.iter().position(|known| known == name)?;
        self.streams.get(at)
    }

    /// Calls `submit` for each stream, each after those it depends on. What is submitted to a stream then runs after
    /// everything that was submitted, in this round or before, to the streams that it depends on. Streams do not
    /// wait for the rounds of others: one may be several rounds ahead.
    ///
    /// # Errors
    ///
    /// The first error of `submit`, or that of a wait that cannot be enqueued; the round ends there.
    #[track_caller]
    pub fn round<E: From<Error>>(
        &mut self,
        mut submit: impl FnMut(&str, &Stream) -> Result<(), E>,
    ) -> Result<(), E> {
        let place = Location::caller();
        for &at in &self.graph.order {
            let (shared, stream) = (&self.device.shared, &self.streams[at]);
            let awaited = self.graph.after[at].iter();
            let points = awaited
                .map(|&other| shared.record(self.streams[other].index(), place))
                .collect::<Result<Vec<_>, Error>>()?;
            shared.stream_waits(&mut shared.state(), stream.index(), points, place)?;
            submit(&self.graph.names[at], stream)?;
        }
        Ok(())
    }
}
