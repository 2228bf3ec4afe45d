//! Page protection of page-locked host memory: an access by the host while a copy is pending faults, and the fault is
//! recorded as the access, through NumPy, ctypes or anything else.
//!
//! Page-locked memory has two mappings. The program has one: while a download to it is pending, the pages allow
//! no access; while an upload from it is pending, no write. Our own copies go through the other one. A copy is
//! pending until the program's host wait covers it. At a fault the access is recorded, the copy's pages are opened,
//! and the program goes on. A forked child shares the memory.
//!
//! Protected is memory whose address the program has been given, by `numpy()` or `data_ptr()`: torch's operators say
//! what they touch. With `STREAMSAN_PROTECT=1` it is all page-locked memory, with 0 none.
//!
//! What the kernel does for the program on such pages does not fault but fails (`EFAULT`); `system_calls` keeps them
//! open as long as such a call lasts. A handler for the signal that the program installs between two calls of the runtime is in the way until
//! the next one.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use streamsan_trace::AccessMode;

use crate::call::record;
use crate::readiness::Chain;
use crate::streams::{Stream, with_state};

const PAGE: usize = 4096;

/// How many copies are remembered for memory that is not protected yet, before the oldest is forgotten.
const REMEMBERED: usize = 64;

/// How many pieces of memory may have two mappings: the system allows a process some 65,000 mappings, and protecting
/// pages in their middle makes three of one.
const MOST_REGIONS: usize = 8192;

/// Which page-locked memory is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Nothing,
    /// What the program has the address of.
    GivenAway,
    Everything,
}

/// Page-locked memory with two mappings.
#[derive(Debug)]
struct Shared {
    size: usize,
    /// Where our copies find the bytes.
    view: usize,
    /// Whether its pages are protected.
    watched: bool,
    /// The copies that may be pending when it comes to be.
    unwatched: Vec<Pending>,
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

    /// Another copy of the same bytes in the same stream: the later one is pending for longer.
    fn is_like(&self, other: &Self) -> bool {
        (self.start, self.end, self.hides, self.chain) == (other.start, other.end, other.hides, other.chain)
    }

    fn protection(&self) -> c_int {
        if self.hides { libc::PROT_NONE } else { libc::PROT_READ }
    }
}

/// Bytes that a call to the system is at, which may block: their pages stay open until it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Busy {
    start: usize,
    end: usize,
    /// The system writes them.
    writes: bool,
}

impl Busy {
    /// Whether a copy's protection would make the call fail.
    fn is_refused(&self, copy: &Pending) -> bool {
        copy.hides || self.writes
    }

    fn pages(&self) -> (usize, usize) {
        (self.start / PAGE * PAGE, self.end.next_multiple_of(PAGE))
    }
}

#[derive(Debug)]
struct Protection {
    regions: BTreeMap<usize, Shared>,
    pending: Vec<Pending>,
    busy: Vec<Busy>,
}

static PROTECTION: Mutex<Protection> =
    Mutex::new(Protection { regions: BTreeMap::new(), pending: Vec::new(), busy: Vec::new() });
/// How many copies are pending: nothing else is looked at while there are none.
static PENDING: AtomicUsize = AtomicUsize::new(0);

/// How many pieces of memory have two mappings.
static REGIONS: AtomicUsize = AtomicUsize::new(0);

fn extent() -> Extent {
    static EXTENT: OnceLock<Extent> = OnceLock::new();
    *EXTENT.get_or_init(|| match std::env::var_os("STREAMSAN_PROTECT") {
        Some(value) if value == "1" => Extent::Everything,
        Some(value) if value == "0" => Extent::Nothing,
        _ => Extent::GivenAway,
    })
}

thread_local! {
    /// Whether this thread holds, or waits for, [`PROTECTION`]: a signal handler that interrupts it must do without.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// The lock while this thread forks.
    static FORKING: RefCell<Option<MutexGuard<'static, Protection>>> = const { RefCell::new(None) };
    /// Whether this thread is in a handler that a fault was passed on to.
    static PASSING: Cell<bool> = const { Cell::new(false) };
}

