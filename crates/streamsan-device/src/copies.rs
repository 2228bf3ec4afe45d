//! Copies and memsets. The bytes move at once; that they might move later is in the record.

use std::ffi::c_int;

use streamsan_record::{CopyCall, CopyLayout, MemsetCall, PointerKind, copy_label, holds_host};

use crate::call::{call, record};
use crate::capture;
use crate::delays::{self, Late, Source};
use crate::devices::{device, may_reach};
use crate::errors::{Answer, Code};
use crate::graphs::Work;
use crate::pointers::{direction, kind_of};
use crate::protection::copy_is_pending;
use crate::streams::{Stream, enqueue, enqueue_at, host_waited, with_stream};
use crate::transfers::{Fill, Rows, Transfer};

/// One copy as a call asks for it.
struct Request {
    destination: (usize, usize),
    source: (usize, usize),
    rows: Rows,
    requested: c_int,
    stream: u64,
    asynchronous: bool,
}

fn copy(request: &Request) -> Answer {
    let Request { destination, source, rows, .. } = *request;
    if rows.width == 0 || rows.height == 0 {
        // CUDA still looks at the stream.
        return with_stream(request.stream, |_, _| ()).map(|_| ());
    }
    if destination.1 < rows.width || source.1 < rows.width {
        return Err(if rows.height > 1 { Code::INVALID_PITCH_VALUE } else { Code::INVALID_VALUE });
    }
    if destination.0 == 0 || source.0 == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let (to, from) = (kind_of(destination.0)?, kind_of(source.0)?);
    let kind = direction(to, from, request.requested)?;
    rows.check(destination, to).and_then(|()| rows.check(source, from))?;
    let transfer = Transfer { destination, source, rows, to, from, kind };
    if let Some(stream) = capture::add(request.stream, || Work::Copy(transfer))? {
        record_copy(&transfer, stream, false);
        return Ok(());
    }
    let blocking = holds_host(kind, to, from, request.asynchronous);
    let (stream, chain, position) = enqueue_at(request.stream)?;
    record_copy(&transfer, stream, blocking);
    if !blocking && delays::is_on() {
        let source = match from {
            // SAFETY: the program says that these bytes are its own, as for CUDA.
            PointerKind::Pageable => unsafe { delays::staged(source, rows) },
            PointerKind::Device(_) | PointerKind::Pinned => Source::Memory(source.0, source.1),
        };
        delays::put_aside(Late { chain, position, destination, source, rows })?;
    } else {
        delays::before_work_of(stream)?;
        // SAFETY: as above.
        unsafe { transfer.run() };
    }
    if blocking { host_waited(stream) } else { transfer.keep_pages(stream) }
}

fn record_copy(transfer: &Transfer, stream: Stream, blocking: bool) {
    let Transfer { destination, source, rows, kind, .. } = *transfer;
    record(|recorder| {
        let layout = if rows.height == 1 {
            CopyLayout::Linear { bytes: rows.width as u64 }
        } else {
            CopyLayout::Pitched {
                width: rows.width as u64,
                height: rows.height as u64,
                destination_pitch: destination.1 as u64,
                source_pitch: source.1 as u64,
            }
        };
        recorder.copy(&CopyCall {
            stream: stream.handle,
            device: stream.device,
            destination: destination.0 as u64,
            source: source.0 as u64,
            layout,
            kind,
            blocking,
            label: copy_label(kind),
        });
    });
}

