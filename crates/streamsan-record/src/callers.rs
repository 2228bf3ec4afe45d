//! Which shared library a call came from, by its return address.

use std::ffi::{CStr, c_int, c_void};
use std::sync::{PoisonError, RwLock};

use crate::Library;

/// One loaded segment.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: usize,
    end: usize,
    library: Library,
}

/// All executable segments by address, as of the last look.
static RANGES: RwLock<Vec<Range>> = RwLock::new(Vec::new());

/// The library that holds this code address.
pub fn library_at(address: usize) -> Library {
    if let Some(library) = find(&RANGES.read().unwrap_or_else(PoisonError::into_inner), address) {
        return library;
    }
    // The loader's own lock is taken in here, so ours must not be held: a library's constructor may call us
    // with that lock.
    let ranges = loaded();
    let library = find(&ranges, address).unwrap_or(Library::Other);
    *RANGES.write().unwrap_or_else(PoisonError::into_inner) = ranges;
    library
}

fn find(ranges: &[Range], address: usize) -> Option<Library> {
    let after = ranges.partition_point(|range| range.start <= address);
    let range = ranges.get(after.checked_sub(1)?)?;
    (address < range.end).then_some(range.library)
}

fn library_named(path: &str) -> Library {
    let name = path.rsplit('/').next().unwrap_or(path);
    if name.starts_with("libtorch_python") {
        Library::TorchPython
    } else if name.starts_with("libc10_cuda") {
        Library::C10Cuda
    } else if name.starts_with("libtorch_cuda") {
        Library::TorchCuda
    } else {
        Library::Other
    }
}

fn loaded() -> Vec<Range> {
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid record and our own pointer back.
        let (info, ranges) = unsafe { (&*info, &mut *data.cast::<Vec<Range>>()) };
        if info.dlpi_phdr.is_null() {
            return 0;
        }
        let path = if info.dlpi_name.is_null() {
            ""
        } else {
            // SAFETY: a string of the loader's that lives through this call.
            unsafe { CStr::from_ptr(info.dlpi_name) }.to_str().unwrap_or("")
        };
        let library = library_named(path);
        // SAFETY: the loader says how many headers there are.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        for header in
            headers.iter().filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0)
        {
            let start = (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
            ranges.push(Range { start, end: start.wrapping_add(header.p_memsz as usize), library });
        }
        0
    }
    let mut ranges: Vec<Range> = Vec::with_capacity(256);
    // SAFETY: `visit` gets the vector, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut ranges).cast()) };
    ranges.sort_unstable_by_key(|range| range.start);
    ranges
}

/// Exports `$name`, which passes its return address as one more argument (in `$register`, the first that the
/// call leaves free) to `$target`. What that returns, it returns.
#[macro_export]
macro_rules! with_caller {
    ($name:ident, $register:literal, $target:path) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                concat!("mov ", $register, ", [rsp]"),
                "jmp {target}",
                target = sym $target,
            )
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_decide() {
        assert_eq!(library_named("/x/torch/lib/libtorch_python.so"), Library::TorchPython);
        assert_eq!(library_named("/x/torch/lib/libc10_cuda.so"), Library::C10Cuda);
        assert_eq!(library_named("libtorch_cuda_linalg.so"), Library::TorchCuda);
        assert_eq!(library_named("/x/torch/lib/libtorch_cpu.so"), Library::Other);
        assert_eq!(library_named(""), Library::Other);
    }

    #[test]
    fn an_address_belongs_to_the_range_that_holds_it() {
        let ranges = [
            Range { start: 10, end: 20, library: Library::C10Cuda },
            Range { start: 30, end: 40, library: Library::TorchCuda },
        ];
        assert_eq!(find(&ranges, 9), None);
        assert_eq!(find(&ranges, 19), Some(Library::C10Cuda));
        assert_eq!(find(&ranges, 20), None);
        assert_eq!(find(&ranges, 30), Some(Library::TorchCuda));
        assert_eq!(find(&ranges, 40), None);
    }

    #[test]
    fn our_own_code_is_found_among_the_loaded_segments() {
        let here = our_own_code_is_found_among_the_loaded_segments as *const () as usize;
        assert_eq!(find(&loaded(), here), Some(Library::Other));
    }

    extern "C" fn answer_caller(first: usize, caller: usize) -> usize {
        assert_eq!(first, 7);
        caller
    }
    with_caller!(streamsan_test_caller, "rsi", answer_caller);

    #[test]
    fn a_trampoline_passes_the_address_of_its_caller() {
        // SAFETY: the trampoline has the signature of its target less the caller.
        let trampoline: extern "C" fn(usize) -> usize =
            unsafe { std::mem::transmute(streamsan_test_caller as *const ()) };
        let caller = trampoline(7);
        let here = a_trampoline_passes_the_address_of_its_caller as *const () as usize;
        assert!(find(&loaded(), caller).is_some());
        assert!(caller.abs_diff(here) < 1 << 20, "{caller:#x} is far from {here:#x}");
    }
}
