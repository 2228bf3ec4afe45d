//! From a file to a [`Profile`].

use crate::ImportError;
use crate::document::{Document, Sink};
use crate::event::Event;
use crate::guard::{Guard, MARK, Progress};
use crate::names::Names;
use crate::profile::{Call, Frame, Kind, Operation, Profile};
use crate::spans::Span;
use flate2::read::MultiGzDecoder;
use serde::de::DeserializeSeed;
use serde_json::error::Category;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// How many events are kept; each takes up to 56 bytes.
const MOST: usize = 1 << 26;

/// Whether the file looks like JSON, packed or not: a trace of streamsan does not.
///
/// `false` if it cannot be read: whoever reads it next says why.
pub fn is_profile(path: &Path) -> bool {
    let mut start = Vec::new();
    // Devices and pipes can be read once only.
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    if !is_file || File::open(path).and_then(|file| file.take(64).read_to_end(&mut start)).is_err() {
        return false;
    }
    let text = start.strip_prefix(&MARK).unwrap_or(&start);
    start.starts_with(&GZIP) || matches!(text.trim_ascii_start().first(), Some(b'{' | b'['))
}

/// Reads a profile that `torch.profiler` wrote, plain or packed by gzip.
///
/// # Errors
///
/// The file cannot be read, is no such profile, ends too early, is one of a device that is not supported, or has nothing that
/// ran on a GPU.
pub fn read(path: &Path) -> Result<Profile, ImportError> {
    let open = |error: std::io::Error| ImportError::Open(error.to_string());
    let mut file = BufReader::with_capacity(1 << 16, File::open(path).map_err(open)?);
    if file.fill_buf().map_err(open)?.starts_with(&GZIP) {
        return parse(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(file)), true);
    }
    parse(file, false)
}

/// Reads the JSON of a profile.
pub(crate) fn parse(from: impl Read, compressed: bool) -> Result<Profile, ImportError> {
    let progress = Rc::new(Progress::default());
    let mut collector = Collector::default();
    let mut parser = serde_json::Deserializer::from_reader(Guard::new(from, progress.clone()));
    let outcome = Document(&mut collector).deserialize(&mut parser).and_then(|()| parser.end());
    if let Err(error) = outcome {
        let reason = match error.classify() {
            Category::Eof if progress.at() == 0 => "the file is empty".to_owned(),
            Category::Eof => "the file ends in the middle of the profile".to_owned(),
            Category::Io if compressed => format!("it cannot be unpacked: {}", plain(&error)),
            Category::Syntax => format!("no JSON: {}", plain(&error)),
            Category::Io | Category::Data => plain(&error),
        };
        let offset = progress.offset(error.line(), error.column());
        return Err(ImportError::Malformed { reason, offset, compressed });
    }
    collector.finish()
}

/// The message without line and column, which say little of a file of one line.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message).to_owned()
}

/// Sorts events by what they are.
#[derive(Default)]
struct Collector {
    profile: Profile,
    foreign: Option<&'static str>,
}

impl Sink for Collector {
    fn event(&mut self, event: Event) -> Result<(), String> {
        self.profile.events += 1;
        if event.odd {
            self.profile.not_read("(no object)");
            return Ok(());
        }
        if event.arguments.odd {
            self.profile.not_read("(arguments that are no object)");
        }
        // Only what has a duration; flows, marks and names of processes say nothing more.
        if event.phase.0.as_deref() != Some("X") {
            return Ok(());
        }
        let category = event.category.0.as_deref().unwrap_or("");
        let profile = &mut self.profile;
        match category {
            "kernel" | "gpu_memcpy" | "gpu_memset" => {
                let name = event.name.0.as_deref().unwrap_or("");
                let Some(span) = span(&event) else {
                    profile.timeless += 1;
                    return Ok(());
                };
                let kind = match category {
                    "kernel" => Kind::of_kernel(name),
                    "gpu_memset" => Kind::Memset,
                    _ => Kind::of_copy(name),
                };
                let arguments = event.arguments;
                let process = || event.process.0.as_deref().and_then(|process| process.parse().ok());
                profile.operations.push(Operation {
                    span,
                    device: arguments.device.whole().or_else(process).unwrap_or(-1),
                    stream: arguments.stream.whole().unwrap_or(-1),
                    correlation: arguments.correlation.whole().unwrap_or(-1),
                    kind,
                    name: profile.names.id(name),
                    bytes: arguments.bytes.whole().and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0),
                });
            }
            "cuda_runtime" | "cuda_driver" => {
                let name = event.name.0.as_deref().unwrap_or("");
                if name.starts_with("hip") {
                    self.foreign = Some("HIP (ROCm)");
                }
                let Some(span) = span(&event) else {
                    profile.timeless += 1;
                    return Ok(());
                };
                profile.calls.push(Call {
                    span,
                    thread: thread(&event, &mut profile.names),
                    name: profile.names.id(name),
                    correlation: event.arguments.correlation.whole().unwrap_or(-1),
                });
            }
            "cpu_op" | "python_function" | "user_annotation" => {
                let name = event.name.0.as_deref().unwrap_or("");
                let Some(span) = span(&event) else { return Ok(()) };
                if name.starts_with("ProfilerStep#") {
                    profile.steps.push(span);
                } else if category != "user_annotation" {
                    let thread = thread(&event, &mut profile.names);
                    let frame = Frame { span, thread, name: profile.names.id(name) };
                    let frames =
                        if category == "cpu_op" { &mut profile.operators } else { &mut profile.functions };
                    frames.push(frame);
                }
            }
            // Waits stand among the calls already; annotations of devices and the profiler's own work are no work.
            "cuda_sync" | "cuda_event" | "gpu_user_annotation" | "overhead" | "Trace" | "fwdbwd" | "ac2g" => {
            }
            "xpu_runtime" | "xpu_driver" => self.foreign = Some("XPU"),
            "mtia_runtime" | "mtia_ccp_events" => self.foreign = Some("MTIA"),
            other => profile.not_read(other),
        }
        let kept = profile.operations.len()
            + profile.calls.len()
            + profile.operators.len()
            + profile.functions.len()
            + profile.steps.len();
        if kept > MOST {
            return Err(format!("more than {MOST} events: profile fewer steps"));
        }
        Ok(())
    }

    fn device(&mut self, number: i64, name: String) {
        if self.profile.devices.len() < 1000 {
            self.profile.devices.insert(number, name.chars().take(60).collect());
        }
    }
}

impl Collector {
    fn finish(mut self) -> Result<Profile, ImportError> {
        if let Some(foreign) = self.foreign {
            return Err(ImportError::Unsupported(format!(
                "a profile of a {foreign} device: only CUDA is supported"
            )));
        }
        if self.profile.operations.is_empty() {
            return Err(ImportError::Nothing { calls: self.profile.calls.len() as u64 });
        }
        self.profile.sort();
        Ok(self.profile)
    }
}

/// The nanoseconds of an event; `None` if it has no usable time.
fn span(event: &Event) -> Option<Span> {
    let start = nanoseconds(event.start.0?)?;
    let duration = nanoseconds(event.duration.0?)?;
    (duration >= 0).then(|| (start, start + duration))
}

/// Of microseconds. 285 years are enough.
fn nanoseconds(microseconds: f64) -> Option<i64> {
    (microseconds.abs() < 4.0e15).then(|| (microseconds * 1000.0).round() as i64)
}

fn thread(event: &Event, names: &mut Names) -> crate::names::NameId {
    let part = |text: &Option<String>| text.clone().unwrap_or_default();
    names.id(&format!("{}/{}", part(&event.process.0), part(&event.thread.0)))
}