fn linear(
    destination: usize,
    source: usize,
    size: usize,
    requested: c_int,
    stream: u64,
    asynchronous: bool,
) -> Answer {
    let rows = Rows { width: size, height: 1 };
    copy(&Request {
        destination: (destination, size),
        source: (source, size),
        rows,
        requested,
        stream,
        asynchronous,
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemcpy(to: usize, from: usize, size: usize, kind: c_int) -> Code {
    call(|| linear(to, from, size, kind, 0, false))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemcpyAsync(to: usize, from: usize, size: usize, kind: c_int, stream: u64) -> Code {
    call(|| linear(to, from, size, kind, stream, true))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemcpyPeer(
    to: usize,
    to_device: c_int,
    from: usize,
    from_device: c_int,
    size: usize,
) -> Code {
    call(|| {
        device(to_device).and(device(from_device))?;
        linear(to, from, size, 4, 0, false)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemcpyPeerAsync(
    to: usize,
    to_device: c_int,
    from: usize,
    from_device: c_int,
    size: usize,
    stream: u64,
) -> Code {
    call(|| {
        device(to_device).and(device(from_device))?;
        linear(to, from, size, 4, stream, true)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemcpy2D(
    to: usize,
    to_pitch: usize,
    from: usize,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
) -> Code {
    call(|| {
        copy(&Request {
            destination: (to, to_pitch),
            source: (from, from_pitch),
            rows: Rows { width, height },
            requested: kind,
            stream: 0,
            asynchronous: false,
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemcpy2DAsync(
    to: usize,
    to_pitch: usize,
    from: usize,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: c_int,
    stream: u64,
) -> Code {
    call(|| {
        copy(&Request {
            destination: (to, to_pitch),
            source: (from, from_pitch),
            rows: Rows { width, height },
            requested: kind,
            stream,
            asynchronous: true,
        })
    })
}

fn set(to: usize, pitch: usize, value: c_int, rows: Rows, stream: u64, asynchronous: bool) -> Answer {
    if rows.width == 0 || rows.height == 0 {
        return with_stream(stream, |_, _| ()).map(|_| ());
    }
    if pitch < rows.width {
        return Err(Code::INVALID_VALUE);
    }
    let kind = kind_of(to)?;
    if kind == PointerKind::Pageable {
        return Err(Code::INVALID_VALUE);
    }
    rows.check((to, pitch), kind)?;
    if let PointerKind::Device(owner) = kind
        && !may_reach(with_stream(stream, |_, _| ())?.0.device, owner)?
    {
        return Err(Code::INVALID_VALUE);
    }
    let fill = Fill { start: to, pitch, value: value.to_le_bytes()[0], rows, kind };
    if let Some(stream) = capture::add(stream, || Work::Fill(fill))? {
        record_fill(&fill, stream, false);
        return Ok(());
    }
    // A memset of device memory never holds the host.
    let blocking = !asynchronous && kind == PointerKind::Pinned;
    let stream = enqueue(stream)?;
    record_fill(&fill, stream, blocking);
    delays::before_work_of(stream)?;
    // SAFETY: the program says that these bytes are its own, as for CUDA.
    unsafe { fill.run() };
    if blocking {
        return host_waited(stream);
    }
    if kind == PointerKind::Pinned {
        copy_is_pending(stream, to, to + rows.extent(pitch)?, true);
    }
    Ok(())
}

fn record_fill(fill: &Fill, stream: Stream, blocking: bool) {
    record(|recorder| {
        recorder.memset(&MemsetCall {
            stream: stream.handle,
            device: stream.device,
            address: fill.start as u64,
            pitch: fill.pitch as u64,
            width: fill.rows.width as u64,
            height: fill.rows.height as u64,
            blocking,
        });
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemset(to: usize, value: c_int, size: usize) -> Code {
    call(|| set(to, size, value, Rows { width: size, height: 1 }, 0, false))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemsetAsync(to: usize, value: c_int, size: usize, stream: u64) -> Code {
    call(|| set(to, size, value, Rows { width: size, height: 1 }, stream, true))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemset2D(
    to: usize,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
) -> Code {
    call(|| set(to, pitch, value, Rows { width, height }, 0, false))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemset2DAsync(
    to: usize,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
    stream: u64,
) -> Code {
    call(|| set(to, pitch, value, Rows { width, height }, stream, true))
}

/// Copies to or from a device variable, whose memory stands behind the address of its host shadow.
fn symbol(shadow: usize, offset: usize, size: usize) -> Result<usize, Code> {
    let variable = crate::registration::variable(shadow)?;
    let end = offset.checked_add(size).ok_or(Code::INVALID_VALUE)?;
    if end > variable.size { Err(Code::INVALID_VALUE) } else { Ok(variable.address + offset) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemcpyToSymbol(
    shadow: usize,
    from: usize,
    size: usize,
    offset: usize,
    kind: c_int,
) -> Code {
    call(|| linear(symbol(shadow, offset, size)?, from, size, kind, 0, false))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaMemcpyFromSymbol(
    to: usize,
    shadow: usize,
    size: usize,
    offset: usize,
    kind: c_int,
) -> Code {
    call(|| linear(to, symbol(shadow, offset, size)?, size, kind, 0, false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{allocate, free};

    #[test]
    fn rows_are_copied_and_the_bytes_between_them_are_not() {
        let memory = allocate(0, 64).expect("the default limit allows it");
        let source: Vec<u8> = (1..=12).collect();
        let from = source.as_ptr() as usize;
        // SAFETY: three rows of two bytes, four apart in the source and five in the destination.
        let code = unsafe { cudaMemcpy2DAsync(memory, 5, from, 4, 2, 3, 1, 0) };
        assert_eq!(code, Code::SUCCESS);
        let mut back = [0xff_u8; 13];
        // SAFETY: as many bytes as the array has.
        let code = unsafe { cudaMemcpy(back.as_mut_ptr() as usize, memory, back.len(), 2) };
        assert_eq!(code, Code::SUCCESS);
        assert_eq!(back, [1, 2, 0, 0, 0, 5, 6, 0, 0, 0, 9, 10, 0]);
        // SAFETY: refused before anything is touched.
        let code = unsafe { cudaMemcpy2D(memory, 1, from, 4, 2, 3, 1) };
        assert_eq!(code, Code::INVALID_PITCH_VALUE);
        assert_eq!(free(memory), Ok(()));
    }

    #[test]
    fn a_memset_touches_its_rows_only() {
        let memory = allocate(0, 64).expect("the default limit allows it");
        // SAFETY: two rows of two bytes in 64 bytes of our own.
        assert_eq!(unsafe { cudaMemset2DAsync(memory, 4, 0x107, 2, 2, 0) }, Code::SUCCESS);
        // SAFETY: our own bytes.
        let bytes = unsafe { std::slice::from_raw_parts(memory as *const u8, 8) };
        assert_eq!(bytes, [7, 7, 0, 0, 7, 7, 0, 0]);
        let mut local = 0_u8;
        // SAFETY: refused: not memory of the device's.
        let code = unsafe { cudaMemset((&raw mut local) as usize, 1, 1) };
        assert_eq!(code, Code::INVALID_VALUE);
        assert_eq!(free(memory), Ok(()));
    }

    #[test]
    fn the_host_is_held_as_by_cuda() {
        use streamsan_trace::OpKind::{CopyDeviceToDevice, CopyDeviceToHost, CopyHostToDevice};
        let device = PointerKind::Device(0);
        let (pinned, pageable) = (PointerKind::Pinned, PointerKind::Pageable);
        assert!(holds_host(CopyDeviceToHost, pageable, device, true));
        assert!(!holds_host(CopyDeviceToHost, pinned, device, true));
        assert!(holds_host(CopyDeviceToHost, pinned, device, false));
        assert!(!holds_host(CopyHostToDevice, device, pageable, true));
        assert!(holds_host(CopyHostToDevice, device, pinned, false));
        assert!(!holds_host(CopyDeviceToDevice, device, device, false));
    }
}
