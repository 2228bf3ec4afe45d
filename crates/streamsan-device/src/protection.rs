//! Page protection of page-locked host memory: an access by the host while a copy is pending faults, and the fault is
//! recorded as the access, through NumPy, ctypes or anything else. Off unless `STREAMSAN_PROTECT` is 1.
//!
//! Page-locked memory then has two mappings. The program has one: while a download to it is pending, the pages allow
//! no access; while an upload from it is pending, no write. Our own copies go through the other one. A copy is
//! pending until the program's host wait covers it. At a fault the access is recorded, the copy's pages are opened,
//! and the program goes on.
//!
//! What the kernel does for the program on such pages does not fault but fails (`EFAULT` of `read(2)` and the like),
//! and a handler for the signal that the program installs between two calls of the runtime is in the way until the
//! next one. That is why it is off by default.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use streamsan_trace::AccessMode;

use crate::call::record;
use crate::readiness::Chain;
use crate::streams::{Stream, with_state};

const PAGE: usize = 4096;

/// Page-locked memory with two mappings.
#[derive(Clone, Copy, Debug)]
struct Shared {
    size: usize,
    /// Where our copies find the bytes.
    view: usize,
}

/// A copy that the host has not waited for.
#[derive(Clone, Copy, Debug)]
struct Pending {
    start: usize,
    end: usize,
    /// A download: the bytes may not even be read.
    hides: bool,
    chain: Chain,
    position: u64,
}

impl Pending {
    fn pages(&self) -> (usize, usize) {
        (self.start / PAGE * PAGE, self.end.next_multiple_of(PAGE))
    }

    fn protection(&self) -> c_int {
        if self.hides { libc::PROT_NONE } else { libc::PROT_READ }
    }
}

#[derive(Debug)]
struct Protection {
    regions: BTreeMap<usize, Shared>,
    pending: Vec<Pending>,
}

static PROTECTION: Mutex<Protection> =
    Mutex::new(Protection { regions: BTreeMap::new(), pending: Vec::new() });
/// How many copies are pending: nothing else is looked at while there are none.
static PENDING: AtomicUsize = AtomicUsize::new(0);

/// Whether pages are protected in this process.
pub fn enabled() -> bool {
    static ENABLED: OnceLock<bool> = OnceLock::new();
    *ENABLED.get_or_init(|| std::env::var_os("STREAMSAN_PROTECT").is_some_and(|value| value == "1"))
}

fn with<T>(work: impl FnOnce(&mut Protection) -> T) -> T {
    let mut protection = PROTECTION.lock().unwrap_or_else(PoisonError::into_inner);
    let answer = work(&mut protection);
    PENDING.store(protection.pending.len(), Ordering::Relaxed);
    answer
}

fn set(start: usize, end: usize, protection: c_int) {
    // SAFETY: whole pages of a mapping made here; what the program may do with them is what this is about.
    unsafe { libc::mprotect(start as *mut c_void, end - start, protection) };
}

/// Page-locked memory with two mappings; the address for the program.
pub fn allocate(size: usize) -> Option<usize> {
    let rounded = size.next_multiple_of(PAGE);
    // SAFETY: a new file without a name, and two new mappings of it at addresses of the system's choice.
    let (start, view) = unsafe {
        let file = libc::memfd_create(c"streamsan".as_ptr(), libc::MFD_CLOEXEC);
        if file < 0 {
            return None;
        }
        let sized = libc::ftruncate(file, libc::off_t::try_from(rounded).ok()?) == 0;
        let map = || {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(ptr::null_mut(), rounded, access, libc::MAP_SHARED, file, 0)
        };
        let maps = if sized { (map(), map()) } else { (libc::MAP_FAILED, libc::MAP_FAILED) };
        libc::close(file);
        maps
    };
    if start == libc::MAP_FAILED || view == libc::MAP_FAILED {
        return None;
    }
    let shared = Shared { size: rounded, view: view as usize };
    with(|protection| protection.regions.insert(start as usize, shared));
    Some(start as usize)
}

/// Gives memory of [`allocate`] back; false if it is not.
pub fn release(start: usize) -> bool {
    let released = with(|protection| {
        let shared = protection.regions.remove(&start)?;
        protection.pending.retain(|pending| pending.end <= start || pending.start >= start + shared.size);
        Some(shared)
    });
    let Some(shared) = released else { return false };
    // SAFETY: both mappings of the region, which its owner gives up.
    unsafe {
        libc::munmap(start as *mut c_void, shared.size);
        libc::munmap(shared.view as *mut c_void, shared.size);
    }
    true
}

/// Where our own copies find these bytes.
pub fn view(address: usize) -> usize {
    if !enabled() {
        return address;
    }
    with(|protection| {
        protection.region(address).map_or(address, |(start, shared)| shared.view + (address - start))
    })
}

