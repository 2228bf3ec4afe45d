//! Page-locked host memory: the host's side of a copy.

use crate::backend::{Address, Space};
use crate::buffer::{Memory, Origin, bytes_of, limited};
use crate::device::Device;
use crate::error::Error;
use crate::order::Point;
use crate::sync::held;
use bytemuck::Pod;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use streamsan_trace::AccessMode;

/// `length` elements in page-locked host memory.
///
/// The host gets at them only through [`HostBuffer::read`] and [`HostBuffer::write`], which wait for the copies
/// that are in the way; while the slice lives, the borrow keeps copies from being submitted.
#[derive(Debug)]
pub struct HostBuffer<T> {
    pub(crate) memory: Memory,
    length: usize,
    element: PhantomData<T>,
}

/// Memory could not be registered.
#[derive(Debug)]
pub struct RegisterError<T> {
    /// The memory, as it was.
    pub data: Vec<T>,
    /// Why not.
    pub error: Error,
}

impl<T> fmt::Display for RegisterError<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(formatter)
    }
}

impl<T: fmt::Debug> std::error::Error for RegisterError<T> {}

/// Elements that the host reads.
#[derive(Debug)]
pub struct HostRead<'a, T>(&'a [T]);

/// Elements that the host writes.
#[derive(Debug)]
pub struct HostWrite<'a, T>(&'a mut [T]);

impl<T: Pod> HostBuffer<T> {
    pub(crate) fn new(device: Device, length: usize, place: &Location<'_>) -> Result<Self, Error> {
        let bytes = bytes_of::<T>(length, "page-locked host memory")?;
        let memory = Memory::new(device, Space::Host, None, bytes, place)?;
        Ok(Self { memory, length, element: PhantomData })
    }

    pub(crate) fn register(
        device: Device,
        mut data: Vec<T>,
        place: &Location<'_>,
    ) -> Result<Self, RegisterError<T>>
    where
        T: Send,
    {
        let (length, bytes) = (data.len(), size_of_val(data.as_slice()));
        let address = Address(data.as_mut_ptr().expose_provenance());
        if bytes > 0 {
            // SAFETY: the vector lives until it is unregistered, since it goes where the registration goes.
            if let Err(error) = unsafe { device.shared.backend.register(address, bytes) } {
                return Err(RegisterError { data, error });
            }
        }
        let memory = Memory::registered(device, address, bytes, Box::new(data), place);
        Ok(Self { memory, length, element: PhantomData })
    }

    /// Waits for the copies from and to it, then gives the elements: the vector that was registered, or a copy.
    ///
    /// # Errors
    ///
    /// If a copy failed.
    #[track_caller]
    pub fn into_vec(mut self) -> Result<Vec<T>, Error> {
        let registered = matches!(self.memory.origin, Origin::Registered(_));
        let elements = self.write()?;
        if !registered {
            return Ok(elements.to_vec());
        }
        let memory = &mut self.memory;
        memory.device.shared.unregister(memory.block, memory.address, memory.bytes);
        match std::mem::replace(&mut memory.origin, Origin::Gone) {
            Origin::Registered(data) => data
                .downcast()
                .map(|data| *data)
                .map_err(|_| Error::Unsupported { what: "give a vector of another type back" }),
            _ => Ok(Vec::new()),
        }
    }

    /// Makes it seem to have this many elements, if it has room for them.
    pub(crate) fn limit(&mut self, length: usize) -> Result<(), Error> {
        self.length = limited::<T>(&self.memory, length)?;
        Ok(())
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Waits for the copy that fills it, then gives the elements.
    ///
    /// # Errors
    ///
    /// If the copy failed.
    #[track_caller]
    pub fn read(&self) -> Result<HostRead<'_, T>, Error> {
        let points: Vec<Point> = held(&self.memory.uses).before_read().cloned().collect();
        self.host_access(&points, AccessMode::Read, Location::caller())?;
        // SAFETY: the memory holds `length` elements, of a type for which any bytes are a value; no copy writes to
        // it any more, and none can be submitted while the borrow lives.
        let elements = unsafe { std::slice::from_raw_parts(self.pointer(), self.length) };
        Ok(HostRead(elements))
    }

    /// Waits for the copies from and to it, then gives the elements to be changed.
    ///
    /// # Errors
    ///
    /// If a copy failed.
    #[track_caller]
    pub fn write(&mut self) -> Result<HostWrite<'_, T>, Error> {
        let points: Vec<Point> = held(&self.memory.uses).before_write().cloned().collect();
        self.host_access(&points, AccessMode::Write, Location::caller())?;
        // SAFETY: as in `read`; nothing reads it either, and the borrow is unique.
        let elements = unsafe { std::slice::from_raw_parts_mut(self.pointer(), self.length) };
        Ok(HostWrite(elements))
    }

    /// Whether `read` would not wait.
    pub fn is_ready(&self) -> bool {
        let uses = held(&self.memory.uses);
        let shared = &self.memory.device.shared;
        uses.before_read().all(|point| shared.backend.finished(point.stream, point.number).unwrap_or(true))
    }

    fn pointer(&self) -> *mut T {
        std::ptr::with_exposed_provenance_mut(self.memory.address.0)
    }

    fn host_access(&self, points: &[Point], mode: AccessMode, place: &Location<'_>) -> Result<(), Error> {
        let shared = &self.memory.device.shared;
        points.iter().try_for_each(|point| shared.host_waits(point))?;
        if let Some(journal) = &mut shared.state().journal
            && self.length > 0
        {
            journal.host_access(self.memory.touch(mode, self.length * size_of::<T>()), place);
        }
        Ok(())
    }
}

impl<T> Deref for HostRead<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        self.0
    }
}

impl<T> Deref for HostWrite<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        self.0
    }
}

impl<T> DerefMut for HostWrite<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.0
    }
}
