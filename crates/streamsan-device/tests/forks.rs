//! A forked child of a process that has used the device is refused, at once, whatever the parent's threads were at.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

// Links the library under test into this one.
use streamsan_device as _;

unsafe extern "C" {
    fn cudaMalloc(pointer: *mut usize, size: usize) -> i32;
    fn cudaFree(pointer: usize) -> i32;
    fn cudaStreamSynchronize(stream: u64) -> i32;
    fn cudaGetLastError() -> i32;
    fn cudaHostAlloc(pointer: *mut usize, size: usize, flags: u32) -> i32;
    fn cudaMemcpyAsync(to: usize, from: usize, size: usize, kind: i32, stream: u64) -> i32;
}

/// `cudaErrorInitializationError`.
const REFUSED: i32 = 3;
/// How long a child may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a forked child leaves with.
fn in_child(work: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child makes calls that take no lock and allocate nothing, and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no child");
    if child == 0 {
        let code = work();
        // SAFETY: leaves.
        unsafe { libc::_exit(code) };
    }
    let since = Instant::now();
    let mut status = 0;
    // SAFETY: a place for the status.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if since.elapsed() > PATIENCE {
            // SAFETY: a child of our own that has not been waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
            panic!("the child hangs");
        }
        thread::sleep(Duration::from_millis(1));
    }
    assert!(libc::WIFEXITED(status), "the child ended with status {status}");
    libc::WEXITSTATUS(status)
}

/// The code of a child's first call, or 100 if the calls disagree.
fn code_in_child() -> i32 {
    in_child(|| {
        let mut pointer = 0;
        // SAFETY: a place for the pointer.
        let codes =
            unsafe { [cudaMalloc(&raw mut pointer, 64), cudaStreamSynchronize(0), cudaGetLastError()] };
        if codes.iter().all(|code| *code == codes[0]) { codes[0] } else { 100 }
    })
}

/// Protects all page-locked memory; before its first use.
fn protect() {
    // SAFETY: both tests set the same before they ask the library for anything, and nothing else reads it.
    unsafe { std::env::set_var("STREAMSAN_PROTECT", "1") };
}

#[test]
fn a_child_reads_and_writes_while_other_threads_protect_memory() {
    const SIZE: usize = 1 << 14;
    protect();
    let (mut device, mut host) = (0, 0);
    // SAFETY: places for the pointers.
    unsafe {
        assert_eq!(cudaMalloc(&raw mut device, SIZE), 0);
        assert_eq!(cudaHostAlloc(&raw mut host, SIZE, 0), 0);
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // SAFETY: memory of these sizes.
                unsafe {
                    cudaMemcpyAsync(host, device, SIZE, 2, 0);
                    cudaStreamSynchronize(0);
                }
            }
        });
        let codes: Vec<i32> = (0..200)
            .map(|_| {
                in_child(|| {
                    let mut pipe = [0; 2];
                    // SAFETY: a pipe made here; the memory is not protected in a child.
                    unsafe {
                        let made = libc::pipe(pipe.as_mut_ptr()) == 0;
                        let wrote = libc::write(pipe[1], host as *const libc::c_void, 64) == 64;
                        let read = libc::read(pipe[0], host as *mut libc::c_void, 64) == 64;
                        i32::from(made && wrote && read) + cudaStreamSynchronize(0)
                    }
                })
            })
            .collect();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(codes, vec![1 + REFUSED; 200]);
    });
}

#[test]
fn a_child_is_refused_while_other_threads_are_inside_calls() {
    protect();
    let mut pointer = 0;
    // SAFETY: a place for the pointer, and a pointer of the library's.
    unsafe {
        assert_eq!(cudaMalloc(&raw mut pointer, 64), 0);
        assert_eq!(cudaFree(pointer), 0);
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let mut pointer = 0;
                    // SAFETY: as above.
                    unsafe {
                        cudaMalloc(&raw mut pointer, 64);
                        cudaFree(pointer);
                        cudaStreamSynchronize(0);
                    }
                }
            });
        }
        let codes: Vec<i32> = (0..50).map(|_| code_in_child()).collect();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(codes, vec![REFUSED; 50]);
    });
    // SAFETY: as above.
    unsafe {
        assert_eq!(cudaMalloc(&raw mut pointer, 64), 0, "the parent goes on");
        assert_eq!(cudaFree(pointer), 0);
    }
}
