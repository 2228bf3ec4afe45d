//! Which runtime a call is for, by who makes it.
//!
//! Each exported name is a small piece of machine code that has [`choose`] look at the return address, and goes on to the
//! function of that name with all arguments as they were.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::runtimes::linked;

/// So many places of calls are remembered. A program has some hundred.
const PLACES: usize = 1 << 12;
/// A place of a call is in one of so many neighbours.
const PROBES: usize = 16;
/// Addresses of code have fewer bits; the number of the runtime is above.
const ADDRESS_BITS: u32 = 56;

/// Places of calls, each with the runtime that it is linked with.
static SEEN: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

thread_local! {
    /// The runtime of the call that this thread makes.
    static CHOSEN: Cell<usize> = const { Cell::new(0) };
}

/// The runtime of the call that this thread makes; 0 if it makes none.
pub fn chosen() -> usize {
    CHOSEN.get()
}

/// A call comes from this address.
pub extern "C" fn choose(caller: usize) {
    CHOSEN.set(runtime_at(caller));
}

/// Runs what may make other calls of the runtime in between.
pub fn keeping_choice<T>(body: impl FnOnce() -> T) -> T {
    let chosen = CHOSEN.get();
    let answer = body();
    CHOSEN.set(chosen);
    answer
}

/// Runs what is to ask the first runtime.
pub fn with_first<T>(body: impl FnOnce() -> T) -> T {
    keeping_choice(|| {
        CHOSEN.set(0);
        body()
    })
}

fn runtime_at(caller: usize) -> usize {
    let first = caller ^ caller >> 12;
    let places = (0..PROBES).map(|step| &SEEN[(first + step) % PLACES]);
    let caller = caller as u64;
    for place in places {
        let seen = place.load(Ordering::Relaxed);
        if seen & ((1 << ADDRESS_BITS) - 1) == caller {
            return (seen >> ADDRESS_BITS) as usize;
        }
        if seen == 0 {
            let runtime = linked(caller as usize);
            if runtime < 1 << (u64::BITS - ADDRESS_BITS) && caller >> ADDRESS_BITS == 0 {
                place.store(caller | (runtime as u64) << ADDRESS_BITS, Ordering::Relaxed);
            }
            return runtime;
        }
    }
    linked(caller as usize)
}

/// Machine code that runs `$first` while the arguments in registers are kept on the stack, and then `$then` with all of
/// them as they were. For `$first` the return address is at `[rsp + 56]`, and calls may be made.
macro_rules! keeping_arguments {
    ($($first:expr),*; $($then:expr),*; $($operand:tt)*) => {
        core::arch::naked_asm!(
            "push rdi",
            "push rsi",
            "push rdx",
            "push rcx",
            "push r8",
            "push r9",
            "sub rsp, 8",
            $($first,)*
            "add rsp, 8",
            "pop r9",
            "pop r8",
            "pop rcx",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            $($then,)*
            $($operand)*
        )
    };
}
pub(crate) use keeping_arguments;

/// Machine code that has `choose` look at the caller, and goes on with `$then`.
macro_rules! chosen_by_caller {
    ($($then:expr),*; $($operand:tt)*) => {
        $crate::callers::keeping_arguments!(
            "mov rdi, [rsp + 56]", "call {choose}"; $($then),*;
            choose = sym $crate::callers::choose, $($operand)*
        )
    };
}
pub(crate) use chosen_by_caller;

/// Exports functions under their names. None has arguments in floating point.
macro_rules! exported {
    ($($name:ident)*) => {
        mod exported_names {
            $(
                #[unsafe(no_mangle)]
                #[unsafe(naked)]
                unsafe extern "C" fn $name() {
                    $crate::callers::chosen_by_caller!("jmp {target}"; target = sym super::$name)
                }
            )*
        }
    };
}
pub(crate) use exported;

/// Exports `$name`, which passes its return address as one more argument (in `$register`, the first that the call leaves
/// free) to `$target`. What that returns, it returns.
macro_rules! with_caller {
    ($name:ident, $register:literal, $target:path) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            $crate::callers::chosen_by_caller!(
                concat!("mov ", $register, ", [rsp]"), "jmp {target}"; target = sym $target
            )
        }
    };
}
pub(crate) use with_caller;

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn streamsan_test_eight(
        one: u64,
        two: u64,
        three: u64,
        four: u64,
        five: u64,
        six: u64,
        seven: u64,
        eight: u64,
    ) -> u64 {
        let given = [one, two, three, four, five, six, seven, eight];
        given.into_iter().fold(0, |sum, value| sum * 10 + value)
    }
    exported! { streamsan_test_eight }

    extern "C" fn caller_of(first: u64, caller: usize) -> usize {
        assert_eq!(first, 7);
        caller
    }
    with_caller!(streamsan_test_caller_of, "rsi", caller_of);

    #[test]
    fn all_arguments_arrive_and_the_caller_is_remembered() {
        unsafe extern "C" {
            #[link_name = "streamsan_test_eight"]
            fn eight(_: u64, _: u64, _: u64, _: u64, _: u64, _: u64, _: u64, _: u64) -> u64;
            #[link_name = "streamsan_test_caller_of"]
            fn caller_of(first: u64) -> usize;
        }
        CHOSEN.set(3);
        // SAFETY: the exported functions have these signatures.
        let (sum, caller) = unsafe { (eight(1, 2, 3, 4, 5, 6, 7, 8), caller_of(7)) };
        assert_eq!(sum, 12_345_678);
        assert_eq!(chosen(), 0, "this program has no runtime but perhaps the first");
        let remembered = |seen: &AtomicU64| seen.load(Ordering::Relaxed) == caller as u64;
        assert!(SEEN.iter().any(remembered));
    }

    #[test]
    fn places_of_calls_with_the_same_remainder_are_all_remembered() {
        // Far above what a program has its code at; each of them has the same first place.
        let callers = (1..PROBES).map(|step| (1 << 50) + (step << 30));
        let places: Vec<usize> = callers.clone().map(|caller| (caller ^ caller >> 12) % PLACES).collect();
        assert!(places.iter().all(|&place| place == places[0]), "{places:?}");
        callers.clone().for_each(choose_test);
        for caller in callers {
            let remembered = |seen: &AtomicU64| seen.load(Ordering::Relaxed) == caller as u64;
            assert_eq!(SEEN.iter().filter(|seen| remembered(seen)).count(), 1, "{caller:#x}");
        }
    }

    fn choose_test(caller: usize) {
        choose(caller);
        choose(caller);
    }

    #[test]
    fn what_happens_in_between_changes_no_choice() {
        CHOSEN.set(2);
        assert_eq!(keeping_choice(|| CHOSEN.replace(1)), 2);
        assert_eq!((with_first(chosen), chosen()), (0, 2));
    }
}