fn with<T>(work: impl FnOnce(&mut Protection) -> T) -> T {
    struct Inside(bool);
    impl Drop for Inside {
        fn drop(&mut self) {
            INSIDE.set(self.0);
        }
    }
    // Dropped after the lock.
    let _inside = Inside(INSIDE.replace(true));
    let mut protection = PROTECTION.lock().unwrap_or_else(PoisonError::into_inner);
    let answer = work(&mut protection);
    PENDING.store(protection.pending.len(), Ordering::Relaxed);
    REGIONS.store(protection.regions.len(), Ordering::Relaxed);
    answer
}

/// Before a fork: the child must not find the lock held by a thread that it does not have.
pub fn before_fork() {
    // From a signal handler that interrupted this thread: the child returns there, too.
    if INSIDE.get() {
        return;
    }
    INSIDE.set(true);
    let guard = PROTECTION.lock().unwrap_or_else(PoisonError::into_inner);
    let _none_at_thread_end = FORKING.try_with(|forking| forking.replace(Some(guard)));
}

/// After a fork, in the parent.
pub fn after_fork_in_parent() {
    if let Ok(Some(guard)) = FORKING.try_with(RefCell::take) {
        drop(guard);
        INSIDE.set(false);
    }
}

/// After a fork, in the child, which has no device: nothing is pending for it.
pub fn after_fork_in_child() {
    if let Ok(Some(mut guard)) = FORKING.try_with(RefCell::take) {
        for (start, end) in guard.pending.iter().map(Pending::pages) {
            set(start, end, libc::PROT_READ | libc::PROT_WRITE);
        }
        guard.pending.clear();
        guard.busy.clear();
        guard.regions.clear();
        PENDING.store(0, Ordering::Relaxed);
        REGIONS.store(0, Ordering::Relaxed);
        drop(guard);
        INSIDE.set(false);
    }
}

/// False if the system refuses: a process has so many mappings and no more.
fn set(start: usize, end: usize, protection: c_int) -> bool {
    // SAFETY: whole pages of a mapping made here; what the program may do with them is what this is about.
    unsafe { libc::mprotect(start as *mut c_void, end - start, protection) == 0 }
}

/// Page-locked memory with two mappings, unless nothing is protected; the address for the program.
pub fn allocate(size: usize) -> Option<usize> {
    if extent() == Extent::Nothing || REGIONS.load(Ordering::Relaxed) >= MOST_REGIONS {
        return None;
    }
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
    let watched = extent() == Extent::Everything;
    let shared = Shared { size: rounded, view: view as usize, watched, unwatched: Vec::new() };
    with(|protection| protection.regions.insert(start as usize, shared));
    Some(start as usize)
}

