//! What copies mean for the host, by where their bytes lie.

use streamsan_trace::OpKind;

/// Where bytes lie, as far as a copy cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointerKind {
    /// Memory of this device.
    Device(u32),
    /// Page-locked host memory.
    Pinned,
    /// Anything else: ordinary host memory.
    Pageable,
}

impl PointerKind {
    fn is_device(self) -> bool {
        matches!(self, Self::Device(_))
    }
}

/// Which way a copy goes: with unified addresses, the pointers decide.
pub fn copy_kind(destination: PointerKind, source: PointerKind) -> OpKind {
    match (source.is_device(), destination.is_device()) {
        (false, false) => OpKind::CopyHostToHost,
        (false, true) => OpKind::CopyHostToDevice,
        (true, false) => OpKind::CopyDeviceToHost,
        (true, true) => OpKind::CopyDeviceToDevice,
    }
}

/// Whether the host is held until the copy is done. `asynchronous`: the call's name says that it is.
pub fn holds_host(kind: OpKind, destination: PointerKind, source: PointerKind, asynchronous: bool) -> bool {
    let pageable = destination == PointerKind::Pageable || source == PointerKind::Pageable;
    match kind {
        OpKind::CopyDeviceToDevice => false,
        // An upload from pageable memory returns when its source has been staged, which is no order with the
        // copy itself.
        OpKind::CopyHostToDevice => !asynchronous,
        OpKind::CopyHostToHost | OpKind::CopyDeviceToHost => !asynchronous || pageable,
        _ => true,
    }
}

/// What a copy is called if nothing else names it.
pub fn copy_label(kind: OpKind) -> &'static str {
    match kind {
        OpKind::CopyHostToDevice => "memcpy HtoD",
        OpKind::CopyDeviceToHost => "memcpy DtoH",
        OpKind::CopyDeviceToDevice => "memcpy DtoD",
        _ => "memcpy HtoH",
    }
}
