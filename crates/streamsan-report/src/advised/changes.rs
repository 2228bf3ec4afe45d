//! What to change: in words, and in code where all names are known.

use crate::names::Names;
use crate::places::{Location, in_parentheses, locate};
use streamsan_check::{Actor, Advised, Finding, HeldBack, HostWork, Matters, Measured};
use streamsan_trace::{CaptureKind, Log, SiteId, StreamId, VisibleStream};

/// One change to the program.
pub(crate) struct Change<'a> {
    /// For people, with the code if there is any.
    pub(crate) line: String,
    pub(crate) place: Option<Location<'a>>,
    /// What is to be done with the line: `remove`, `replace`, or where code goes: `before`, `after`.
    pub(crate) side: &'static str,
    pub(crate) code: Option<String>,
    verified: Option<bool>,
    /// Whether what was tried is not sure, as something was not seen.
    unseen: bool,
}

impl<'a> Change<'a> {
    pub(crate) fn new(finding: &Finding, advised: &Advised, log: &'a dyn Log, names: &Names<'_>) -> Self {
        let writer = Writer { finding, log, names };
        let (side, words, code) = match &advised.measured {
            Measured::Redundant(_) | Measured::OversizedRecord => ("remove", writer.take_out(), None),
            Measured::PageableCopy { up } => writer.page_locked(*up),
            Measured::HostSync(work) => writer.wait_less(*work, advised.verified),
            Measured::HostSyncForStream { waiter, awaited, names } => {
                writer.stream_instead(*waiter, *awaited, names, advised.verified)
            }
            Measured::Serialising(matters) => writer.event(matters),
            Measured::PinInLoop => (
                "replace",
                "page-lock once, before the loop, and fill the same buffer again; a `DataLoader` does it with"
                    .to_owned(),
                Some("pin_memory=True".to_owned()),
            ),
            Measured::HeldBack(held) => writer.wait_at_free(held, advised.verified),
            Measured::IdlePool { owner, .. } => (
                "after",
                format!("when {} is done, give its memory back", names.stream(*owner)),
                Some("torch.cuda.empty_cache()".to_owned()),
            ),
        };
        let line = match &code {
            Some(code) if code.contains('\n') => format!("{words}:\n{code}"),
            Some(code) => format!("{words}: {code}"),
            None => words,
        };
        let tried = !matches!(
            advised.measured,
            Measured::HostSync(_) | Measured::HostSyncForStream { .. } | Measured::HeldBack(_)
                if advised.verified == Some(false)
        );
        Self {
            line,
            place: locate(log, finding.second.site),
            side,
            code,
            verified: advised.verified.filter(|_| tried),
            unseen: advised.unseen,
        }
    }

    /// Whether it was tried, nothing new appeared, and nothing was left unseen that could need it.
    pub(crate) fn is_verified(&self) -> bool {
        self.verified == Some(true) && !self.unseen
    }

    /// What is known of the change.
    pub(crate) fn standing(&self) -> Option<&'static str> {
        match self.verified {
            Some(true) if self.unseen => Some(
                "not confirmed: not all of this run was seen (\"Not seen\", at the end), and what was not may need this",
            ),
            Some(true) => Some(
                "checked: with the changes of this report the same run has no finding that it does not have now",
            ),
            Some(false) => Some("not confirmed: run again after the change"),
            None => None,
        }
    }
}

/// Which side of the line, words, code.
type Words = (&'static str, String, Option<String>);

struct Writer<'a> {
    finding: &'a Finding,
    log: &'a dyn Log,
    names: &'a Names<'a>,
}