/// Gives memory of [`allocate`] back; false if it is not.
pub fn release(start: usize) -> bool {
    let released = with(|protection| {
        let shared = protection.regions.remove(&start)?;
        let end = start + shared.size;
        protection.pending.retain(|pending| pending.end <= start || pending.start >= end);
        protection.busy.retain(|busy| busy.end <= start || busy.start >= end);
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
    if REGIONS.load(Ordering::Relaxed) == 0 {
        return address;
    }
    with(|protection| {
        let region = protection.region(address);
        region.map_or(address, |(start, shared)| shared.view + (address - start))
    })
}

/// The program is given the address of this memory. Says whether what it does with it is seen from now on.
pub fn give_away(address: usize) -> bool {
    if REGIONS.load(Ordering::Relaxed) == 0 {
        return false;
    }
    watch_faults();
    let watched = with_state(|state| {
        let readiness = &state.readiness;
        Ok(with(|protection| {
            protection.watch(address, |copy| readiness.has_passed(copy.chain, copy.position))
        }))
    });
    watched.unwrap_or(false)
}

/// A copy on `stream` that does not hold the host reads (or, with `writes`, overwrites) `start..end`.
pub fn copy_is_pending(stream: Stream, start: usize, end: usize, writes: bool) {
    if REGIONS.load(Ordering::Relaxed) == 0 {
        return;
    }
    let noted = with_state(|state| {
        let chain = state.chain(stream);
        let copy = Pending { start, end, hides: writes, chain, position: state.readiness.position(chain) };
        let readiness = &state.readiness;
        Ok(with(|protection| protection.note(copy, |copy| readiness.has_passed(copy.chain, copy.position))))
    });
    if noted == Ok(true) {
        watch_faults();
    }
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
    if REGIONS.load(Ordering::Relaxed) == 0 || length == 0 {
        return;
    }
    let end = start.saturating_add(length);
    let meets = |copy: &Pending| copy.start < end && start < copy.end;
    with(|protection| {
        if let Some((_, shared)) = protection.region_mut(start) {
            shared.unwatched.retain(|copy| !meets(copy));
        }
        if !protection.pending.is_empty() {
            protection.open(meets);
            protection.open_pages(start, end);
        }
    });
}

/// The system begins to read these bytes for the program, or with `writes` to change them: until [`system_ends`], with
/// the same, their pages are open to it.
pub fn system_begins(start: usize, length: usize, writes: bool) {
    // A handler of a signal, within the lock: what it has is no page-locked memory.
    if REGIONS.load(Ordering::Relaxed) == 0 || length == 0 || INSIDE.get() {
        return;
    }
    let busy = Busy { start, end: start.saturating_add(length), writes };
    with(|protection| {
        if protection.region(start).is_none_or(|(_, shared)| !shared.watched) {
            return;
        }
        protection.busy.push(busy);
        let (first, last) = busy.pages();
        let beside =
            |copy: &Pending| busy.is_refused(copy) && copy.pages().0 < last && first < copy.pages().1;
        if protection.pending.iter().any(beside) {
            protection.open_pages(start, busy.end);
        }
    });
}

/// The call to the system that began so has touched the first `touched` of the bytes: records it where a copy is in the
/// way that is pending now.
pub fn system_ends(start: usize, length: usize, writes: bool, touched: usize) {
    if REGIONS.load(Ordering::Relaxed) == 0 || length == 0 || INSIDE.get() {
        return;
    }
    let busy = Busy { start, end: start.saturating_add(length), writes };
    let end = start.saturating_add(touched.min(length));
    let first = with(|protection| {
        let index = protection.busy.iter().position(|known| *known == busy)?;
        protection.busy.swap_remove(index);
        let meets = |copy: &Pending| busy.is_refused(copy) && copy.start < end && start < copy.end;
        let first = protection.pending.iter().filter(|copy| meets(copy)).map(|copy| copy.start).min();
        protection.open(meets);
        let (first_page, last_page) = busy.pages();
        protection.close(first_page, last_page);
        first
    });
    if let Some(first) = first {
        record_access(first.max(start), writes);
    }
}

fn record_access(address: usize, writes: bool) {
    let mode = if writes { AccessMode::Write } else { AccessMode::Read };
    record(|recorder| recorder.memory_access(address as u64, mode));
}

impl Protection {
    fn region(&self, address: usize) -> Option<(usize, &Shared)> {
        let (&start, shared) = self.regions.range(..=address).next_back()?;
        (address - start < shared.size).then_some((start, shared))
    }

    fn region_mut(&mut self, address: usize) -> Option<(usize, &mut Shared)> {
        let (&start, shared) = self.regions.range_mut(..=address).next_back()?;
        (address - start < shared.size).then_some((start, shared))
    }

    /// Protects the memory at an address, for copies too that are pending already. False if it cannot be.
    fn watch(&mut self, address: usize, done: impl Fn(&Pending) -> bool) -> bool {
        let Some((_, shared)) = self.region_mut(address) else { return false };
        shared.watched = true;
        for copy in std::mem::take(&mut shared.unwatched) {
            if !done(&copy) {
                self.add(copy);
            }
        }
        true
    }

    /// A copy begins to be pending. Says whether its pages are protected.
    fn note(&mut self, copy: Pending, done: impl Fn(&Pending) -> bool) -> bool {
        let Some((_, shared)) = self.region_mut(copy.start) else { return false };
        if shared.watched {
            self.add(copy);
            return true;
        }
        let remembered = &mut shared.unwatched;
        remembered.retain(|known| !known.is_like(&copy));
        if remembered.len() >= REMEMBERED {
            remembered.retain(|known| !done(known));
            if remembered.len() >= REMEMBERED {
                remembered.remove(0);
            }
        }
        remembered.push(copy);
        false
    }

    fn add(&mut self, pending: Pending) {
        self.pending.retain(|known| !known.is_like(&pending));
        self.pending.push(pending);
        let (first, last) = pending.pages();
        self.close(first, last);
    }

    /// Opens the pages of these bytes, as far as they are one piece of memory. False if that cannot be.
    fn open_pages(&mut self, start: usize, end: usize) -> bool {
        let Some((first, size)) = self.region(start).map(|(first, shared)| (first, shared.size)) else {
            return false;
        };
        let stop = end.min(first + size).next_multiple_of(PAGE);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        if set(start / PAGE * PAGE, stop, access) {
            return true;
        }
        // A mapping would have been split, of which there are too many. The whole of it needs no more.
        self.pending.retain(|copy| copy.end <= first || copy.start >= first + size);
        set(first, first + size, access)
    }

    /// Protects pages as the pending copies on them ask: those that hide win.
    fn close(&self, first: usize, last: usize) {
        for hides in [false, true] {
            for pending in self.pending.iter().filter(|pending| pending.hides == hides) {
                let (start, end) = pending.pages();
                let (start, end) = (start.max(first), end.min(last));
                if start < end {
                    self.close_for(pending, start, end);
                }
            }
        }
    }

    /// Protects pages for a copy, except where a call to the system would then fail.
    fn close_for(&self, copy: &Pending, mut start: usize, end: usize) {
        while start < end {
            let in_the_way = self.busy.iter().filter(|busy| busy.is_refused(copy)).map(Busy::pages);
            let next = in_the_way.filter(|&(first, last)| first < end && start < last).min();
            let (first, last) = next.unwrap_or((end, end));
            if start < first {
                set(start, first, copy.protection());
            }
            start = last;
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
    // SAFETY: the system gives a valid description of the signal.
    let (address, code) = unsafe { ((*info).si_addr() as usize, (*info).si_code) };
    // SAFETY: as above; bit 1 of the error code tells a write.
    let writes = unsafe {
        let machine = &(*context.cast::<libc::ucontext_t>()).uc_mcontext;
        machine.gregs[libc::REG_ERR as usize] & 2 != 0
    };
    // SAFETY: the thread's own error number, which the code around the fault must find unchanged.
    let error = unsafe { *libc::__errno_location() };
    // Without a fault somebody has sent the signal; within the lock it is none of the program's accesses.
    if code > 0 && !INSIDE.get() && access_at(address, writes) {
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
        protection.open_pages(address, address + 1).then_some(conflicts)
    });
    if conflicts == Some(true) {
        record_access(address, writes);
    }
    conflicts.is_some()
}

/// A fault that is the program's own goes where it would have gone.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let previous = *PREVIOUS.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the system gives a valid description of the signal.
    let sent = unsafe { (*info).si_code } <= 0;
    if sent && previous.is_some_and(|previous| previous.sa_sigaction == libc::SIG_IGN) {
        return;
    }
    // A handler that ends by raising the signal for the one before it means us.
    let again = PASSING.get();
    let handler = previous.filter(|previous| !again && previous.sa_sigaction > libc::SIG_IGN);
    let Some(previous) = handler else {
        // SAFETY: the instruction faults again, or the signal is sent again, and the system ends the process as it
        // would have.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            if sent {
                libc::raise(signal);
            }
        }
        return;
    };
    PASSING.set(true);
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
    PASSING.set(false);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readiness::{Readiness, StreamKind};

    fn chain() -> Chain {
        Readiness::default().open(0, StreamKind::NonBlocking)
    }

    fn pending(start: usize, end: usize, hides: bool) -> Pending {
        // Never passed: tests beside this one make calls, after which what is done is opened.
        Pending { start, end, hides, chain: chain(), position: u64::MAX }
    }

    /// Lets the system look at a byte: it answers where a program would fault. Past `system_calls`, which would open
    /// the page.
    fn may_read(address: usize) -> bool {
        let mut pipe = [0; 2];
        // SAFETY: the pipe is made and closed here; the system checks the address itself.
        unsafe {
            assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
            let written = libc::syscall(libc::SYS_write, pipe[1], address, 1);
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
            let read = libc::syscall(libc::SYS_read, pipe[0], address, 1);
            libc::close(pipe[0]);
            libc::close(pipe[1]);
            read == 1
        }
    }

    #[test]
    fn both_mappings_show_the_same_bytes() {
        let start = allocate(10_000).expect("a mapping");
        let (first, size, view) = with(|protection| {
            let (first, shared) = protection.region(start + 9_999).expect("known");
            (first, shared.size, shared.view)
        });
        assert_eq!((first, size), (start, 3 * PAGE));
        // SAFETY: both are mappings made above.
        unsafe {
            *((view + 9_999) as *mut u8) = 7;
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
    fn memory_is_protected_from_when_its_address_is_given_away() {
        let start = allocate(4 * PAGE).expect("a mapping");
        let copy = pending(start, start + 64, true);
        with(|protection| {
            protection.note(copy, |_| false);
            protection.note(pending(start + PAGE, start + PAGE + 64, true), |_| false);
            protection.note(pending(start + 2 * PAGE, start + 2 * PAGE + 64, false), |_| false);
        });
        assert!(may_read(start), "nobody has the address");
        allow(start + PAGE, 64);
        assert!(with(|protection| protection.watch(start + 5, |copy| !copy.hides)));
        assert!(!may_read(start), "the copy was pending before");
        assert!(may_read(start + PAGE), "the operator said what it does");
        assert!(may_write(start + 2 * PAGE), "that copy was done");
        assert!(with(|protection| protection.note(copy, |_| false)), "and from now on");
        assert_eq!(
            with(|protection| protection.pending.iter().filter(|known| known.is_like(&copy)).count()),
            1
        );
        assert!(!give_away(start + 4 * PAGE), "not ours");
        release(start);
    }

    #[test]
    fn what_is_remembered_has_an_end() {
        let start = allocate(PAGE).expect("a mapping");
        let remember = |at: usize, done: bool| {
            with(|protection| protection.note(pending(start + at, start + at + 1, true), |_| done));
        };
        for at in 0..REMEMBERED + 10 {
            remember(at, false);
        }
        let remembered = || {
            with(|protection| {
                protection
                    .region(start)
                    .expect("known")
                    .1
                    .unwatched
                    .iter()
                    .map(|copy| copy.start - start)
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(remembered(), (10..REMEMBERED + 10).collect::<Vec<_>>());
        remember(REMEMBERED + 10, true);
        assert_eq!(remembered(), [REMEMBERED + 10]);
        release(start);
    }

    #[test]
    fn the_system_finds_open_pages_as_long_as_it_is_at_them() {
        let start = allocate(2 * PAGE).expect("a mapping");
        let count =
            || with(|protection| protection.pending.iter().filter(|copy| copy.start == start).count());
        assert!(with(|protection| protection.watch(start, |_| true)));
        with(|protection| protection.add(pending(start, start + 64, false)));
        system_begins(start, 64, false);
        assert!(!may_write(start), "reading an upload is no conflict");
        system_ends(start, 64, false, 64);
        assert_eq!(count(), 1);

        system_begins(start + 64, 64, true);
        assert!(may_write(start));
        with(|protection| protection.add(pending(start, start + PAGE + 1, true)));
        assert!(
            may_write(start) && !may_read(start + PAGE),
            "a copy that begins meanwhile leaves that page open"
        );
        with(|protection| protection.open(|copy| copy.start == start && copy.hides));
        system_ends(start + 64, 64, true, 64);
        assert!(!may_write(start) && count() == 1, "beside the copy");

        with(|protection| protection.add(pending(start, start + 64, true)));
        system_begins(start, 64, false);
        assert!(may_read(start));
        system_ends(start, 64, false, 0);
        assert!(!may_read(start) && count() == 2, "nothing came");
        system_begins(start, 64, false);
        system_ends(start, 64, false, 1);
        assert!(may_read(start) && !may_write(start) && count() == 1, "the download has been read");
        release(start);
    }

    #[test]
    fn a_handler_within_the_lock_goes_on() {
        let start = allocate(PAGE).expect("a mapping");
        with(|protection| {
            protection.watch(start, |_| true);
        });
        INSIDE.set(true);
        system_begins(start, 1, true);
        system_ends(start, 1, true, 1);
        INSIDE.set(false);
        assert!(!with(|protection| protection.busy.iter().any(|busy| busy.start == start)));
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
