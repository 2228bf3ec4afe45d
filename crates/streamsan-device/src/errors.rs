//! CUDA's error codes, their names, and the last error of each thread.

use std::cell::Cell;
use std::ffi::{CStr, c_char};

/// A code as the runtime's functions return it.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub i32);

/// What the body of a call answers: nothing, or why it failed.
pub type Answer = Result<(), Code>;

macro_rules! codes {
    ($($constant:ident = $value:literal, $name:literal, $text:literal;)*) => {
        impl Code {
            $(#[doc = concat!("`", $name, "`")] pub const $constant: Self = Self($value);)*
        }

        /// Name and text of each code that this library answers.
        const DESCRIPTIONS: &[(i32, &CStr, &CStr)] = &[
            $(($value, to_c(concat!($name, "\0")), to_c(concat!($text, "\0"))),)*
        ];
    };
}

/// A literal that ends in a zero byte, as a C string.
const fn to_c(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("the macro above adds the only zero byte"),
    }
}

codes! {
    SUCCESS = 0, "cudaSuccess", "no error";
    INVALID_VALUE = 1, "cudaErrorInvalidValue", "invalid argument";
    MEMORY_ALLOCATION = 2, "cudaErrorMemoryAllocation", "out of memory";
    INITIALIZATION_ERROR = 3, "cudaErrorInitializationError", "initialization error";
    INVALID_SYMBOL = 13, "cudaErrorInvalidSymbol", "invalid device symbol";
    INVALID_MEMCPY_DIRECTION = 21, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy";
    INVALID_PITCH_VALUE = 12, "cudaErrorInvalidPitchValue", "invalid pitch argument";
    NO_DEVICE = 100, "cudaErrorNoDevice", "no CUDA-capable device is detected";
    INVALID_DEVICE = 101, "cudaErrorInvalidDevice", "invalid device ordinal";
    OPERATING_SYSTEM = 304, "cudaErrorOperatingSystem", "OS call failed or operation not supported on this OS";
    INVALID_RESOURCE_HANDLE = 400, "cudaErrorInvalidResourceHandle", "invalid resource handle";
    ILLEGAL_STATE = 401, "cudaErrorIllegalState",
        "the operation cannot be performed in the present state";
    SYMBOL_NOT_FOUND = 500, "cudaErrorSymbolNotFound", "named symbol not found";
    NOT_READY = 600, "cudaErrorNotReady", "device not ready";
    PEER_ACCESS_UNSUPPORTED = 217, "cudaErrorPeerAccessUnsupported",
        "peer access is not supported between these two devices";
    PEER_ACCESS_ALREADY_ENABLED = 704, "cudaErrorPeerAccessAlreadyEnabled",
        "peer access is already enabled";
    PEER_ACCESS_NOT_ENABLED = 705, "cudaErrorPeerAccessNotEnabled", "peer access has not been enabled";
    HOST_MEMORY_ALREADY_REGISTERED = 712, "cudaErrorHostMemoryAlreadyRegistered",
        "part or all of the requested memory range is already mapped";
    HOST_MEMORY_NOT_REGISTERED = 713, "cudaErrorHostMemoryNotRegistered",
        "pointer does not correspond to a registered memory region";
    ILLEGAL_ADDRESS = 700, "cudaErrorIllegalAddress", "an illegal memory access was encountered";
    LAUNCH_FAILURE = 719, "cudaErrorLaunchFailure", "unspecified launch failure";
    NOT_SUPPORTED = 801, "cudaErrorNotSupported", "operation not supported";
    CAPTURE_UNSUPPORTED = 900, "cudaErrorStreamCaptureUnsupported",
        "operation not permitted when stream is capturing";
    CAPTURE_INVALIDATED = 901, "cudaErrorStreamCaptureInvalidated",
        "operation failed due to a previous error during capture";
    CAPTURE_MERGE = 902, "cudaErrorStreamCaptureMerge",
        "operation would result in a merge of separate capture sequences";
    CAPTURE_UNMATCHED = 903, "cudaErrorStreamCaptureUnmatched",
        "capture was not ended in the same stream as it began";
    CAPTURE_UNJOINED = 904, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work";
    CAPTURE_ISOLATION = 905, "cudaErrorStreamCaptureIsolation",
        "dependency created on uncaptured work in another stream";
    CAPTURE_IMPLICIT = 906, "cudaErrorStreamCaptureImplicit",
        "operation would make the legacy stream depend on a capturing blocking stream";
    CAPTURED_EVENT = 907, "cudaErrorCapturedEvent",
        "operation not permitted on an event last recorded in a capturing stream";
    CAPTURE_WRONG_THREAD = 908, "cudaErrorStreamCaptureWrongThread",
        "attempt to terminate a thread-local capture sequence from another thread";
    GRAPH_UPDATE_FAILURE = 910, "cudaErrorGraphExecUpdateFailure",
        "the graph update was not performed because it included changes which violated constraints \
         specific to instantiated graph update";
    UNKNOWN = 999, "cudaErrorUnknown", "unknown error";
}

thread_local! {
    static LAST: Cell<Code> = const { Cell::new(Code::SUCCESS) };
}

/// Keeps a failure as the thread's last error. Success changes nothing.
pub fn remember(code: Code) {
    if code != Code::SUCCESS {
        // At the end of a thread its error has no reader any more.
        let _ = LAST.try_with(|last| last.set(code));
    }
}

/// The thread's last error; it stays.
pub fn last() -> Code {
    LAST.try_with(Cell::get).unwrap_or(Code::SUCCESS)
}

/// Puts a thread's last error back to what it was.
pub fn restore(code: Code) {
    let _ = LAST.try_with(|last| last.set(code));
}

fn description(code: i32) -> Option<&'static (i32, &'static CStr, &'static CStr)> {
    DESCRIPTIONS.iter().find(|(value, ..)| *value == code)
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetLastError() -> Code {
    LAST.try_with(|last| last.replace(Code::SUCCESS)).unwrap_or(Code::SUCCESS)
}

#[unsafe(no_mangle)]
extern "C" fn cudaPeekAtLastError() -> Code {
    last()
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorName(code: i32) -> *const c_char {
    description(code).map_or(c"unrecognized error code", |(_, name, _)| name).as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorString(code: i32) -> *const c_char {
    description(code).map_or(c"unrecognized error code", |(.., text)| text).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_error_is_read_once_and_success_does_not_clear_it() {
        remember(Code::MEMORY_ALLOCATION);
        remember(Code::SUCCESS);
        assert_eq!(cudaPeekAtLastError(), Code::MEMORY_ALLOCATION);
        assert_eq!(cudaGetLastError(), Code::MEMORY_ALLOCATION);
        assert_eq!(cudaGetLastError(), Code::SUCCESS);
    }

    #[test]
    fn every_code_is_described_once() {
        for (index, (code, ..)) in DESCRIPTIONS.iter().enumerate() {
            assert!(DESCRIPTIONS[index + 1..].iter().all(|(other, ..)| other != code), "{code} twice");
        }
    }
}