/// Whether accesses to these bytes are seen.
pub fn is_watched(address: usize) -> bool {
    enabled() && with(|protection| protection.region(address).is_some())
}

/// A copy on `stream` that does not hold the host reads (or, with `writes`, overwrites) `start..end`.
pub fn copy_is_pending(stream: Stream, start: usize, end: usize, writes: bool) {
    if !enabled() || with(|protection| protection.region(start).is_none()) {
        return;
    }
    let position = with_state(|state| {
        let chain = state.chain(stream);
        Ok((chain, state.readiness.position(chain)))
    });
    let Ok((chain, position)) = position else { return };
    watch_faults();
    with(|protection| protection.add(Pending { start, end, hides: writes, chain, position }));
}

/// After each call of the runtime: opens the pages of copies that the host has waited for.
pub fn after_call() {
    if PENDING.load(Ordering::Relaxed) == 0 {
        return;
    }
    watch_faults();
    let _poisoned_at_worst = with_state(|state| {
        let readiness = &state.readiness;
        with(|protection| protection.open(|pending| readiness.has_passed(pending.chain, pending.position)));
        Ok(())
    });
}

/// The torch layer has recorded what the host is about to do with these bytes, or they have a new owner.
pub fn allow(start: usize, length: usize) {
    if PENDING.load(Ordering::Relaxed) == 0 || length == 0 {
        return;
    }
    let end = start.saturating_add(length);
    with(|protection| {
        protection.open(|pending| pending.start < end && start < pending.end);
        if let Some((first, shared)) = protection.region(start) {
            let stop = end.min(first + shared.size).next_multiple_of(PAGE);
            set(start / PAGE * PAGE, stop, libc::PROT_READ | libc::PROT_WRITE);
        }
    });
}

impl Protection {
    fn region(&self, address: usize) -> Option<(usize, Shared)> {
        let (&start, shared) = self.regions.range(..=address).next_back()?;
        (address - start < shared.size).then_some((start, *shared))
    }

    fn add(&mut self, pending: Pending) {
        self.pending.push(pending);
        let (first, last) = pending.pages();
        self.close(first, last);
    }

    /// Protects pages as the pending copies on them ask: those that hide win.
    fn close(&self, first: usize, last: usize) {
        for hides in [false, true] {
            for pending in self.pending.iter().filter(|pending| pending.hides == hides) {
                let (start, end) = pending.pages();
                let (start, end) = (start.max(first), end.min(last));
                if start < end {
                    set(start, end, pending.protection());
                }
            }
        }
    }

    /// Drops the pending copies for which `done` holds and opens their pages to what the others allow.
    fn open(&mut self, done: impl Fn(&Pending) -> bool) {
        let mut pages = Vec::new();
        self.pending.retain(|pending| {
            let ends = done(pending);
            if ends {
                pages.push(pending.pages());
            }
            !ends
        });
        for (first, last) in pages {
            set(first, last, libc::PROT_READ | libc::PROT_WRITE);
            self.close(first, last);
        }
    }
}

static PREVIOUS: Mutex<Option<libc::sigaction>> = Mutex::new(None);

/// Puts our handler in place, or back in place if the program has installed one since.
fn watch_faults() {
    let mut current = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: asks for the present handler only.
    if unsafe { libc::sigaction(libc::SIGSEGV, ptr::null(), current.as_mut_ptr()) } != 0 {
        return;
    }
    // SAFETY: written by the call above.
    let current = unsafe { current.assume_init() };
    let ours = on_fault as *const () as usize;
    if current.sa_sigaction == ours {
        return;
    }
    *PREVIOUS.lock().unwrap_or_else(PoisonError::into_inner) = Some(current);
    // SAFETY: a handler of the type that SA_SIGINFO asks for, with an empty mask.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = ours;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
        libc::sigaction(libc::SIGSEGV, &raw const action, ptr::null_mut());
    }
}

extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system gives a valid description of the fault.
    let address = unsafe { (*info).si_addr() } as usize;
    // SAFETY: as above; bit 1 of the error code tells a write.
    let writes = unsafe {
        let machine = &(*context.cast::<libc::ucontext_t>()).uc_mcontext;
        machine.gregs[libc::REG_ERR as usize] & 2 != 0
    };
    // SAFETY: the thread's own error number, which the code around the fault must find unchanged.
    let error = unsafe { *libc::__errno_location() };
    if access_at(address, writes) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = error };
        return;
    }
    pass_on(signal, info, context);
}

/// The host touches a byte on a protected page: records it, and opens the page. False if the page is none of ours.
fn access_at(address: usize, writes: bool) -> bool {
    let conflicts = with(|protection| {
        protection.region(address)?;
        let touches = |pending: &Pending| pending.start <= address && address < pending.end;
        let conflicts = protection.pending.iter().any(touches);
        if conflicts {
            protection.open(touches);
        }
        // Another copy may be pending beside it on this page: it is no longer watched.
        let page = address / PAGE * PAGE;
        set(page, page + PAGE, libc::PROT_READ | libc::PROT_WRITE);
        Some(conflicts)
    });
    if conflicts == Some(true) {
        let mode = if writes { AccessMode::Write } else { AccessMode::Read };
        record(|recorder| recorder.memory_access(address as u64, mode));
    }
    conflicts.is_some()
}

