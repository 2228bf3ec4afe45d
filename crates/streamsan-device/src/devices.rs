//! How many devices there are, which is current, and calls on a device as a whole.

use std::cell::Cell;
use std::env;
use std::ffi::{c_char, c_int, c_uint};
use std::fs;
use std::sync::{Mutex, OnceLock};

use streamsan_record::{WaitOn, callers::library_at, env as names, with_caller};
use streamsan_trace::HostWaitHow;

use crate::call::{call, give, inquiry, lock, record};
use crate::capture::unsafe_call;
use crate::errors::{Answer, Code};
use crate::streams::with_state;

struct Configuration {
    devices: u32,
    memory: u64,
    page_locked: u64,
}

thread_local! {
    static CURRENT: Cell<u32> = const { Cell::new(0) };
}

/// Most devices one process may show: what torch can index with its one-byte device numbers.
const MOST_DEVICES: u32 = 64;

fn number<T: std::str::FromStr>(name: &str) -> Option<T> {
    env::var(name).ok()?.trim().parse().ok()
}

fn configuration() -> &'static Configuration {
    static CONFIGURATION: OnceLock<Configuration> = OnceLock::new();
    CONFIGURATION.get_or_init(|| {
        let devices = number(names::DEVICE_COUNT).unwrap_or(1).min(MOST_DEVICES);
        let memory = number(names::DEVICE_MEMORY)
            .unwrap_or_else(|| (host_memory() / 2 / u64::from(devices.max(1))) & !0xfff);
        let page_locked = number(names::PAGE_LOCKED_MEMORY).unwrap_or(u64::MAX);
        Configuration { devices, memory, page_locked }
    })
}

/// Memory of this machine, or of the group of processes that it allows us to be.
fn host_memory() -> u64 {
    // SAFETY: both ask the system for a number.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let physical = u64::try_from(pages).unwrap_or(0).saturating_mul(u64::try_from(size).unwrap_or(0));
    let group =
        fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    physical.min(group.unwrap_or(u64::MAX))
}

/// How many devices the machine is to have.
pub fn configured_devices() -> u32 {
    configuration().devices
}

/// How many devices the program sees: no more than `CUDA_VISIBLE_DEVICES` names when it first asks.
pub fn device_count() -> u32 {
    static VISIBLE: OnceLock<u32> = OnceLock::new();
    *VISIBLE.get_or_init(|| {
        let named = env::var("CUDA_VISIBLE_DEVICES").map_or(u32::MAX, |list| named_devices(&list));
        configured_devices().min(named)
    })
}

/// How many devices a list names before its first entry that names none. Which ones does not matter: a script that
/// picks one of many on a shared machine is to run here as well.
fn named_devices(list: &str) -> u32 {
    let names = |entry: &&str| {
        let entry = entry.trim();
        entry.parse::<u32>().is_ok() || entry.starts_with("GPU-") || entry.starts_with("MIG-")
    };
    list.split(',').take_while(names).count() as u32
}

/// Bytes of memory of each device.
pub fn memory_limit() -> u64 {
    configuration().memory
}

/// Bytes of host memory that may be page-locked.
pub fn page_locked_limit() -> u64 {
    configuration().page_locked
}

/// The calling thread's current device.
pub fn current_device() -> u32 {
    CURRENT.try_with(Cell::get).unwrap_or(0)
}

