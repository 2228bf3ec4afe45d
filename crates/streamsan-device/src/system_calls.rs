//! Calls by which the system, not the program's own code, reads or writes the program's memory.
//!
//! On a protected page such a call would fail, where the program's own access would fault and be seen. So these stand
//! in front of the C library's: while the call lasts the pages are open, and afterwards what it has touched is told.
//! A thread may be cancelled inside, so nothing here has to be dropped.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use crate::protection::{system_begins, system_ends};

/// How many pieces the system takes in one call.
const MOST_PIECES: usize = 1024;

/// The C library's function of this name.
fn next(name: &CStr, known: &OnceLock<usize>) -> usize {
    // SAFETY: a name that ends in a zero.
    *known.get_or_init(|| unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr().cast::<c_char>()) } as usize)
}

/// The C library's function, of the type that is expected.
macro_rules! next {
    ($name:ident) => {{
        static NEXT: OnceLock<usize> = OnceLock::new();
        let name = concat!(stringify!($name), "\0");
        next(CStr::from_bytes_with_nul(name.as_bytes()).unwrap_or_default(), &NEXT)
    }};
}

/// Does what follows a call, with the error number that the call left.
fn afterwards(work: impl FnOnce()) {
    // SAFETY: the thread's own error number.
    let error = unsafe { *libc::__errno_location() };
    work();
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = error };
}

/// How many bytes a call's answer tells.
fn counted(answer: isize) -> usize {
    usize::try_from(answer).unwrap_or(0)
}

/// The pieces of a call.
///
/// # Safety
///
/// `count` pieces at `pieces`, if that is an address and a number that the system takes.
unsafe fn pieces<'a>(pieces: *const libc::iovec, count: usize) -> &'a [libc::iovec] {
    if pieces.is_null() || count > MOST_PIECES {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(pieces, count) }
}

fn pieces_begin(pieces: &[libc::iovec], writes: bool) {
    for piece in pieces {
        system_begins(piece.iov_base as usize, piece.iov_len, writes);
    }
}

/// The first `touched` bytes of all were touched.
fn pieces_end(pieces: &[libc::iovec], writes: bool, mut touched: usize) {
    for piece in pieces {
        system_ends(piece.iov_base as usize, piece.iov_len, writes, touched);
        touched = touched.saturating_sub(piece.iov_len);
    }
}

/// Calls with a buffer and its size; `$writes` says whether the system writes to the buffer.
macro_rules! pass_on {
    ($($name:ident($($before:ident: $type:ty,)? buffer, size $(, $after:ident: $after_type:ty)*) $writes:literal;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(
            $($before: $type,)? buffer: *mut c_void, size: usize $(, $after: $after_type)*
        ) -> isize {
            type Function =
                unsafe extern "C-unwind" fn($($type,)? *mut c_void, usize $(, $after_type)*) -> isize;
            let address = next!($name);
            system_begins(buffer as usize, size, $writes);
            // SAFETY: the C library's function of this name, with the caller's arguments.
            let answer = unsafe {
                std::mem::transmute::<usize, Function>(address)($($before,)? buffer, size $(, $after)*)
            };
            afterwards(|| system_ends(buffer as usize, size, $writes, counted(answer)));
            answer
        }
    )*};
}

pass_on! {
    read(file: c_int, buffer, size) true;
    write(file: c_int, buffer, size) false;
    pread(file: c_int, buffer, size, offset: i64) true;
    pread64(file: c_int, buffer, size, offset: i64) true;
    pwrite(file: c_int, buffer, size, offset: i64) false;
    pwrite64(file: c_int, buffer, size, offset: i64) false;
    recv(socket: c_int, buffer, size, flags: c_int) true;
    send(socket: c_int, buffer, size, flags: c_int) false;
    recvfrom(socket: c_int, buffer, size, flags: c_int, address: *mut c_void, length: *mut c_uint) true;
    sendto(socket: c_int, buffer, size, flags: c_int, address: *const c_void, length: c_uint) false;
}

