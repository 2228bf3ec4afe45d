//! Calls a runtime library, ours or NVIDIA's, and notes what it answers.

use std::env;
use std::ffi::{CStr, CString, c_char, c_void};
use std::fmt::Write as _;

// Links the library under test into this one.
use streamsan_device as _;

#[allow(dead_code, reason = "each test that includes this module uses a part of it")]
/// A runtime library (null: the one under test) and what it has answered so far.
pub struct Probe {
    library: *mut c_void,
    answers: String,
}

/// Address of a place for an answer.
pub fn at<T>(place: &mut T) -> usize {
    (&raw mut *place) as usize
}

#[allow(dead_code, reason = "each test that includes this module uses a part of it")]
impl Probe {
    /// The library under test, or another one to compare it with.
    pub fn open() -> Self {
        let mut library = std::ptr::null_mut();
        if let Ok(path) = env::var("STREAMSAN_CONFORMANCE_LIBRARY") {
            let name = CString::new(path.as_str()).expect("no zero byte");
            // SAFETY: opens a library.
            library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            assert!(!library.is_null(), "cannot open {path}");
        }
        Self { library, answers: String::new() }
    }

    pub fn symbol(&self, function: &str) -> *mut c_void {
        if self.library.is_null() {
            return our_function(function).expect("the function is in the table");
        }
        let name = CString::new(function).expect("no zero byte");
        // SAFETY: looks a name up in an open library.
        let found = unsafe { libc::dlsym(self.library, name.as_ptr()) };
        assert!(!found.is_null(), "{function} is missing");
        found
    }

    /// Calls a function; its arguments are integers and pointers.
    pub fn call(&self, function: &str, arguments: &[usize]) -> i32 {
        let mut all = [0; 7];
        all[..arguments.len()].copy_from_slice(arguments);
        // SAFETY: all functions take integers, pointers and no more than seven of them; the tests below give each
        // what it asks for. Arguments too many are not looked at in C's calling convention.
        unsafe {
            let function: extern "C" fn(usize, usize, usize, usize, usize, usize, usize) -> i32 =
                std::mem::transmute(self.symbol(function));
            function(all[0], all[1], all[2], all[3], all[4], all[5], all[6])
        }
    }

    /// Calls a function and notes its code and the last error after it.
    pub fn note(&mut self, what: &str, function: &str, arguments: &[usize]) -> i32 {
        let code = self.call(function, arguments);
        let last = self.call("cudaGetLastError", &[]);
        writeln!(self.answers, "{function} {what}: {code}, last error {last}").expect("a string grows");
        code
    }

    pub fn note_value(&mut self, what: &str, value: impl std::fmt::Display) {
        writeln!(self.answers, "  {what} {value}").expect("a string grows");
    }

    pub fn text(&self, function: &str, code: i32) -> String {
        // SAFETY: both functions that are asked here take a code and return a constant string.
        unsafe {
            let function: extern "C" fn(i32) -> *const c_char = std::mem::transmute(self.symbol(function));
            CStr::from_ptr(function(code)).to_string_lossy().into_owned()
        }
    }

    /// Compares all answers with those of a GPU; or writes them, on a GPU.
    pub fn compare(&self, expected: &str) {
        if let Ok(path) = env::var("STREAMSAN_CONFORMANCE_WRITE") {
            std::fs::write(&path, &self.answers).expect("the file can be written");
            return;
        }
        let mut differences = String::new();
        for (line, (ours, gpus)) in self.answers.lines().zip(expected.lines()).enumerate() {
            if ours != gpus {
                writeln!(differences, "line {}: {ours:?}, a GPU says {gpus:?}", line + 1)
                    .expect("a string grows");
            }
        }
        assert!(differences.is_empty(), "\n{differences}");
        assert_eq!(self.answers.lines().count(), expected.lines().count());
    }
}

macro_rules! functions {
    ($($name:ident)*) => {
        mod ours {
            // Only their addresses are taken: each is called with the arguments that it has.
            unsafe extern "C" {
                $(pub fn $name();)*
            }
        }

        /// Our function of this name.
        fn our_function(name: &str) -> Option<*mut c_void> {
            match name {
                $(stringify!($name) => Some(ours::$name as *mut c_void),)*
                _ => None,
            }
        }
    };
}

functions! {
    cudaDeviceCanAccessPeer
    cudaDeviceDisablePeerAccess
    cudaDeviceEnablePeerAccess
    cudaDeviceGetAttribute
    cudaDeviceGetDefaultMemPool
    cudaDeviceGetPCIBusId
    cudaDeviceGetStreamPriorityRange
    cudaDeviceSynchronize
    cudaEventCreate
    cudaEventCreateWithFlags
    cudaEventDestroy
    cudaEventElapsedTime
    cudaEventQuery
    cudaEventRecord
    cudaEventRecordWithFlags
    cudaEventSynchronize
    cudaFree
    cudaFreeAsync
    cudaFreeHost
    cudaGetDevice
    cudaGetDeviceCount
    cudaGetDeviceProperties
    cudaGetErrorName
    cudaGetErrorString
    cudaGetLastError
    cudaGraphAddEmptyNode
    cudaGraphDestroy
    cudaGraphExecDestroy
    cudaGraphExecUpdate
    cudaGraphGetEdges
    cudaGraphGetNodes
    cudaGraphGetRootNodes
    cudaGraphInstantiateWithFlags
    cudaGraphLaunch
    cudaGraphNodeGetDependencies
    cudaGraphNodeGetType
    cudaGraphRetainUserObject
    cudaHostAlloc
    cudaHostGetDevicePointer
    cudaHostGetFlags
    cudaHostRegister
    cudaHostUnregister
    cudaLaunchHostFunc
    cudaMalloc
    cudaMallocAsync
    cudaMemGetInfo
    cudaMemPoolGetAttribute
    cudaMemcpy
    cudaMemcpy2D
    cudaMemcpyAsync
    cudaMemcpyPeer
    cudaMemcpyPeerAsync
    cudaMemset
    cudaMemset2D
    cudaMemsetAsync
    cudaPointerGetAttributes
    cudaSetDevice
    cudaStreamBeginCapture
    cudaStreamCreate
    cudaStreamCreateWithFlags
    cudaStreamCreateWithPriority
    cudaStreamDestroy
    cudaStreamEndCapture
    cudaStreamGetCaptureInfo
    cudaStreamGetDevice
    cudaStreamGetFlags
    cudaStreamGetPriority
    cudaStreamIsCapturing
    cudaStreamQuery
    cudaStreamSynchronize
    cudaStreamWaitEvent
    cudaThreadExchangeStreamCaptureMode
    cudaUserObjectCreate
    cudaUserObjectRelease
}