/// The device with this number.
pub fn device(number: c_int) -> Result<u32, Code> {
    u32::try_from(number).ok().filter(|&device| device < device_count()).ok_or(Code::INVALID_DEVICE)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetDeviceCount(count: *mut c_int) -> Code {
    inquiry(|| {
        let devices = device_count();
        // SAFETY: the caller gives a place for the number.
        unsafe { give(count, devices.cast_signed())? };
        if devices == 0 { Err(Code::NO_DEVICE) } else { Ok(()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetDevice(number: *mut c_int) -> Code {
    // SAFETY: the caller gives a place for the number.
    inquiry(|| unsafe { give(number, current_device().cast_signed()) })
}

fn set_current(number: c_int) -> Answer {
    let device = device(number)?;
    let _ = CURRENT.try_with(|current| current.set(device));
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn cudaSetDevice(number: c_int) -> Code {
    call(|| set_current(number))
}

#[unsafe(no_mangle)]
extern "C" fn cudaInitDevice(number: c_int, _flags: c_uint, _more_flags: c_uint) -> Code {
    call(|| device(number).map(|_| ()))
}

#[unsafe(no_mangle)]
extern "C" fn cudaSetDeviceFlags(_flags: c_uint) -> Code {
    // They only choose how the host waits.
    call(|| Ok(()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaGetDeviceFlags(flags: *mut c_uint) -> Code {
    // SAFETY: the caller gives a place for the flags.
    call(|| unsafe { give(flags, 0) })
}

/// CUDA's version of the interface that is offered: 13.0.
pub const VERSION: c_int = 13_000;

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaDriverGetVersion(version: *mut c_int) -> Code {
    // SAFETY: the caller gives a place for the number.
    inquiry(|| unsafe { give(version, VERSION) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaRuntimeGetVersion(version: *mut c_int) -> Code {
    // SAFETY: the caller gives a place for the number.
    inquiry(|| unsafe { give(version, VERSION) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) -> Code {
    call(|| {
        for (place, value) in [(least, 0), (greatest, crate::streams::GREATEST_PRIORITY)] {
            if !place.is_null() {
                // SAFETY: the caller gives a place for the number.
                unsafe { give(place, value)? };
            }
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaDeviceGetPCIBusId(text: *mut c_char, length: c_int, number: c_int) -> Code {
    call(|| {
        let name = format!("0000:{:02x}:00.0", device(number)? + 1);
        if text.is_null() || usize::try_from(length).is_ok_and(|length| length <= name.len()) || length < 0 {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller's buffer has `length` bytes, more than the name.
        unsafe {
            std::ptr::copy_nonoverlapping(name.as_ptr().cast(), text, name.len());
            text.add(name.len()).write(0);
        }
        Ok(())
    })
}

/// Which device may reach which other's memory.
static PEERS: Mutex<Vec<(u32, u32)>> = Mutex::new(Vec::new());

/// Whether work of `device` may touch memory of `owner`.
pub fn may_reach(device: u32, owner: u32) -> Result<bool, Code> {
    Ok(device == owner || lock(&PEERS)?.contains(&(device, owner)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cudaDeviceCanAccessPeer(can: *mut c_int, number: c_int, peer: c_int) -> Code {
    call(|| {
        let (own, other) = (device(number)?, device(peer)?);
        // SAFETY: the caller gives a place for the answer.
        unsafe { give(can, c_int::from(own != other)) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceEnablePeerAccess(peer: c_int, flags: c_uint) -> Code {
    call(|| {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let pair = (current_device(), device(peer)?);
        if pair.0 == pair.1 {
            return Err(Code::PEER_ACCESS_UNSUPPORTED);
        }
        let mut peers = lock(&PEERS)?;
        if peers.contains(&pair) {
            return Err(Code::PEER_ACCESS_ALREADY_ENABLED);
        }
        peers.push(pair);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cudaDeviceDisablePeerAccess(peer: c_int) -> Code {
    call(|| {
        let pair = (current_device(), device(peer)?);
        let mut peers = lock(&PEERS)?;
        let index = peers.iter().position(|known| *known == pair).ok_or(Code::PEER_ACCESS_NOT_ENABLED)?;
        peers.swap_remove(index);
        Ok(())
    })
}

extern "C" fn synchronize(caller: usize) -> Code {
    call(|| {
        let target = WaitOn::Device(current_device());
        with_state(|state| state.check_device_wait(current_device()))?;
        unsafe_call()?;
        record(|recorder| recorder.host_wait_begin(target));
        with_state(|state| {
            state.readiness.host_waited_device(current_device());
            Ok(())
        })?;
        crate::delays::before_host()?;
        record(|recorder| recorder.host_waited(target, HostWaitHow::Synchronize, library_at(caller)));
        Ok(())
    })
}
with_caller!(cudaDeviceSynchronize, "rdi", synchronize);

#[unsafe(no_mangle)]
extern "C" fn cudaProfilerStart() -> Code {
    call(|| Ok(()))
}

#[unsafe(no_mangle)]
extern "C" fn cudaProfilerStop() -> Code {
    call(|| Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_existing_devices_become_current() {
        assert_eq!(cudaSetDevice(0), Code::SUCCESS);
        assert_eq!(cudaSetDevice(-1), Code::INVALID_DEVICE);
        assert_eq!(cudaSetDevice(MOST_DEVICES.cast_signed()), Code::INVALID_DEVICE);
        assert_eq!(current_device(), 0);
    }

    #[test]
    fn a_list_names_devices_up_to_its_first_bad_entry() {
        for (list, count) in [("0,1", 2), ("3", 1), ("", 0), ("-1", 0), ("0, 2,-1,3", 2), ("GPU-1f,1", 2)] {
            assert_eq!(named_devices(list), count, "{list:?}");
        }
    }

    #[test]
    fn the_default_limit_is_part_of_the_hosts_memory() {
        assert!(host_memory() > 0);
        assert!(memory_limit() <= host_memory());
    }
}