/// Calls with pieces of memory.
macro_rules! pass_on_pieces {
    ($($name:ident(file, pieces, count $(, $after:ident: $after_type:ty)*) $writes:literal;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(
            file: c_int, memory: *const libc::iovec, count: c_int $(, $after: $after_type)*
        ) -> isize {
            type Function =
                unsafe extern "C-unwind" fn(c_int, *const libc::iovec, c_int $(, $after_type)*) -> isize;
            let address = next!($name);
            // SAFETY: the caller's arguments.
            let known = unsafe { pieces(memory, usize::try_from(count).unwrap_or(0)) };
            pieces_begin(known, $writes);
            // SAFETY: as above.
            let answer = unsafe {
                std::mem::transmute::<usize, Function>(address)(file, memory, count $(, $after)*)
            };
            afterwards(|| pieces_end(known, $writes, counted(answer)));
            answer
        }
    )*};
}

pass_on_pieces! {
    readv(file, pieces, count) true;
    writev(file, pieces, count) false;
    preadv(file, pieces, count, offset: i64) true;
    preadv64(file, pieces, count, offset: i64) true;
    pwritev(file, pieces, count, offset: i64) false;
    pwritev64(file, pieces, count, offset: i64) false;
    preadv2(file, pieces, count, offset: i64, flags: c_int) true;
    preadv64v2(file, pieces, count, offset: i64, flags: c_int) true;
    pwritev2(file, pieces, count, offset: i64, flags: c_int) false;
    pwritev64v2(file, pieces, count, offset: i64, flags: c_int) false;
}

/// Calls with a message.
macro_rules! pass_on_message {
    ($($name:ident $writes:literal;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(socket: c_int, message: *mut libc::msghdr, flags: c_int) -> isize {
            type Function = unsafe extern "C-unwind" fn(c_int, *mut libc::msghdr, c_int) -> isize;
            let address = next!($name);
            // SAFETY: the caller's message, if there is one.
            let known = unsafe { message.as_ref().map_or(&[][..], |told| pieces(told.msg_iov, told.msg_iovlen)) };
            pieces_begin(known, $writes);
            // SAFETY: as above.
            let answer = unsafe { std::mem::transmute::<usize, Function>(address)(socket, message, flags) };
            afterwards(|| pieces_end(known, $writes, counted(answer)));
            answer
        }
    )*};
}

pass_on_message! {
    recvmsg true;
    sendmsg false;
}

/// Calls with several messages.
macro_rules! pass_on_messages {
    ($($name:ident($($after:ident: $after_type:ty)?) $writes:literal;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(
            socket: c_int, messages: *mut libc::mmsghdr, count: c_uint, flags: c_int $(, $after: $after_type)?
        ) -> c_int {
            type Function = unsafe extern "C-unwind" fn(
                c_int, *mut libc::mmsghdr, c_uint, c_int $(, $after_type)?
            ) -> c_int;
            let address = next!($name);
            let known = if messages.is_null() { 0 } else { (count as usize).min(MOST_PIECES) };
            for index in 0..known {
                // SAFETY: the caller's messages.
                let memory = unsafe {
                    let header = &(*messages.add(index)).msg_hdr;
                    pieces(header.msg_iov, header.msg_iovlen)
                };
                pieces_begin(memory, $writes);
            }
            // SAFETY: as above.
            let answer = unsafe {
                std::mem::transmute::<usize, Function>(address)(socket, messages, count, flags $(, $after)?)
            };
            let passed = usize::try_from(answer).unwrap_or(0);
            afterwards(|| for index in 0..known {
                // SAFETY: as above; the system has told the length of those that it passed.
                unsafe {
                    let message = &*messages.add(index);
                    let touched = if index < passed { message.msg_len as usize } else { 0 };
                    let memory = pieces(message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen);
                    pieces_end(memory, $writes, touched);
                }
            });
            answer
        }
    )*};
}

pass_on_messages! {
    recvmmsg(patience: *mut libc::timespec) true;
    sendmmsg() false;
}

/// Calls of C's files: so many pieces of so many bytes.
macro_rules! pass_on_files {
    ($($name:ident $writes:literal;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name(
            buffer: *mut c_void, size: usize, count: usize, file: *mut c_void
        ) -> usize {
            type Function = unsafe extern "C-unwind" fn(*mut c_void, usize, usize, *mut c_void) -> usize;
            let address = next!($name);
            let length = size.saturating_mul(count);
            system_begins(buffer as usize, length, $writes);
            // SAFETY: as above.
            let answer =
                unsafe { std::mem::transmute::<usize, Function>(address)(buffer, size, count, file) };
            afterwards(|| system_ends(buffer as usize, length, $writes, size.saturating_mul(answer)));
            answer
        }
    )*};
}

pass_on_files! {
    fread true;
    fwrite false;
    fread_unlocked true;
    fwrite_unlocked false;
}
