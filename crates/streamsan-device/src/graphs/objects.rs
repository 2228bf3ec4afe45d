//! User objects: what a program keeps alive as long as a graph or an executable needs it.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;

use crate::call::{call, give};
use crate::errors::{Answer, Code};
use crate::graphs::work::Argument;
use crate::streams::{HostFunction, with_state};

/// `cudaGraphUserObjectMove`: the graph takes the caller's references over.
const MOVE: c_uint = 1;
/// `cudaUserObjectNoDestructorSync`, which has to be given.
const NO_DESTRUCTOR_SYNC: c_uint = 1;

/// Something of the program's, which is destroyed when nothing refers to it any more.
#[derive(Debug)]
pub struct UserObject {
    argument: Argument,
    destroy: HostFunction,
}

impl Drop for UserObject {
    fn drop(&mut self) {
        // SAFETY: the program gave the function and what it is to be called with, once.
        unsafe { (self.destroy)(self.argument.0) };
    }
}

/// References that the program holds itself.
#[derive(Debug)]
pub struct Held {
    object: Arc<UserObject>,
    count: u32,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaUserObjectCreate(
    object: *mut u64,
    pointer: *mut c_void,
    destroy: Option<HostFunction>,
    count: c_uint,
    flags: c_uint,
) -> Code {
    call(|| {
        let destroy = destroy.ok_or(Code::INVALID_VALUE)?;
        if object.is_null() || count == 0 || flags != NO_DESTRUCTOR_SYNC {
            return Err(Code::INVALID_VALUE);
        }
        let made = Arc::new(UserObject { argument: Argument(pointer), destroy });
        let handle = with_state(|state| {
            let handle = state.new_handle();
            state.graphs.objects.insert(handle, Held { object: made, count });
            Ok(handle)
        })?;
        // SAFETY: the caller gives a place for the handle.
        unsafe { give(object, handle) }
    })
}

/// Takes references of the program's away; the last one takes the object out of the table, to be dropped after the lock.
fn release(object: u64, count: u32) -> Answer {
    let _gone = with_state(|state| {
        let held = state.graphs.objects.get_mut(&object).ok_or(Code::INVALID_VALUE)?;
        if count == 0 || count > held.count {
            return Err(Code::INVALID_VALUE);
        }
        held.count -= count;
        Ok(if held.count == 0 { state.graphs.objects.remove(&object) } else { None })
    })?;
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn cudaUserObjectRelease(object: u64, count: c_uint) -> Code {
    call(|| release(object, count))
}

#[unsafe(no_mangle)]
extern "C" fn cudaUserObjectRetain(object: u64, count: c_uint) -> Code {
    call(|| {
        with_state(|state| {
            let held = state.graphs.objects.get_mut(&object).ok_or(Code::INVALID_VALUE)?;
            held.count = held.count.checked_add(count).filter(|_| count > 0).ok_or(Code::INVALID_VALUE)?;
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphRetainUserObject(graph: u64, object: u64, count: c_uint, flags: c_uint) -> Code {
    call(|| {
        if count == 0 || flags & !MOVE != 0 {
            return Err(Code::INVALID_VALUE);
        }
        with_state(|state| {
            let object = Arc::clone(&state.graphs.objects.get(&object).ok_or(Code::INVALID_VALUE)?.object);
            let known = state.graphs.by_handle.get_mut(&graph).ok_or(Code::INVALID_VALUE)?;
            known.objects.extend((0..count).map(|_| Arc::clone(&object)));
            Ok(())
        })?;
        if flags & MOVE == 0 { Ok(()) } else { release(object, count) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaGraphReleaseUserObject(graph: u64, object: u64, count: c_uint) -> Code {
    call(|| {
        let _gone = with_state(|state| {
            let object = Arc::clone(&state.graphs.objects.get(&object).ok_or(Code::INVALID_VALUE)?.object);
            let known = state.graphs.by_handle.get_mut(&graph).ok_or(Code::INVALID_VALUE)?;
            let (gone, kept): (Vec<_>, Vec<_>) =
                std::mem::take(&mut known.objects).into_iter().partition(|other| Arc::ptr_eq(other, &object));
            let kept_back = gone.len().saturating_sub(count as usize);
            known.objects = kept;
            known.objects.extend(gone.iter().take(kept_back).cloned());
            Ok(gone)
        })?;
        Ok(())
    })
}
