//! The system allows a process only so many mappings: page protection uses some of them, and not all.

// Links the library under test into this one.
use streamsan_device as _;

unsafe extern "C" {
    fn cudaHostAlloc(pointer: *mut usize, size: usize, flags: u32) -> i32;
    fn cudaFreeHost(pointer: usize) -> i32;
}

#[test]
fn page_locked_memory_does_not_use_up_the_mappings() {
    // SAFETY: before the library is asked for anything, in the only test here.
    unsafe { std::env::set_var("STREAMSAN_PROTECT", "1") };
    let mut pointers = Vec::new();
    for index in 0..40_000 {
        let mut pointer = 0;
        // SAFETY: a place for the pointer.
        assert_eq!(unsafe { cudaHostAlloc(&raw mut pointer, 400, 0) }, 0, "allocation {index}");
        pointers.push(pointer);
    }
    for pointer in pointers {
        // SAFETY: allocated above.
        assert_eq!(unsafe { cudaFreeHost(pointer) }, 0);
    }
}