impl Writer<'_> {
    fn shown(&self) -> String {
        locate(self.log, self.finding.second.site).map_or_else(|| "it".to_owned(), |place| place.line())
    }

    fn take_out(&self) -> String {
        let call = if self.log.header().capture == CaptureKind::Sim { "" } else { "the call at " };
        format!("take out {call}{}", self.shown())
    }

    /// The tensor's name in the code, if it has one there.
    fn tensor(&self) -> Option<&str> {
        self.names.block_expression(self.finding.memory?.block)
    }

    fn page_locked(&self, up: bool) -> Words {
        let tensor = self.tensor().unwrap_or("result");
        if up {
            let words = "have the source in page-locked memory before the loop: `DataLoader(..., pin_memory=True)`, or a buffer that is filled again and again, and copy from there";
            return ("replace", words.to_owned(), Some(".to(\"cuda\", non_blocking=True)".to_owned()));
        }
        let code = format!(
            "host = torch.empty_like({tensor}, device=\"cpu\", pin_memory=True)  # once, before the loop\nhost.copy_({tensor}, non_blocking=True)\ndone = torch.cuda.current_stream().record_event()\ndone.synchronize()  # where host is read, if possible a turn later"
        );
        ("replace", "download into page-locked memory, and wait where it is read".to_owned(), Some(code))
    }

    fn wait_less(&self, work: HostWork, verified: Option<bool>) -> Words {
        let tensor = self.tensor();
        match work {
            HostWork::Read => {
                let tensor = tensor.unwrap_or("value");
                let code = format!(
                    "values.append({tensor}.detach())  # in the loop\nvalues = torch.stack(values).tolist()  # after it, or every 100 turns"
                );
                ("replace", "keep the values on the device, and read many at once".to_owned(), Some(code))
            }
            HostWork::Condition => (
                "replace",
                "test it every so many turns only; or a turn later: download it into page-locked memory with `non_blocking=True`, record an event, and read it when the work of the next turn is in the stream"
                    .to_owned(),
                None,
            ),
            HostWork::Download { .. } => self.page_locked(false),
            HostWork::Upload => (
                "replace",
                if verified == Some(true) {
                    "let the copy run behind the host".to_owned()
                } else {
                    "let the copy run behind the host, and wait for an event before its source is written again"
                        .to_owned()
                },
                Some("non_blocking=True".to_owned()),
            ),
            HostWork::ReadBack { .. } => (
                "replace",
                "keep sizes fixed, with `torch.where` or by multiplying with the mask, or read the result back every so many turns only"
                    .to_owned(),
                None,
            ),
            HostWork::Synchronize if verified == Some(true) => (
                "remove",
                format!(
                    "{}: nothing that streamsan saw after it in this run needs it; to measure time, use events (`torch.cuda.Event(enable_timing=True)`) and read them after the loop",
                    self.take_out()
                ),
                None,
            ),
            HostWork::Synchronize | HostWork::Other => (
                "replace",
                "wait only for what the host is about to touch, and a turn later: record an event after it"
                    .to_owned(),
                Some("done = torch.cuda.current_stream().record_event()\ndone.synchronize()".to_owned()),
            ),
        }
    }

    /// A stream waits in place of the host. What could not be tried leaves the host something to wait for.
    fn stream_instead(
        &self,
        waiter: StreamId,
        awaited: StreamId,
        bound: &[VisibleStream],
        verified: Option<bool>,
    ) -> Words {
        let site = self.finding.second.site;
        let words = format!("in place of it let {} wait", self.names.stream(waiter));
        let code = self.expression(bound, site, waiter).zip(self.expression(bound, site, awaited));
        let host = if verified.is_none() {
            ", and the host, where it is about to touch page-locked memory, for an event after the copy"
        } else {
            ""
        };
        match code {
            Some((waiter, awaited)) => {
                ("replace", format!("{words}{host}"), Some(format!("{waiter}.wait_stream({awaited})")))
            }
            None => ("replace", format!("{words} for {}{host}", self.names.stream(awaited)), None),
        }
    }

    fn event(&self, matters: &Matters) -> Words {
        let after =
            locate(self.log, matters.site).map_or_else(|| matters.number.to_string(), |place| place.line());
        let Actor::Stream(waiter) = self.finding.second.actor else {
            return ("replace", format!("record an event after {after}, and wait for that"), None);
        };
        let site = self.finding.second.site;
        let waits = self.expression(&matters.names, site, waiter);
        let awaited = self.expression(&matters.names, site, matters.awaited);
        let words = format!("after {after} record an event, and wait for that at {}", self.shown());
        let code = awaited.zip(waits).filter(|_| self.same_function(matters.site, site)).map(|(awaited, waits)| {
            format!(
                "matters = {awaited}.record_event()  # after {after}\n{waits}.wait_event(matters)  # at {}",
                self.shown()
            )
        });
        ("replace", words, code)
    }

    fn wait_at_free(&self, held: &HeldBack, verified: Option<bool>) -> Words {
        let (owner, user) = (self.names.stream(held.owner), self.names.stream(held.user));
        if verified != Some(true) {
            let words = format!(
                "keep the host from running ahead: record an event in {user} after each turn, and let the host wait for that of two turns ago"
            );
            let stream = self.expression(&held.names, held.free_site, held.user);
            let stream = stream.unwrap_or_else(|| "torch.cuda.current_stream()".to_owned());
            let code = format!(
                "turns.append({stream}.record_event())\nif len(turns) > 2:\n    turns.pop(0).synchronize()"
            );
            return ("after", words, Some(code));
        }
        let place = in_parentheses(self.log, held.free_site).replace('(', "(at ");
        let words =
            format!("take out the call; before the tensor is freed{place}, let {owner} wait for {user}");
        let waiter = self.expression(&held.names, held.free_site, held.owner);
        let awaited = self.expression(&held.names, held.free_site, held.user);
        let code = waiter.zip(awaited).map(|(waiter, awaited)| format!("{waiter}.wait_stream({awaited})"));
        ("replace", words, code)
    }

    /// Whether the user's code at both sites can have a local variable in common.
    fn same_function(&self, one: SiteId, other: SiteId) -> bool {
        let tables = self.log.tables();
        let function = |site| tables.user_frame(site).map(|(_, frame)| (frame.file, frame.function));
        function(one).is_some_and(|named| function(other) == Some(named))
    }

    /// A stream in the user's innermost frame of a site.
    fn expression(&self, bound: &[VisibleStream], site: SiteId, stream: StreamId) -> Option<String> {
        if self.log.header().capture == CaptureKind::Sim {
            return None;
        }
        if self.names.legacy_default(stream).is_some() {
            return Some(format!("torch.cuda.default_stream({})", self.names.device_argument(stream)));
        }
        let (frame, _) = self.log.tables().user_frame(site)?;
        self.names.expression(bound, frame, stream).map(str::to_owned)
    }
}
