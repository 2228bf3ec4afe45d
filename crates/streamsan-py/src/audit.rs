//! Whether the arguments of a call are ordered, asked of the live check.

use pyo3::prelude::*;
use streamsan_check::Question;
use streamsan_cli::live::{Answers, Asked};
use streamsan_record::table::{RawAccess, RawAsker, RawPlace};
use streamsan_trace::{Access, AccessMode, BlockId, ShapeId, SiteId, StreamId, StringId, ThreadId};

use crate::context::capture;
use crate::live::Live;
use crate::table::{intern_text, table};
use crate::tensor::{access, device_index, tell_size};
use crate::torch_functions::current_raw_stream;

/// A tensor, how it is used (`AccessMode` as a number), and whether `record_stream` is to have been called.
type Argument<'py> = (Bound<'py, PyAny>, u32, bool);

/// What is wrong with an argument as (its number, owner and user of memory that is not kept, report).
type Told = (usize, Option<(String, String)>, String);

/// Arguments on one device, for the stream that is current there.
struct Group {
    device: u32,
    stream: u64,
    /// Which argument each access is for, and whether its memory is to be recorded.
    arguments: Vec<(usize, bool)>,
    raw: Vec<RawAccess>,
    places: Vec<RawPlace>,
    asker: RawAsker,
}

impl Group {
    /// Writes what is held back, and finds out where the memory is. Whether any of it is known.
    fn locate(&mut self) -> bool {
        let Some(table) = table() else { return false };
        self.places.resize(self.raw.len(), RawPlace::default());
        // SAFETY: pointer and length are those of `raw`, and `places` is as long.
        self.asker = unsafe {
            (table.question)(
                self.stream,
                self.device,
                self.raw.as_ptr(),
                self.raw.len(),
                self.places.as_mut_ptr(),
            )
        };
        self.places.iter().any(|place| place.known != 0)
    }

    fn accesses(&self) -> Vec<(usize, bool, Access)> {
        let both = self.raw.iter().zip(&self.places).zip(&self.arguments);
        let known = both.filter(|((_, place), _)| place.known != 0);
        known
            .filter_map(|((raw, place), &(argument, recorded))| {
                let mode = AccessMode::from_u8(u8::try_from(raw.mode).ok()?)?;
                let access = Access {
                    block: BlockId(place.block),
                    mode,
                    offset: place.offset,
                    length: raw.length,
                    shape: ShapeId(raw.shape),
                    argument: StringId(0),
                };
                Some((argument, recorded, access))
            })
            .collect()
    }
}

/// Asks whether tensors that a call is about to use are ordered for the stream that is current on their device (for
/// page-locked ones: on `device`), at the place of the caller.
///
/// `catch_up(number)` has the check read up to this event, and says whether it could. Returns None if it could not; else
/// what is wrong, and the findings as JSON and as lines.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "arguments from Python are converted to owned values")]
pub fn audit(
    py: Python<'_>,
    live: &Bound<'_, Live>,
    catch_up: &Bound<'_, PyAny>,
    label: &str,
    device: u32,
    arguments: Vec<Argument<'_>>,
) -> PyResult<Option<(Vec<Told>, String, String)>> {
    let mut groups = groups(py, device, &arguments)?;
    groups.retain_mut(Group::locate);
    let Some(last) = groups.iter().map(|group| group.asker.last).max() else {
        return Ok(Some((Vec::new(), String::new(), String::new())));
    };
    let (site, label) = (SiteId(capture(py).site), StringId(intern_text(label)));
    // Also what the groups before the last one announced.
    if !catch_up.call1((last,))?.is_truthy()? {
        return Ok(None);
    }
    let live = live.get();
    let Answers { answers, json, concise } = py.detach(|| {
        let accesses: Vec<_> = groups
            .iter()
            .flat_map(|group| group.accesses().into_iter().map(|one| (group.asker, one)))
            .collect();
        let asked: Vec<Asked<'_>> = accesses
            .iter()
            .map(|(asker, (argument, recorded, access))| Asked {
                argument: *argument,
                recorded: *recorded,
                question: Question {
                    stream: StreamId(asker.stream),
                    thread: ThreadId(asker.thread),
                    site,
                    label,
                    access,
                },
            })
            .collect();
        live.trace().ask(&asked)
    });
    let told = answers.into_iter().map(|answer| (answer.argument, answer.streams, answer.text)).collect();
    Ok(Some((told, json, concise)))
}

fn groups(py: Python<'_>, device: u32, arguments: &[Argument<'_>]) -> PyResult<Vec<Group>> {
    let mut groups: Vec<Group> = Vec::new();
    for (index, (tensor, mode, recorded)) in arguments.iter().enumerate() {
        let on = u32::try_from(device_index(tensor)?).ok();
        // A tensor without plain strided bytes (a sparse one) raises here: nothing is proved of it.
        let Ok(Some(raw)) = access(tensor, *mode, 0) else { continue };
        if on.is_some() {
            tell_size(tensor)?;
        }
        let on = on.unwrap_or(device);
        let known = groups.iter().position(|group| group.device == on);
        let place = known.unwrap_or(groups.len());
        if place == groups.len() {
            let stream = current_raw_stream(py, on)?;
            let (arguments, raw, places) = Default::default();
            groups.push(Group { device: on, stream, arguments, raw, places, asker: RawAsker::default() });
        }
        let group = &mut groups[place];
        group.arguments.push((index, *recorded));
        group.raw.push(raw);
    }
    Ok(groups)
}