/// A fault that is the program's own goes where it would have gone.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let previous = *PREVIOUS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(previous) = previous.filter(|previous| previous.sa_sigaction > libc::SIG_IGN) else {
        // SAFETY: the instruction faults again, and the system ends the process as it would have.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    };
    // SAFETY: the handler that was installed, called as it asked to be.
    unsafe {
        if previous.sa_flags & libc::SA_SIGINFO != 0 {
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                std::mem::transmute(previous.sa_sigaction);
            handler(signal, info, context);
        } else {
            let handler: extern "C" fn(c_int) = std::mem::transmute(previous.sa_sigaction);
            handler(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readiness::{Readiness, StreamKind};

    fn chain() -> Chain {
        Readiness::default().open(0, StreamKind::NonBlocking)
    }

    fn pending(start: usize, end: usize, hides: bool) -> Pending {
        Pending { start, end, hides, chain: chain(), position: 1 }
    }

    /// Lets the system look at a byte: it answers where a program would fault.
    fn may_read(address: usize) -> bool {
        let mut pipe = [0; 2];
        // SAFETY: the pipe is made and closed here; the system checks the address itself.
        unsafe {
            assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
            let written = libc::write(pipe[1], address as *const c_void, 1);
            libc::close(pipe[0]);
            libc::close(pipe[1]);
            written == 1
        }
    }

    fn may_write(address: usize) -> bool {
        let mut pipe = [0; 2];
        let byte = 1_u8;
        // SAFETY: as above.
        unsafe {
            assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
            assert_eq!(libc::write(pipe[1], (&raw const byte).cast(), 1), 1);
            let read = libc::read(pipe[0], address as *mut c_void, 1);
            libc::close(pipe[0]);
            libc::close(pipe[1]);
            read == 1
        }
    }

    #[test]
    fn both_mappings_show_the_same_bytes() {
        let start = allocate(10_000).expect("a mapping");
        let (first, shared) = with(|protection| protection.region(start + 9_999)).expect("known");
        assert_eq!((first, shared.size), (start, 3 * PAGE));
        // SAFETY: both are mappings made above.
        unsafe {
            *((shared.view + 9_999) as *mut u8) = 7;
            assert_eq!(*((start + 9_999) as *const u8), 7);
        }
        assert!(release(start));
        assert!(!release(start));
    }

    #[test]
    fn a_download_hides_its_pages_and_an_upload_keeps_them_from_writes() {
        let start = allocate(4 * PAGE).expect("a mapping");
        // Other tests have copies too.
        let inside = |copy: &Pending| copy.start >= start && copy.end <= start + 4 * PAGE;
        with(|protection| {
            protection.add(pending(start + 100, start + 200, true));
            protection.add(pending(start + 100, start + PAGE + 1, false));
        });
        assert!(!may_read(start), "the download wins on the page of both");
        assert!(may_read(start + PAGE) && !may_write(start + PAGE));
        assert!(may_write(start + 2 * PAGE));
        with(|protection| protection.open(|copy| copy.hides && inside(copy)));
        assert!(may_read(start) && !may_write(start), "the upload is still pending");
        with(|protection| protection.open(inside));
        assert!(may_write(start) && may_write(start + PAGE));
        release(start);
    }

    #[test]
    fn an_access_opens_what_it_conflicts_with() {
        let start = allocate(4 * PAGE).expect("a mapping");
        with(|protection| {
            protection.add(pending(start, start + 64, true));
            protection.add(pending(start + PAGE, start + 3 * PAGE, true));
        });
        assert!(!access_at(start + 100 * PAGE, false), "not ours");
        assert!(access_at(start + 2 * PAGE, false));
        assert!(may_read(start + PAGE) && may_read(start + 2 * PAGE) && !may_read(start));
        assert!(access_at(start + 64, true), "beside the copy");
        assert!(may_read(start));
        assert!(with(|protection| protection.pending.iter().any(|copy| copy.start == start)));
        allow(start, 1);
        assert!(!with(|protection| protection.pending.iter().any(|copy| copy.start == start)));
        release(start);
    }

    #[test]
    fn a_fault_is_an_access_and_the_program_goes_on() {
        let start = allocate(PAGE).expect("a mapping");
        watch_faults();
        with(|protection| protection.add(pending(start, start + 64, true)));
        // SAFETY: memory of this test; the first access faults, and the handler opens the page.
        unsafe {
            *(start as *mut u8) = 9;
            assert_eq!(*(start as *const u8), 9);
        }
        release(start);
    }
}
